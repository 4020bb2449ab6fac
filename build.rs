//! Embeds what it takes to watch Python programs: the package `gnntop`, and in a release build the native part that it
//! calls. So `gnntop run -- python train.py` needs nothing in the program's environment.
//!
//! The native part is a crate of its own and a library of C, which Cargo cannot yet make a binary depend on; a second
//! Cargo builds it, with its own target folder. A development build skips that: `run` then takes the library beside the
//! program, which `cargo build -p gnntop-python` puts there.
//!
//! `GNNTOP_NATIVE_LIBRARY` names a library to embed instead of one built here. If the sources are not beside this
//! crate, nothing is embedded, and `run` says how to get it.
#![allow(clippy::print_stdout, reason = "this is how a build script talks to Cargo")]

use std::env;
use std::error::Error;
use std::fmt::Write as _;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use flate2::Compression;
use flate2::write::DeflateEncoder;

type Result<T> = std::result::Result<T, Box<dyn Error>>;

fn main() -> Result<()> {
    let root = PathBuf::from(env::var("CARGO_MANIFEST_DIR")?);
    let package = root.join("python/gnntop");
    let mut files = Vec::new();
    if package.is_dir() {
        find_python(&package, &mut files)?;
        files.sort();
    }
    println!("cargo::rerun-if-changed=build.rs");
    // Not the folder: Python's compiled files in it would trigger a full rebuild.
    for file in &files {
        println!("cargo::rerun-if-changed={}", file.display());
    }
    println!("cargo::rerun-if-env-changed=GNNTOP_NATIVE_LIBRARY");
    let native = native_part(&root)?;
    let out = PathBuf::from(env::var("OUT_DIR")?);
    let text = embed(&root.join("python"), &files, native.as_deref(), &out.join("packed"))?;
    fs::write(out.join("carried.rs"), text)?;
    Ok(())
}

/// All files of the package that Python reads.
fn find_python(dir: &Path, files: &mut Vec<PathBuf>) -> Result<()> {
    for entry in fs::read_dir(dir)? {
        let path = entry?.path();
        let is_python = path.extension().is_some_and(|extension| extension == "py" || extension == "typed");
        if path.is_dir() {
            find_python(&path, files)?;
        } else if is_python {
            files.push(path);
        }
    }
    Ok(())
}

/// The native part, built or given; `None` if there is none to embed.
fn native_part(root: &Path) -> Result<Option<PathBuf>> {
    if let Some(library) = env::var_os("GNNTOP_NATIVE_LIBRARY").filter(|library| !library.is_empty()) {
        return Ok(Some(fs::canonicalize(library)?));
    }
    let manifest = root.join("python/Cargo.toml");
    if env::var("PROFILE")? != "release" || env::var_os("DOCS_RS").is_some() || !manifest.is_file() {
        return Ok(None);
    }
    for sources in [
        "python/src",
        "python/Cargo.toml",
        "probe/src",
        "history/src",
        "sessions/src",
        "sensors/src",
        "wire/src",
        "Cargo.lock",
    ] {
        println!("cargo::rerun-if-changed={sources}");
    }
    // Python is nearly always linked with glibc, and cannot load a library that is linked statically with musl.
    let target = env::var("TARGET")?.replace("-musl", "-gnu");
    let out = PathBuf::from(env::var("OUT_DIR")?).join("python");
    let mut build = Command::new(env::var("CARGO")?);
    build.args(["rustc", "--quiet", "--lib", "--crate-type", "cdylib", "--release", "--target", &target]);
    build.arg("--manifest-path").arg(&manifest).arg("--target-dir").arg(&out);
    build.args(["--", "-C", "strip=symbols"]);
    // Settings for this crate are not meant for the other.
    for (name, _) in
        env::vars().filter(|(name, _)| name.starts_with("CARGO_FEATURE_") || name.starts_with("CARGO_CFG_"))
    {
        build.env_remove(name);
    }
    if build.status()?.success() {
        let (prefix, suffix) = if target.contains("apple") { ("lib", "dylib") } else { ("lib", "so") };
        let library = out.join(&target).join("release").join(format!("{prefix}gnntop_python.{suffix}"));
        return Ok(Some(library));
    }
    println!(
        "cargo::warning=the native part for Python was not built: Python programs will show only hardware readings"
    );
    Ok(None)
}

/// The file compiled into the binary: each file's path and packed bytes, and the library's. Unpacked they would be a fifth of the
/// program without trainings.
fn embed(python: &Path, files: &[PathBuf], native: Option<&Path>, packed: &Path) -> Result<String> {
    let mut text = String::from("static FILES: &[(&str, &[u8])] = &[\n");
    for file in files {
        let name = file.strip_prefix(python)?;
        let bytes = pack(file, &packed.join(name))?;
        writeln!(text, "    ({:?}, include_bytes!({bytes:?})),", name.display().to_string())?;
    }
    text.push_str("];\nstatic NATIVE: Option<&[u8]> = ");
    match native {
        Some(library) => writeln!(text, "Some(include_bytes!({:?}));", pack(library, &packed.join("native"))?)?,
        None => text.push_str("None;\n"),
    }
    Ok(text)
}

/// Writes a file packed, and gives the path of that.
fn pack(file: &Path, packed: &Path) -> Result<String> {
    if let Some(folder) = packed.parent() {
        fs::create_dir_all(folder)?;
    }
    let mut encoder = DeflateEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(&fs::read(file)?)?;
    fs::write(packed, encoder.finish()?)?;
    Ok(packed.display().to_string())
}
