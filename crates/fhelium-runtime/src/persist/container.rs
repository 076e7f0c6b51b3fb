//! The container: a safetensors file with one metadata entry, `fhelium`.
//!
//! A file is eight bytes with the header's length, the header (JSON) and the tensors' bytes,
//! little-endian. The entry is a JSON text: schema, kind, the version that wrote it, two checksums
//! and the contents, which say what the tensors are. The checksums find damage; they are no
//! signature.
//!
//! Nothing in a file is believed: lengths are held against the file's real length before anything
//! is allocated, and the header against its checksum before it is used.

use super::error::{PersistError, Result};
use super::{Kind, SCHEMA};
use safetensors::Dtype;
use safetensors::tensor::{Metadata, TensorInfo};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::cmp::Reverse;
use std::collections::HashMap;
use std::io::{self, Read, Write};
use xxhash_rust::xxh3::Xxh3;

const _: () = assert!(
    cfg!(target_endian = "little"),
    "residues are written in the machine's byte order, which files need to be little-endian"
);

const ENTRY: &str = "fhelium";
const LENGTH_BYTES: usize = 8;

/// The longest header that is read. It grows with the number of tensors only: 16 MiB are a hundred
/// thousand.
const MAX_HEADER_BYTES: u64 = 16 << 20;

/// The metadata entry.
#[derive(Serialize, Deserialize)]
struct Header {
    schema: u32,
    kind: String,
    writer: String,
    /// Of everything in the header but the checksums.
    header_checksum: String,
    /// Of the tensors' bytes.
    data_checksum: String,
    contents: Box<RawValue>,
}

/// What is read of a header of any schema.
#[derive(Deserialize)]
struct AnyHeader {
    schema: u32,
    #[serde(default)]
    writer: String,
}

/// One tensor to be written.
pub(super) struct Part<'a> {
    pub name: String,
    pub dtype: Dtype,
    pub shape: Vec<usize>,
    pub bytes: Cow<'a, [u8]>,
}

impl<'a> Part<'a> {
    pub fn new<T: bytemuck::NoUninit>(
        name: impl Into<String>,
        dtype: Dtype,
        shape: Vec<usize>,
        data: &'a [T],
    ) -> Self {
        Part {
            name: name.into(),
            dtype,
            shape,
            bytes: Cow::Borrowed(bytemuck::cast_slice(data)),
        }
    }
}

/// A whole file, to be written.
pub(super) struct Outgoing<'a> {
    head: Vec<u8>,
    parts: Vec<Part<'a>>,
}

impl<'a> Outgoing<'a> {
    pub fn new(kind: Kind, contents: &impl Serialize, mut parts: Vec<Part<'a>>) -> Result<Self> {
        let unwritable = |error: &dyn std::fmt::Display| {
            PersistError::malformed("the object", "contents", error, "what JSON can hold")
        };
        // Words first, so that every tensor lies aligned.
        parts.sort_by_key(|part| Reverse(part.dtype.bitsize()));
        let mut offset = 0;
        let mut data = Xxh3::new();
        let mut infos = Vec::with_capacity(parts.len());
        for part in &parts {
            data.update(&part.bytes);
            let end = offset + part.bytes.len();
            infos.push((
                part.name.clone(),
                TensorInfo {
                    dtype: part.dtype,
                    shape: part.shape.clone(),
                    data_offsets: (offset, end),
                },
            ));
            offset = end;
        }
        let contents = serde_json::value::to_raw_value(contents).map_err(|e| unwritable(&e))?;
        let mut header = Header {
            schema: SCHEMA,
            kind: kind.name().to_owned(),
            writer: format!("fhelium {}", env!("CARGO_PKG_VERSION")),
            header_checksum: String::new(),
            data_checksum: hex(data.digest()),
            contents,
        };
        let named = infos.iter().map(|(name, info)| (name.as_str(), info));
        header.header_checksum = header.checksum(named);
        let entry = serde_json::to_string(&header).map_err(|e| unwritable(&e))?;
        let entries = HashMap::from([(ENTRY.to_owned(), entry)]);
        let metadata = Metadata::new(Some(entries), infos).map_err(|e| unwritable(&e))?;
        let mut json = serde_json::to_vec(&metadata).map_err(|e| unwritable(&e))?;
        json.resize(json.len().next_multiple_of(LENGTH_BYTES), b' ');
        if json.len() as u64 > MAX_HEADER_BYTES {
            return Err(PersistError::malformed(
                "the object",
                "header",
                format_args!("{} bytes", json.len()),
                format!("at most {MAX_HEADER_BYTES}: save it in several files"),
            ));
        }
        let mut head = (json.len() as u64).to_le_bytes().to_vec();
        head.append(&mut json);
        Ok(Outgoing { head, parts })
    }

