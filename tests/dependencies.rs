//! What others wrote: under which licences, and from where. It is what `cargo deny check licenses bans sources` holds by the
//! same list (deny.toml), of the crates that are built here, without a tool to install. Known vulnerabilities are not looked
//! for: that takes a database from the network, and `./check.sh deny` has it where cargo-deny is installed.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::Value;
use spdx::{Expression, Licensee, ParseMode};

const CRATES_IO: &str = "registry+https://github.com/rust-lang/crates.io-index";

/// The program's workspace, and the one of its trainings.
const WORKSPACES: [&str; 2] = ["Cargo", "workloads/Cargo"];

/// Every crate that is built on this machine, from either workspace.
fn packages() -> Vec<Value> {
    let version = Command::new("rustc").arg("-vV").output().unwrap();
    let version = String::from_utf8(version.stdout).unwrap();
    let host = version.lines().find_map(|line| line.strip_prefix("host: ")).unwrap();
    let of = |workspace: &str| {
        let mut cargo = Command::new(env!("CARGO"));
        cargo.args(["metadata", "--locked", "--format-version", "1", "--filter-platform", host]);
        cargo.arg("--manifest-path").arg(format!("{workspace}.toml")).current_dir(env!("CARGO_MANIFEST_DIR"));
        let output = cargo.output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let metadata: Value = serde_json::from_slice(&output.stdout).unwrap();
        metadata["packages"].as_array().unwrap().clone()
    };
    WORKSPACES.into_iter().flat_map(of).collect()
}

/// What is compiled once for both workspaces, and tested as what is released: the same versions.
#[test]
fn the_trainings_are_built_with_the_programs_dependencies() {
    let versions = |workspace: &str| -> BTreeSet<(String, String)> {
        let text = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("{workspace}.lock"))).unwrap();
        let lock: toml::Table = toml::from_str(&text).unwrap();
        let text = |package: &toml::Value, key: &str| package[key].as_str().unwrap().to_owned();
        lock["package"].as_array().unwrap().iter().map(|one| (text(one, "name"), text(one, "version"))).collect()
    };
    let [program, trainings] = WORKSPACES.map(versions);
    let other: Vec<_> = trainings.difference(&program).collect();
    assert!(other.is_empty(), "only in workloads/Cargo.lock: {other:?}; copy Cargo.lock there and run cargo once");
}

/// Likewise how it is compiled.
#[test]
fn the_trainings_are_built_with_the_programs_profiles() {
    let [mut program, mut trainings] = WORKSPACES.map(|workspace| {
        let text = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("{workspace}.toml"))).unwrap();
        toml::from_str::<toml::Table>(&text).unwrap()
    });
    // That of the small program is of a program without trainings.
    assert!(program["profile"].as_table_mut().unwrap().remove("small").is_some());
    // Cargo complains of a package that is not in the workspace.
    let own = program["profile"]["dev"]["package"]["gnntop"].clone();
    trainings["profile"]["dev"]["package"].as_table_mut().unwrap().insert("gnntop".to_owned(), own);
    assert_eq!(program["profile"], trainings["profile"]);
    assert_eq!(program["workspace"]["lints"], trainings["workspace"]["lints"]);
    assert_eq!(program["workspace"]["package"], trainings["workspace"]["package"]);
}

#[test]
fn every_licence_is_allowed() {
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
fn dependencies_come_from_crates_io_with_fixed_versions() {
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
