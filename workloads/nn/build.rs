//! Compiles `kernels/*.cu` for GPUs if the feature `cuda` is on, and lets the tests know which files are beside the
//! repository.

use std::path::{Path, PathBuf};
use std::process::Command;

/// The oldest GPUs that the kernels run on (A100); the driver compiles them for the installed one.
const ARCHITECTURE: &str = "-arch=compute_80";

fn main() {
    println!("cargo:rerun-if-changed=kernels");
    println!("cargo:rerun-if-env-changed=NVCC");
    tell_what_is_shared();
    if std::env::var_os("CARGO_FEATURE_CUDA").is_none() {
        return;
    }
    let Some(out) = std::env::var_os("OUT_DIR").map(PathBuf::from) else { return fail("cargo gave no OUT_DIR") };
    let nvcc = std::env::var("NVCC").unwrap_or_else(|_| "nvcc".to_owned());
    let Ok(entries) = std::fs::read_dir("kernels") else { return fail("the folder kernels is missing") };
    let files = entries.filter_map(|entry| entry.ok().map(|entry| entry.path()));
    for file in files.filter(|file| file.extension().is_some_and(|extension| extension == "cu")) {
        compile(&nvcc, &file, &out);
    }
}

/// Sets `shared_vectors` and `shared_data` where `../shared`, or `$GNNTOP_SHARED`, has them (`tests/shared.rs`).
fn tell_what_is_shared() {
    println!("cargo:rerun-if-env-changed=GNNTOP_SHARED");
    let shared = std::env::var_os("GNNTOP_SHARED").map_or_else(|| PathBuf::from("../../../shared"), PathBuf::from);
    for (name, folder) in [("shared_vectors", "reference"), ("shared_data", "data")] {
        println!("cargo:rustc-check-cfg=cfg({name})");
        if shared.join(folder).is_dir() {
            println!("cargo:rustc-cfg={name}");
        }
    }
}

/// `kernels/name.cu` to `name.ptx`.
fn compile(nvcc: &str, file: &Path, out: &Path) {
    let target = out.join(file.with_extension("ptx").file_name().unwrap_or_default());
    let options = ["-ptx", "-O3", "-std=c++17", ARCHITECTURE];
    match Command::new(nvcc).args(options).arg(file).arg("-o").arg(target).status() {
        Ok(status) if status.success() => {}
        Ok(status) => fail(&format!("{nvcc} could not compile {}: {status}", file.display())),
        Err(error) => fail(&format!("cannot run {nvcc} ({error}); see docs/cuda.md for CUDA's compiler")),
    }
}

/// Cargo's way for a build script to end the build with a message.
fn fail(message: &str) {
    println!("cargo:error={message}");
}