    /// Writes the file. Each tensor is one call, so that a secret passes through no other buffer.
    pub fn write(&self, out: &mut impl Write) -> io::Result<()> {
        out.write_all(&self.head)?;
        let mut parts = self.parts.iter();
        parts.try_for_each(|part| out.write_all(&part.bytes))
    }

    pub fn len(&self) -> usize {
        let data: usize = self.parts.iter().map(|part| part.bytes.len()).sum();
        self.head.len() + data
    }
}

impl Header {
    fn checksum<'a>(&self, tensors: impl Iterator<Item = (&'a str, &'a TensorInfo)>) -> String {
        let mut sum = Xxh3::new();
        let mut field = |bytes: &[u8]| {
            sum.update(&(bytes.len() as u64).to_le_bytes());
            sum.update(bytes);
        };
        field(&self.schema.to_le_bytes());
        field(self.kind.as_bytes());
        field(self.writer.as_bytes());
        field(self.data_checksum.as_bytes());
        field(self.contents.get().as_bytes());
        for (name, info) in tensors {
            field(name.as_bytes());
            field(info.dtype.to_string().as_bytes());
            for axis in &info.shape {
                field(&(*axis as u64).to_le_bytes());
            }
        }
        hex(sum.digest())
    }
}

fn hex(number: u64) -> String {
    format!("{number:016x}")
}

/// A file's header, found to be whole.
pub(super) struct Opened<'f> {
    pub file: &'f str,
    pub kind: Kind,
    pub writer: String,
    contents: Box<RawValue>,
    data_checksum: String,
    /// Name, type and shape, in the order of the data.
    pub tensors: Vec<(String, TensorInfo)>,
}

impl<'f> Opened<'f> {
    /// Reads the header from a source of `length` bytes; `file` names it in errors.
    pub fn read(file: &'f str, source: &mut impl Read, length: u64) -> Result<Self> {
        let refuse = |field: &str, found: &dyn std::fmt::Display, expected: &str| {
            PersistError::malformed(file, field, found, expected)
        };
        let mut bytes = [0; LENGTH_BYTES];
        if length < LENGTH_BYTES as u64 {
            let found = format_args!("{length} bytes in all").to_string();
            return Err(refuse("length", &found, "a file that fhelium wrote"));
        }
        read_exact(file, source, &mut bytes)?;
        let header_bytes = u64::from_le_bytes(bytes);
        let room = length - LENGTH_BYTES as u64;
        if header_bytes > room.min(MAX_HEADER_BYTES) {
            let expected = format!(
                "at most the {room} bytes that follow and {MAX_HEADER_BYTES}; it is cut off, or no \
                 file of fhelium's"
            );
            return Err(refuse("length of the header", &header_bytes, &expected));
        }
        let mut json = vec![0; header_bytes as usize];
        read_exact(file, source, &mut json)?;
        let metadata: Metadata = serde_json::from_slice(&json)
            .map_err(|error| refuse("header", &error, "the header of a safetensors file"))?;
        let data = metadata.data_len() as u64;
        if data != room - header_bytes {
            let found = format!("{} bytes", room - header_bytes);
            let expected = format!("{data} bytes; the file is cut off or has something added");
            return Err(refuse("tensors", &found, &expected));
        }
        let entry = metadata.metadata().as_ref().and_then(|map| map.get(ENTRY));
        let Some(entry) = entry else {
            let expected = "a file that fhelium wrote; this safetensors file is another program's";
            return Err(refuse("metadata", &"no entry \"fhelium\"", expected));
        };
        let any: AnyHeader = serde_json::from_str(entry)
            .map_err(|error| refuse("metadata", &error, "a schema number"))?;
        if any.schema != SCHEMA {
            let found = format!("schema {}, written by {:?}", any.schema, any.writer);
            let expected = format!(
                "schema {SCHEMA}, which fhelium {} reads; use the version that wrote the file, or \
                 a newer one",
                env!("CARGO_PKG_VERSION")
            );
            return Err(refuse("schema", &found, &expected));
        }
        let header: Header = serde_json::from_str(entry)
            .map_err(|error| refuse("metadata", &error, "the entry that schema 1 describes"))?;
        let tensors: Vec<(String, TensorInfo)> = metadata
            .offset_keys()
            .into_iter()
            .filter_map(|name| {
                let info = metadata.info(&name)?.clone();
                Some((name, info))
            })
            .collect();
        let sum = header.checksum(tensors.iter().map(|(name, info)| (name.as_str(), info)));
        if sum != header.header_checksum {
            let expected = format!("{sum}; the header is damaged");
            return Err(refuse(
                "header checksum",
                &header.header_checksum,
                &expected,
            ));
        }
        let Some(kind) = Kind::from_name(&header.kind) else {
            let names = Kind::ALL.map(Kind::name).join(", ");
            return Err(refuse("kind", &header.kind, &format!("one of {names}")));
        };
        Ok(Opened {
            file,
            kind,
            writer: header.writer,
            contents: header.contents,
            data_checksum: header.data_checksum,
            tensors,
        })
    }

