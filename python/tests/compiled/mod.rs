//! Programs of C that tests compile, and the library that these load.

use std::path::{Path, PathBuf};
use std::process::Command;

/// The library, which Cargo builds with a test.
pub fn library() -> PathBuf {
    let own = std::env::current_exe().unwrap();
    let places = own.ancestors().skip(1).take(2).map(|dir| dir.join("libgnntop_python.so"));
    places.into_iter().find(|path| path.exists()).unwrap()
}

/// Compiles one of `tests/fakes`; `None` without a compiler, which is said.
pub fn program(dir: &Path, source: &str, options: &[&str]) -> Option<PathBuf> {
    let program = dir.join(source.trim_end_matches(".c"));
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fakes").join(source);
    let mut command = Command::new("cc");
    command.args(["-std=gnu11", "-Wall", "-Wextra", "-Werror", "-Wno-missing-field-initializers", "-O1", "-g"]);
    let Ok(output) = command.arg(source).arg("-o").arg(&program).args(options).output() else {
        eprintln!("skipped: there is no cc");
        return None;
    };
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Some(program)
}
