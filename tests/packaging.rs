//! What a release is handed in with: what pip installs, the recipes of other packagers, filled in, the order of the crates; and
//! the workflow that checks before.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::sessions::{Sessions, has_python};

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

#[test]
fn recipes_have_the_version_the_address_and_the_checksum() {
    let (version, address) = (env!("CARGO_PKG_VERSION"), "https://github.com/someone/gnntop");
    let sessions = Sessions::new();
    sessions.file("SHA256SUMS", format!("5ca1ab1e  gnntop-{version}.tar.gz\nc0ffee  other.tar.gz\n").as_bytes());
    let mut fill = Command::new(root().join("packaging/fill.sh"));
    let filled = fill.arg(address).arg(sessions.path()).output().unwrap();
    assert!(filled.status.success(), "{}", String::from_utf8_lossy(&filled.stderr));
    for recipe in ["recipe.yaml", "gnntop.rb", "PKGBUILD"] {
        let text = fs::read_to_string(sessions.path().join("packaging").join(recipe)).unwrap();
        assert!(!text.contains('@'), "{recipe}: {text}");
        for part in [version, address, "5ca1ab1e", "MIT", "Apache-2.0"] {
            assert!(text.contains(part), "{recipe} has no {part}: {text}");
        }
    }
}

/// With those of their tools that are here; it says which are not. CI builds by them.
#[test]
fn recipes_are_read_by_the_tools_of_their_packagers() {
    let sessions = Sessions::new();
    let mut recipes = Command::new(root().join("scripts/recipes.sh"));
    let read = recipes.arg("--read").arg(sessions.path()).output().unwrap();
    let text = String::from_utf8_lossy(&read.stdout);
    print!("{text}");
    assert!(read.status.success(), "{text}{}", String::from_utf8_lossy(&read.stderr));
    for recipe in ["conda", "aur", "nix", "homebrew"] {
        assert!(text.contains(&format!("== {recipe}\n")), "{text}");
    }
    let arch = format!("releases/download/v{}/packaging/PKGBUILD", env!("CARGO_PKG_VERSION"));
    assert!(Command::new("bash").arg("-n").arg(sessions.path().join(arch)).status().unwrap().success());
}

#[test]
fn recipes_without_a_source_are_refused() {
    let sessions = Sessions::new();
    sessions.file("SHA256SUMS", b"c0ffee  other.tar.gz\n");
    let mut fill = Command::new(root().join("packaging/fill.sh"));
    let filled = fill.arg("https://github.com/someone/gnntop").arg(sessions.path()).output().unwrap();
    assert!(!filled.status.success() && !sessions.path().join("packaging").exists());
}

/// Prints what a wheel says of itself, after comparing its files with its record.
const READ_WHEEL: &str = r#"
import base64, hashlib, sys, zipfile
wheel = zipfile.ZipFile(sys.argv[1])
info = next(name for name in wheel.namelist() if name.endswith("/RECORD")).removesuffix("RECORD")
recorded = [line.rsplit(",", 2) for line in wheel.read(info + "RECORD").decode().splitlines()]
assert sorted(name for name, _, _ in recorded) == sorted(wheel.namelist()), wheel.namelist()
for name, digest, size in recorded:
    content = wheel.read(name)
    known = "sha256=" + base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
    assert (digest, size) in [(known, str(len(content))), ("", "")], name
print("\n".join(wheel.namelist()), wheel.read(info + "METADATA").decode(), wheel.read(info + "WHEEL").decode())
"#;

#[test]
fn wheel_has_program_and_package_and_offers_the_trainings() {
    if !has_python((3, 10), (4, 0)) {
        return;
    }
    let sessions = Sessions::new();
    let mut python = Command::new("python3");
    python.arg(root().join("packaging/pip_backend.py")).arg(sessions.path()).arg("wheel");
    let made = python.env("GNNTOP_PROGRAM", "/bin/true").env("GNNTOP_NATIVE_LIBRARY", "/bin/true").output().unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    let path = String::from_utf8(made.stdout).unwrap();
    let read = Command::new("python3").args(["-c", READ_WHEEL, path.trim()]).output().unwrap();
    assert!(read.status.success(), "{}", String::from_utf8_lossy(&read.stderr));
    let (text, version) = (String::from_utf8(read.stdout).unwrap(), env!("CARGO_PKG_VERSION"));
    for part in [
        "gnntop/__init__.py\n",
        "gnntop/libgnntop.so\n",
        "gnntop/bootstrap/sitecustomize.py\n",
        &format!("gnntop-{version}.data/scripts/gnntop\n"),
        &format!("gnntop-{version}.dist-info/licenses/LICENSE-MIT\n"),
        &format!("Requires-Dist: gnntop-trainings == {version}; extra == 'trainings'\n"),
        "Tag: py3-none-manylinux_2_",
    ] {
        assert!(text.contains(part), "no {part} in {text}");
    }
}

