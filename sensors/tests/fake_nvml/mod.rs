//! Builds the fake NVML library beside this file (`library.rs`) and steers it.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::{env, fs};

/// Which driver the library plays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FakeDriver {
    /// One with every function.
    Current,
    /// One without the functions that came with version 2 and 3 of the calls, the energy counter and the fields.
    Old,
}

/// A fake NVML library of its own, with its control file, in a folder that goes when this does.
pub struct FakeNvml {
    folder: tempfile::TempDir,
}

impl FakeNvml {
    /// Builds the library, once a process, and lays a copy aside for this test. `None`, with the reason printed, where
    /// there is no Rust compiler to build it with.
    pub fn build(driver: FakeDriver) -> Option<Self> {
        static CURRENT: OnceLock<Option<Vec<u8>>> = OnceLock::new();
        static OLD: OnceLock<Option<Vec<u8>>> = OnceLock::new();
        let built = match driver {
            FakeDriver::Current => CURRENT.get_or_init(|| compile(&[])),
            FakeDriver::Old => OLD.get_or_init(|| compile(&["--cfg", "old_driver"])),
        };
        let folder = tempfile::tempdir().expect("a temporary folder");
        let fake = Self { folder };
        fs::write(fake.path(), built.as_ref()?).expect("the library is laid aside");
        Some(fake)
    }

    /// Where the library lies: what to set `SensorOptions::nvml_library` to.
    pub fn path(&self) -> PathBuf {
        self.folder.path().join("libfake-nvidia-ml.so")
    }

    /// Makes the library do as `control` says from the next call on. The syntax is at the top of `library.rs`.
    pub fn control(&self, control: &str) {
        // Written aside and renamed, so that no call reads half of it.
        let half = self.folder.path().join("control.half");
        fs::write(&half, control).expect("the control file is written");
        fs::rename(half, self.folder.path().join("libfake-nvidia-ml.so.control")).expect("the control file is renamed");
    }

    /// How often the library was initialised and not shut down.
    pub fn initialised(&self) -> u64 {
        let count = fs::read_to_string(self.folder.path().join("libfake-nvidia-ml.so.count"));
        count.expect("it was initialised").parse().expect("a number")
    }
}

/// Compiles the library and returns its bytes.
fn compile(flags: &[&str]) -> Option<Vec<u8>> {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fake_nvml/library.rs");
    let folder = tempfile::tempdir().expect("a temporary folder");
    let library = folder.path().join("libfake.so");
    let rustc = env::var_os("RUSTC").unwrap_or_else(|| OsString::from("rustc"));
    let output = Command::new(&rustc)
        .args(["--edition", "2024", "--crate-type", "cdylib", "--crate-name", "fake_nvml", "-A", "non_snake_case"])
        .args(flags)
        .arg("-o")
        .arg(&library)
        .arg(&source)
        .output();
    match output {
        Err(error) => {
            println!("skipped: no Rust compiler to build the fake NVML with ({}: {error})", rustc.display());
            None
        }
        Ok(output) => {
            let messages = String::from_utf8_lossy(&output.stderr);
            assert!(output.status.success(), "the fake NVML does not build:\n{messages}");
            Some(fs::read(library).expect("the library was built"))
        }
    }
}
