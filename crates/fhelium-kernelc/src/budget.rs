//! What each kernel takes of a multiprocessor, and what it may.
//!
//! A kernel that spills to local memory, or grows past the registers at which enough of its threads
//! fit, gets slower without a word: here the build stops instead.

use crate::{Error, Image, Target};
use object::read::elf::{ElfFile64, FileHeader, SectionHeader};
use object::{LittleEndian, Object, ObjectSymbol, SymbolIndex};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// What one compiled kernel takes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Usage {
    /// Its name.
    pub kernel: String,
    /// Registers of a thread.
    pub registers: u32,
    /// Bytes of local memory of a thread: spilled registers, and arrays that are none.
    pub local: u32,
}

/// Attributes of `.nv.info`, each of a kernel's symbol and a number.
const REGISTERS: u8 = 0x2f;
const FRAME: u8 = 0x11;
/// The format of those: a size, then so many bytes; all others are four bytes long.
const SIZED: u8 = 0x04;

impl Usage {
    /// The kernels of a cubin, by name.
    ///
    /// # Errors
    /// [`Error::Budget`] for bytes that are none.
    pub fn of(cubin: &[u8]) -> Result<Vec<Usage>, Error> {
        read(cubin).map_err(|reason| Error::Budget {
            log: format!("the compiler's image cannot be read: {reason}\n"),
        })
    }
}

fn read(cubin: &[u8]) -> object::Result<Vec<Usage>> {
    let file = ElfFile64::<LittleEndian>::parse(cubin)?;
    let endian = LittleEndian;
    let sections = file.elf_header().sections(endian, cubin)?;
    let info = match sections.section_by_name(endian, b".nv.info") {
        Some((_, section)) => section.data(endian, cubin)?,
        None => &[],
    };
    let mut usages = BTreeMap::new();
    let mut rest = info;
    while let [format, attribute, low, high, after @ ..] = rest {
        rest = after;
        if *format != SIZED {
            continue;
        }
        let size = usize::from(u16::from_le_bytes([*low, *high]));
        let (value, after) = rest.split_at(size.min(rest.len()));
        rest = after;
        let (&[a, b, c, d, e, f, g, h], REGISTERS | FRAME) = (value, *attribute) else {
            continue;
        };
        let symbol = u32::from_le_bytes([a, b, c, d]) as usize;
        let number = u32::from_le_bytes([e, f, g, h]);
        let kernel = file.symbol_by_index(SymbolIndex(symbol))?.name()?;
        // A function that the compiler brought along; its frame counts for the kernel that calls it.
        if kernel.starts_with('$') {
            continue;
        }
        let usage = usages.entry(symbol).or_insert_with(|| Usage {
            kernel: kernel.to_owned(),
            registers: 0,
            local: 0,
        });
        match *attribute {
            REGISTERS => usage.registers = number,
            _ => usage.local = number,
        }
    }
    let mut usages: Vec<Usage> = usages.into_values().collect();
    usages.sort_by(|a, b| a.kernel.cmp(&b.kernel));
    Ok(usages)
}

/// The most registers of each kernel, by the patterns of a text file.
///
/// A line is a pattern of kernels' names and one of targets, in which `*` stands for anything, the most
/// registers, and where there may be any the most bytes of local memory; the first line that matches
/// both counts. What follows `#` is a comment.
#[derive(Clone, Debug)]
pub struct Budgets {
    file: PathBuf,
    lines: Vec<Budget>,
}

#[derive(Clone, Debug)]
struct Budget {
    kernels: String,
    targets: String,
    registers: u32,
    local: u32,
}

impl Budgets {
    /// The file's name in a folder of kernels.
    pub const FILE: &str = "budgets.txt";

    /// Reads the budgets of a folder of kernels.
    ///
    /// # Errors
    /// [`Error::File`]; [`Error::Budget`] for a line that is none.
    pub fn open(folder: &Path) -> Result<Self, Error> {
        let file = folder.join(Self::FILE);
        let text = std::fs::read_to_string(&file).map_err(Error::file(&file))?;
        let mut lines = Vec::new();
        for (index, line) in text.lines().enumerate() {
            let line = line.split('#').next().unwrap_or_default();
            let words: Vec<&str> = line.split_whitespace().collect();
            if words.is_empty() {
                continue;
            }
            let numbers: Result<Vec<u32>, _> =
                words.iter().skip(2).map(|word| word.parse()).collect();
            let (registers, local) = match numbers.as_deref() {
                Ok(&[registers]) => (registers, 0),
                Ok(&[registers, local]) => (registers, local),
                _ => {
                    let (file, line) = (file.display(), index + 1);
                    return Err(Error::Budget {
                        log: format!(
                            "{file}:{line}: expected kernels, targets, a number of registers, and \
                             perhaps one of bytes\n"
                        ),
                    });
                }
            };
            lines.push(Budget {
                kernels: words[0].to_owned(),
                targets: words[1].to_owned(),
                registers,
                local,
            });
        }
        Ok(Budgets { file, lines })
    }

    /// Holds every machine image to the budgets.
    ///
    /// # Errors
    /// [`Error::Budget`] with a line for each kernel that uses local memory, has more registers than
    /// it may, or has no budget.
    pub fn check(&self, images: &[Image]) -> Result<(), Error> {
        let mut log = String::new();
        for image in images {
            if matches!(image.target, Target::Ptx(_)) {
                continue;
            }
            for usage in Usage::of(&image.bytes)? {
                if let Some(fault) = self.fault(image.target, &usage) {
                    log += &format!("{}.cu for {}: {fault}\n", image.stem, image.target);
                }
            }
        }
        if log.is_empty() {
            Ok(())
        } else {
            Err(Error::Budget { log })
        }
    }

    fn fault(&self, target: Target, usage: &Usage) -> Option<String> {
        let Usage {
            kernel,
            registers,
            local,
        } = usage;
        let file = self.file.display();
        let target = target.to_string();
        let budget = self
            .lines
            .iter()
            .find(|budget| matches(&budget.kernels, kernel) && matches(&budget.targets, &target));
        let Some(budget) = budget else {
            return Some(format!("{kernel} has no line in {file}"));
        };
        if *local > budget.local {
            let most = budget.local;
            return Some(format!(
                "{kernel} uses {local} bytes of local memory a thread, {most} in {file}"
            ));
        }
        let most = budget.registers;
        (*registers > most)
            .then(|| format!("{kernel} takes {registers} registers, {most} in {file}"))
    }
}

/// Whether a name is a pattern's, whose `*` stand for anything.
fn matches(pattern: &str, name: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern == name,
        Some((start, rest)) => name.strip_prefix(start).is_some_and(|name| {
            (0..=name.len())
                .any(|skipped| name.is_char_boundary(skipped) && matches(rest, &name[skipped..]))
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_whole_names() {
        for (pattern, name, expected) in [
            ("add", "add", true),
            ("add", "add_wide", false),
            ("*_wide", "add_wide", true),
            ("inner_*_fast", "inner_8_flat_fast", true),
            ("inner_*_fast", "inner_8_flat_wide", false),
            ("*", "", true),
            ("a*b*c", "aXbYc", true),
            ("a*b*c", "aXbY", false),
        ] {
            assert_eq!(matches(pattern, name), expected, "{pattern} {name}");
        }
    }
}
