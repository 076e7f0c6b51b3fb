//! The few NVRTC functions that compiling needs, found at run time.

use crate::{Error, Options, Sources, Target};
use libloading::Library;
use std::ffi::{CString, c_char, c_int, c_void};
use std::path::Path;
use std::ptr;

type Program = *mut c_void;

type VersionFn = unsafe extern "C" fn(*mut c_int, *mut c_int) -> c_int;
type CreateFn = unsafe extern "C" fn(
    *mut Program,
    *const c_char,
    *const c_char,
    c_int,
    *const *const c_char,
    *const *const c_char,
) -> c_int;
type DestroyFn = unsafe extern "C" fn(*mut Program) -> c_int;
type CompileFn = unsafe extern "C" fn(Program, c_int, *const *const c_char) -> c_int;
type SizeFn = unsafe extern "C" fn(Program, *mut usize) -> c_int;
type TextFn = unsafe extern "C" fn(Program, *mut c_char) -> c_int;

/// A loaded NVRTC. Its functions may be called from several threads, each on its own program.
pub(crate) struct Nvrtc {
    version: (i32, i32),
    create: CreateFn,
    destroy: DestroyFn,
    compile: CompileFn,
    log_size: SizeFn,
    log: TextFn,
    cubin_size: SizeFn,
    cubin: TextFn,
    ptx_size: SizeFn,
    ptx: TextFn,
    // Last: the functions above are valid for as long as the library is loaded.
    _library: Library,
}

impl Nvrtc {
    pub(crate) fn load(path: &Path) -> Result<Self, Error> {
        let bad = |reason: String| Error::Library {
            path: path.to_owned(),
            reason,
        };
        // SAFETY: NVRTC's initialisers have no precondition; the path comes from the builder's own
        // environment, as every other tool of the build does.
        let library = unsafe { Library::new(path) }.map_err(|e| bad(e.to_string()))?;
        macro_rules! function {
            ($name:literal) => {
                // SAFETY: the type is that of the function in NVRTC's public header, stable since
                // version 11.
                *unsafe { library.get($name) }.map_err(|e| bad(e.to_string()))?
            };
        }
        let version_of: VersionFn = function!(b"nvrtcVersion\0");
        let (mut major, mut minor) = (0, 0);
        // SAFETY: both pointers are to live integers.
        if unsafe { version_of(&mut major, &mut minor) } != 0 {
            return Err(bad("nvrtcVersion failed".to_owned()));
        }
        Ok(Nvrtc {
            version: (major, minor),
            create: function!(b"nvrtcCreateProgram\0"),
            destroy: function!(b"nvrtcDestroyProgram\0"),
            compile: function!(b"nvrtcCompileProgram\0"),
            log_size: function!(b"nvrtcGetProgramLogSize\0"),
            log: function!(b"nvrtcGetProgramLog\0"),
            cubin_size: function!(b"nvrtcGetCUBINSize\0"),
            cubin: function!(b"nvrtcGetCUBIN\0"),
            ptx_size: function!(b"nvrtcGetPTXSize\0"),
            ptx: function!(b"nvrtcGetPTX\0"),
            _library: library,
        })
    }

    pub(crate) fn version(&self) -> (i32, i32) {
        self.version
    }

    pub(crate) fn compile(
        &self,
        sources: &Sources,
        file: &Path,
        target: Target,
        options: &Options,
    ) -> Result<Vec<u8>, Error> {
        let text = std::fs::read_to_string(file).map_err(Error::file(file))?;
        let name = format!("{}.cu", Sources::stem(file));
        let failed = |log: &str| Error::Compile {
            log: format!("{name} for {target}: {log}\n"),
        };
        let text = CString::new(text).map_err(|_| failed("the file holds a NUL byte"))?;
        let c_name = CString::new(name.clone()).map_err(|_| failed("bad file name"))?;

        let mut flags = vec![
            format!("--gpu-architecture={target}"),
            "--std=c++17".to_owned(),
            // Products must stay as written: the arithmetic is exact only with the fused
            // multiply-adds that the source names.
            "--fmad=false".to_owned(),
            format!("-I{}", sources.folder().display()),
        ];
        if options.line_info {
            flags.push("--generate-line-info".to_owned());
        }
        let flags: Vec<CString> = flags
            .into_iter()
            .map(|flag| {
                CString::new(flag).map_err(|_| failed("the folder's name holds a NUL byte"))
            })
            .collect::<Result<_, _>>()?;
        let flag_pointers: Vec<*const c_char> = flags.iter().map(|flag| flag.as_ptr()).collect();

        let mut program: Program = ptr::null_mut();
        // SAFETY: text and name are NUL-terminated and alive; no headers are passed.
        let status = unsafe {
            (self.create)(
                &mut program,
                text.as_ptr(),
                c_name.as_ptr(),
                0,
                ptr::null(),
                ptr::null(),
            )
        };
        if status != 0 {
            return Err(failed(&format!("nvrtcCreateProgram: error {status}")));
        }
        let program = OwnedProgram {
            nvrtc: self,
            program,
        };
        // SAFETY: the program is live, the flags are NUL-terminated and alive.
        let status = unsafe {
            (self.compile)(
                program.program,
                flag_pointers.len() as c_int,
                flag_pointers.as_ptr(),
            )
        };
        let log = program.text(self.log_size, self.log).unwrap_or_default();
        let log = String::from_utf8_lossy(&log)
            .trim_matches(['\0', '\n', ' '])
            .to_owned();
        // NVRTC has no switch that makes warnings errors: a clean compile has an empty log.
        if status != 0 || !log.is_empty() {
            return Err(failed(&format!("error {status}\n{log}")));
        }
        let (size, read) = match target {
            Target::Cubin(_) => (self.cubin_size, self.cubin),
            Target::Ptx(_) => (self.ptx_size, self.ptx),
        };
        program
            .text(size, read)
            .ok_or_else(|| failed("NVRTC gave no image"))
    }
}

struct OwnedProgram<'a> {
    nvrtc: &'a Nvrtc,
    program: Program,
}

impl OwnedProgram<'_> {
    /// One of the program's outputs, in the buffer size that NVRTC asks for.
    fn text(&self, size: SizeFn, read: TextFn) -> Option<Vec<u8>> {
        let mut bytes = 0;
        // SAFETY: the program is live and the pointer is to a live integer.
        if unsafe { size(self.program, &mut bytes) } != 0 {
            return None;
        }
        let mut buffer = vec![0u8; bytes];
        // SAFETY: the buffer has the size that NVRTC asked for.
        let status = unsafe { read(self.program, buffer.as_mut_ptr().cast()) };
        (status == 0 && bytes > 0).then_some(buffer)
    }
}

impl Drop for OwnedProgram<'_> {
    fn drop(&mut self) {
        // SAFETY: created by this library and destroyed once.
        unsafe { (self.nvrtc.destroy)(&mut self.program) };
    }
}