    /// The contents as the record of the file's kind.
    pub fn contents<T: DeserializeOwned>(&self) -> Result<T> {
        serde_json::from_str(self.contents.get()).map_err(|error| {
            let expected = format!("the contents of {}", self.kind.noun());
            PersistError::malformed(self.file, "contents", error, expected)
        })
    }

    /// Reads the tensors, which take as many bytes as the file really has.
    pub fn data(self, source: &mut impl Read) -> Result<Incoming<'f>> {
        let mut sum = Xxh3::new();
        let mut tensors = HashMap::with_capacity(self.tensors.len());
        for (name, info) in self.tensors {
            let bytes = info.data_offsets.1 - info.data_offsets.0;
            let mut words: Vec<u64> = Vec::new();
            let count = bytes.div_ceil(size_of::<u64>());
            words
                .try_reserve_exact(count)
                .map_err(|_| PersistError::OutOfMemory {
                    file: self.file.to_owned(),
                    bytes,
                })?;
            words.resize(count, 0);
            let into = &mut bytemuck::cast_slice_mut::<u64, u8>(&mut words)[..bytes];
            read_exact(self.file, source, into)?;
            sum.update(into);
            tensors.insert(name, Tensor { info, words, bytes });
        }
        let sum = hex(sum.digest());
        if sum != self.data_checksum {
            return Err(PersistError::malformed(
                self.file,
                "data checksum",
                sum,
                format!("{}; the file is damaged", self.data_checksum),
            ));
        }
        Ok(Incoming {
            file: self.file,
            tensors,
        })
    }
}

fn read_exact(file: &str, source: &mut impl Read, into: &mut [u8]) -> Result<()> {
    source.read_exact(into).map_err(|error| PersistError::Io {
        file: file.to_owned(),
        action: "reading",
        error,
    })
}

/// The tensors of a file, to be taken one by one.
pub(super) struct Incoming<'f> {
    pub file: &'f str,
    tensors: HashMap<String, Tensor>,
}

struct Tensor {
    info: TensorInfo,
    words: Vec<u64>,
    bytes: usize,
}

impl Incoming<'_> {
    /// A refusal of a part of the file.
    pub fn refuse(
        &self,
        field: impl Into<String>,
        found: impl std::fmt::Display,
        expected: impl Into<String>,
    ) -> PersistError {
        PersistError::malformed(self.file, field, found, expected)
    }

    fn take(&mut self, name: &str, dtype: Dtype, shape: Option<&[usize]>) -> Result<Tensor> {
        let wanted = |shape: Option<&[usize]>| match shape {
            Some(shape) => format!("{dtype} of shape {shape:?}"),
            None => format!("{dtype} of one axis"),
        };
        let field = || format!("tensor {name:?}");
        let Some(tensor) = self.tensors.remove(name) else {
            return Err(self.refuse(field(), "nothing", wanted(shape)));
        };
        let info = &tensor.info;
        let fits = match shape {
            Some(shape) => info.shape == shape,
            None => info.shape.len() == 1,
        };
        if info.dtype != dtype || !fits {
            let found = format!("{} of shape {:?}", info.dtype, info.shape);
            return Err(self.refuse(field(), found, wanted(shape)));
        }
        Ok(tensor)
    }

    /// The words of a tensor of this shape.
    pub fn words(&mut self, name: &str, shape: &[usize]) -> Result<Vec<u64>> {
        Ok(self.take(name, Dtype::U64, Some(shape))?.words)
    }

    /// Gives a tensor's bytes to `with`, and erases them after that.
    pub fn bytes<T>(
        &mut self,
        name: &str,
        dtype: Dtype,
        shape: &[usize],
        with: impl FnOnce(&[u8]) -> T,
    ) -> Result<T> {
        let tensor = self.take(name, dtype, Some(shape))?;
        let words = zeroize::Zeroizing::new(tensor.words);
        Ok(with(
            &bytemuck::cast_slice::<u64, u8>(&words)[..tensor.bytes],
        ))
    }

    /// A tensor of text.
    pub fn text(&mut self, name: &str) -> Result<String> {
        let tensor = self.take(name, Dtype::U8, None)?;
        let bytes = &bytemuck::cast_slice::<u64, u8>(&tensor.words)[..tensor.bytes];
        match std::str::from_utf8(bytes) {
            Ok(text) => Ok(text.to_owned()),
            Err(error) => Err(self.refuse(format!("tensor {name:?}"), error, "UTF-8 text")),
        }
    }

    /// Refuses tensors that nothing asked for.
    pub fn finish(self) -> Result<()> {
        match self.tensors.keys().min() {
            None => Ok(()),
            Some(name) => Err(self.refuse(
                format!("tensor {name:?}"),
                "a tensor that the contents do not mention",
                "no others",
            )),
        }
    }
}
