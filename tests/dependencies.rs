//! What others wrote: under which licences, and from where. It is what `cargo deny check licenses bans sources` holds by the
//! same list (deny.toml), of the crates that are built here, without a tool to install. Known vulnerabilities are not looked
//! for: that takes a database from the network, and `./check.sh deny` has it where cargo-deny is installed.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::Value;
use spdx::{Expression, Licensee, ParseMode};

const CRATES_IO: &str = "registry+https://github.com/rust-lang/crates.io-index";

/// Every crate that is built on this machine.
fn packages() -> Vec<Value> {
    let version = Command::new("rustc").arg("-vV").output().unwrap();
    let version = String::from_utf8(version.stdout).unwrap();
    let host = version.lines().find_map(|line| line.strip_prefix("host: ")).unwrap();
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["metadata", "--locked", "--offline", "--format-version", "1", "--filter-platform", host]);
    let output = cargo.current_dir(env!("CARGO_MANIFEST_DIR")).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let metadata: Value = serde_json::from_slice(&output.stdout).unwrap();
    metadata["packages"].as_array().unwrap().clone()
}

#[test]
fn every_licence_is_one_that_we_allow() {
    let text = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("deny.toml")).unwrap();
    let rules: toml::Table = toml::from_str(&text).unwrap();
    let allowed = rules["licenses"]["allow"].as_array().unwrap().iter().map(|name| name.as_str().unwrap());
    let allowed: Vec<Licensee> = allowed.map(|name| Licensee::parse(name).unwrap()).collect();
    for package in packages() {
        let (name, licence) = (&package["name"], package["license"].as_str().unwrap_or_default());
        let licence = Expression::parse_mode(licence, ParseMode::LAX).unwrap_or_else(|error| panic!("{name}: {error}"));
        let is_allowed = licence.evaluate(|required| allowed.iter().any(|one| one.satisfies(required)));
        assert!(is_allowed, "{name}: {licence}");
    }
}

#[test]
fn everything_comes_from_crates_io_in_a_version_that_is_said() {
    for package in packages() {
        let name = &package["name"];
        assert!(package["source"].is_null() || package["source"] == CRATES_IO, "{name} from {}", package["source"]);
        if package["source"].is_null() {
            for needed in package["dependencies"].as_array().unwrap() {
                assert!(needed["path"].is_string() || needed["req"] != "*", "{name} takes any {}", needed["name"]);
            }
        }
    }
}