#[test]
fn source_distribution_has_what_it_is_built_from() {
    if !root().join(".git").exists() {
        println!("skipped: this is no checkout");
        return;
    }
    if !has_python((3, 10), (4, 0)) {
        return;
    }
    let sessions = Sessions::new();
    let mut python = Command::new("python3");
    let made = python.arg(root().join("packaging/pip_backend.py")).arg(sessions.path()).arg("sdist").output().unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    let listed = Command::new("tar").arg("tzf").arg(String::from_utf8(made.stdout).unwrap().trim()).output().unwrap();
    let names = String::from_utf8(listed.stdout).unwrap();
    for file in
        ["PKG-INFO", "pyproject.toml", "packaging/pip_backend.py", "Cargo.lock", "src/main.rs", "python/src/lib.rs"]
    {
        let name = format!("gnntop-{}/{file}", env!("CARGO_PKG_VERSION"));
        assert!(names.lines().any(|line| line == name), "no {name} in {names}");
    }
}

#[test]
fn workflow_has_every_part_of_the_checks() {
    let workflow = fs::read_to_string(root().join(".github/workflows/check.yml")).unwrap();
    for script in ["./check.sh", "workloads/check.sh"] {
        let text = fs::read_to_string(root().join(script)).unwrap();
        let (_, all) = text.split_once("if [ $# -eq 0 ]; then set -- ").unwrap();
        let mut needed: Vec<&str> =
            all.split_once(';').unwrap().0.split(' ').filter(|part| *part != "python").collect();
        let jobs = workflow.lines().filter_map(|line| line.trim().strip_prefix("- ")?.strip_prefix(script));
        let mut run: Vec<&str> = jobs.flat_map(str::split_whitespace).collect();
        needed.sort_unstable();
        run.sort_unstable();
        assert_eq!(run, needed, "{script}");
    }
}

#[test]
fn crates_are_published_after_those_that_they_need() {
    let script = fs::read_to_string(root().join("scripts/crates.sh")).unwrap();
    let list = script.split_once("CRATES=(").unwrap().1.split_once(')').unwrap().0;
    let folders: Vec<&str> = list.split_whitespace().collect();
    let manifests = folders.iter().map(|folder| fs::read_to_string(root().join(folder).join("Cargo.toml")).unwrap());
    let manifests: Vec<toml::Table> = manifests.map(|text| toml::from_str(&text).unwrap()).collect();
    let names: Vec<&str> = manifests.iter().map(|manifest| manifest["package"]["name"].as_str().unwrap()).collect();
    for (at, manifest) in manifests.iter().enumerate() {
        let needed = manifest["dependencies"].as_table().unwrap().keys().filter(|name| name.starts_with("gnntop"));
        for name in needed {
            assert!(names[..at].contains(&name.as_str()), "{} needs {name}", names[at]);
        }
    }
    let published = |workspace: &str| -> Vec<String> {
        let text = fs::read_to_string(root().join(workspace).join("Cargo.toml")).unwrap();
        let manifest: toml::Table = toml::from_str(&text).unwrap();
        let members = manifest["workspace"]["members"].as_array().unwrap().iter();
        let members = members.map(|member| Path::new(workspace).join(member.as_str().unwrap()).display().to_string());
        members.filter(|member| is_published(member)).collect()
    };
    for member in [published(""), published("workloads")].concat() {
        assert!(folders.contains(&member.as_str()), "{member} is not in {folders:?}");
    }
}

fn is_published(member: &str) -> bool {
    let manifest: toml::Table =
        toml::from_str(&fs::read_to_string(root().join(member).join("Cargo.toml")).unwrap()).unwrap();
    manifest["package"].get("publish").is_none_or(|publish| publish.as_bool() != Some(false))
}
