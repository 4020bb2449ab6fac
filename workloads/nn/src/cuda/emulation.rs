//! The kernels on the host, for tests: compiled as C++ with `workloads/nn/kernels/emulate.h` and called one thread after
//! the other. Slow, but the same code, launched with the same grids and arguments as on a GPU.
#![allow(clippy::expect_used, clippy::print_stderr, reason = "only tests call this")]

use std::ffi::c_void;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, OnceLock, PoisonError};

use bytemuck::NoUninit;
use candle_core::{Error, Result, bail};
use libloading::Library;

use super::kernel::Grid;

/// A kernel, compiled to a function of its arguments.
type Body = unsafe extern "C" fn(*const c_void);
type Emulate = unsafe extern "C" fn(Body, *const u32, *const u32, *const c_void);

/// The loaded library; its coroutines run one grid at a time.
struct Kernels {
    library: Library,
    turn: Mutex<()>,
}

/// Whether the kernels can run on the host. Without a C++ compiler it says so, and the test must be skipped.
pub fn is_possible() -> bool {
    match library() {
        Ok(_) => true,
        Err(reason) => {
            eprintln!("skipped: the kernels cannot be compiled for the host: {reason}");
            false
        }
    }
}

fn library() -> std::result::Result<&'static Kernels, &'static String> {
    static LIBRARY: OnceLock<std::result::Result<Kernels, String>> = OnceLock::new();
    LIBRARY.get_or_init(build).as_ref()
}

/// Compiles all kernels into one library and loads it.
fn build() -> std::result::Result<Kernels, String> {
    let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
    let file = folder.path().join("kernels.so");
    compile(&file)?;
    // SAFETY: the library was just built from our kernels and runs nothing when it is loaded.
    let library = unsafe { Library::new(file) }.expect("the compiled kernels cannot be loaded");
    Ok(Kernels { library, turn: Mutex::new(()) })
}

/// Compiles all kernels into one library, or says why that is impossible here.
pub(super) fn compile(file: &Path) -> std::result::Result<(), String> {
    let kernels = Path::new(env!("CARGO_MANIFEST_DIR")).join("kernels");
    let compiler = std::env::var("CXX").unwrap_or_else(|_| "c++".to_owned());
    let mut command = Command::new(&compiler);
    command.args(["-O1", "-std=c++17", "-shared", "-fPIC", "-Wall", "-Werror", "-include"]);
    command.arg(kernels.join("emulate.h")).args(["-x", "c++"]).args(sources(&kernels)?).arg("-o").arg(file);
    let output = command.output().map_err(|error| format!("{compiler}: {error}"))?;
    assert!(output.status.success(), "the kernels do not compile as C++: {}", String::from_utf8_lossy(&output.stderr));
    Ok(())
}

fn sources(kernels: &Path) -> std::result::Result<Vec<PathBuf>, String> {
    let entries = std::fs::read_dir(kernels).map_err(|error| error.to_string())?;
    let mut files: Vec<PathBuf> = entries.filter_map(|entry| entry.ok().map(|entry| entry.path())).collect();
    files.retain(|file| file.extension().is_some_and(|extension| extension == "cu"));
    files.sort();
    Ok(files)
}

/// Runs a kernel over a grid to its end.
///
/// # Safety
/// As for [`launch`](super::machine::launch).
pub(super) unsafe fn launch<A: NoUninit>(name: &str, grid: Grid, arguments: &A) -> Result<()> {
    let kernels = match library() {
        Ok(kernels) => kernels,
        Err(reason) => bail!("the kernels cannot be compiled for the host: {reason}"),
    };
    let _turn = kernels.turn.lock().unwrap_or_else(PoisonError::into_inner);
    // SAFETY: both symbols are functions of these types (emulate.h). The arguments are the struct that the kernel takes, with
    // addresses of host memory that is alive, as the caller vouches.
    unsafe {
        let body = kernels.library.get::<Body>(name).map_err(Error::wrap)?;
        let emulate = kernels.library.get::<Emulate>("emulate").map_err(Error::wrap)?;
        emulate(*body, grid.blocks.as_ptr(), grid.threads.as_ptr(), std::ptr::from_ref(arguments).cast());
    }
    Ok(())
}
