//! A recording of each kind of block reads as its listing says.

use std::fs;
use std::path::Path;

use gnntop_fixtures::listing;

const KINDS: [&str; 2] = ["rows", "packed"];

#[test]
fn golden_recordings_match_listings() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../recordings/golden");
    for name in KINDS {
        let read = listing::list(&fs::read(folder.join(name).with_extension("gnntop")).unwrap());
        let expected = fs::read_to_string(folder.join(name).with_extension("txt")).unwrap();
        for (number, (read, expected)) in read.lines().zip(expected.lines()).enumerate() {
            assert_eq!(read, expected, "{name}, line {}", number + 1);
        }
        assert_eq!(read.len(), expected.len(), "{name}");
    }
}

#[test]
fn golden_recordings_contain_every_kind() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../recordings/golden");
    KINDS.iter().for_each(|name| assert_every_kind(&folder.join(name).with_extension("txt")));
}

fn assert_every_kind(path: &Path) {
    let listing = fs::read_to_string(path).unwrap();
    let words: Vec<&str> = listing.lines().filter_map(|line| line.split_whitespace().next()).collect();
    for kind in [
        "segment",
        "name",
        "track",
        "signal",
        "fact",
        "anchor",
        "block",
        "end",
        "span",
        "step",
        "counter",
        "mark",
        "open",
        "sample",
        "absent",
        "allocation",
        "memory",
        "device",
        "frame",
        "sampled",
        "rival",
        "past",
    ] {
        assert!(words.contains(&kind), "no {kind}");
    }
    for harm in ["damage", "unknown", "newer", "malformed"] {
        assert!(!words.contains(&harm), "{harm}");
    }
}
