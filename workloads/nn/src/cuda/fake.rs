//! Tests with a fake driver (`tests/fake-cuda`): candle, cudarc and our own calls are the real ones, and their work is
//! done on the host. cudarc opens the driver once per process, and other tests want the real one, so such a test is
//! ignored, and another test runs it in its own process.
#![allow(clippy::unwrap_used, clippy::print_stderr, reason = "only tests call this")]

use std::path::Path;
use std::process::Command;

use super::emulation;

/// Runs the ignored test of this name with the fake driver and these variables. Skips without a compiler.
pub fn run_alone(name: &str, variables: &[(&str, &str)]) {
    let folder = tempfile::tempdir().unwrap();
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fake-cuda/fake_cuda.c");
    let compiler = std::env::var("CC").unwrap_or_else(|_| "cc".to_owned());
    let library = folder.path().join("libcuda.so");
    let mut compile = Command::new(&compiler);
    compile.args(["-O1", "-shared", "-fPIC", "-Wall", "-Werror", "-o"]).arg(&library).arg(source);
    match compile.status() {
        Ok(status) => assert!(status.success(), "the fake driver does not compile as C"),
        Err(reason) => return eprintln!("skipped: {compiler}: {reason}"),
    }
    // One library under all names, so that all calls have one order.
    for other in ["libcuda.so.1", "libcublas.so", "libcurand.so"] {
        std::os::unix::fs::symlink("libcuda.so", folder.path().join(other)).unwrap();
    }
    let kernels = folder.path().join("kernels.so");
    if let Err(reason) = emulation::compile(&kernels) {
        return eprintln!("skipped: {reason}");
    }
    let mut alone = Command::new(std::env::current_exe().unwrap());
    alone.args(["--exact", name, "--ignored"]).env("LD_LIBRARY_PATH", folder.path());
    alone.env("GNNTOP_EMULATED_KERNELS", kernels).envs(variables.iter().copied());
    let output = alone.output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && text.contains("1 passed"), "{text}\n{errors}");
}
