//! The kernels on the host, for tests: compiled as C++ with `workloads/kernels/emulate.h` and called one thread after
//! the other. Slow, but the same code, launched with the same grids and arguments as on a GPU.

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, OnceLock, PoisonError};

use candle_core::{Result, bail};

unsafe extern "C" {
    fn dlopen(name: *const c_char, flags: c_int) -> *mut c_void;
    fn dlsym(library: *mut c_void, name: *const c_char) -> *mut c_void;
}

/// A kernel, compiled to a function of its arguments.
type Body = unsafe extern "C" fn(*const c_void);
type Emulate = unsafe extern "C" fn(Body, *const u32, *const u32, *const c_void);

/// The loaded library; its coroutines run one grid at a time.
struct Library {
    handle: usize,
    turn: Mutex<()>,
}

/// Whether the kernels can be run on the host. Where there is no C++ compiler it says so and a test is to be skipped.
pub(crate) fn is_possible() -> bool {
    match library() {
        Ok(_) => true,
        Err(reason) => {
            eprintln!("skipped: the kernels cannot be compiled for the host: {reason}");
            false
        }
    }
}

fn library() -> std::result::Result<&'static Library, &'static String> {
    static LIBRARY: OnceLock<std::result::Result<Library, String>> = OnceLock::new();
    LIBRARY.get_or_init(build).as_ref()
}

/// Compiles all kernels into one library and loads it.
fn build() -> std::result::Result<Library, String> {
    let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
    let file = folder.path().join("kernels.so");
    compile(&file)?;
    let name = CString::new(file.to_string_lossy().as_bytes()).map_err(|error| error.to_string())?;
    // SAFETY: the library was just built from our kernels and runs nothing when it is loaded. It is never unloaded.
    let handle = unsafe { dlopen(name.as_ptr(), libc::RTLD_NOW) };
    assert!(!handle.is_null(), "the compiled kernels cannot be loaded");
    Ok(Library { handle: handle as usize, turn: Mutex::new(()) })
}

/// Compiles all kernels into one library, or says why that cannot be done here.
pub(super) fn compile(file: &Path) -> std::result::Result<(), String> {
    let kernels = Path::new(env!("CARGO_MANIFEST_DIR")).join("kernels");
    let compiler = std::env::var("CXX").unwrap_or_else(|_| "c++".to_owned());
    let mut command = Command::new(&compiler);
    command.args(["-O1", "-std=c++17", "-shared", "-fPIC", "-Wall", "-Werror", "-include"]);
    command.arg(kernels.join("emulate.h")).args(["-x", "c++"]).args(sources(&kernels)?).arg("-o").arg(file);
    let output = command.output().map_err(|error| format!("{compiler}: {error}"))?;
    assert!(output.status.success(), "the kernels are no C++: {}", String::from_utf8_lossy(&output.stderr));
    Ok(())
}

fn sources(kernels: &Path) -> std::result::Result<Vec<PathBuf>, String> {
    let entries = std::fs::read_dir(kernels).map_err(|error| error.to_string())?;
    let mut files: Vec<PathBuf> = entries.filter_map(|entry| entry.ok().map(|entry| entry.path())).collect();
    files.retain(|file| file.extension().is_some_and(|extension| extension == "cu"));
    files.sort();
    Ok(files)
}

impl Library {
    fn find(&self, name: &CStr) -> Result<*mut c_void> {
        // SAFETY: the handle is that of a loaded library.
        let symbol = unsafe { dlsym(self.handle as *mut c_void, name.as_ptr()) };
        if symbol.is_null() {
            bail!("there is no kernel {}", name.to_string_lossy());
        }
        Ok(symbol)
    }
}

/// Runs a kernel over a grid to its end.
pub(super) fn launch(name: &str, blocks: [u32; 2], threads: [u32; 2], arguments: *const c_void) -> Result<()> {
    let library = match library() {
        Ok(library) => library,
        Err(reason) => bail!("the kernels cannot be compiled for the host: {reason}"),
    };
    let _turn = library.turn.lock().unwrap_or_else(PoisonError::into_inner);
    let body = library.find(&CString::new(name).map_err(candle_core::Error::wrap)?)?;
    let emulate = library.find(c"emulate")?;
    // SAFETY: both symbols are functions of these types (emulate.h). The arguments are the struct that the kernel takes,
    // with addresses of host memory that is alive; that they are used within bounds is what the tests are for.
    unsafe {
        let body = std::mem::transmute::<*mut c_void, Body>(body);
        let emulate = std::mem::transmute::<*mut c_void, Emulate>(emulate);
        emulate(body, blocks.as_ptr(), threads.as_ptr(), arguments);
    }
    Ok(())
}
