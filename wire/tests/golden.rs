//! Recordings of every released format version are read for ever.

#![allow(clippy::unwrap_used, clippy::panic, missing_docs)]

#[path = "../examples/listing/mod.rs"]
mod listing;

use std::fs;
use std::path::Path;

#[test]
fn every_golden_recording_reads_as_its_listing_says() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../recordings/golden");
    let mut versions = 0;
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "gnntop") {
            let read = listing::list(&fs::read(&path).unwrap());
            let expected = fs::read_to_string(path.with_extension("txt")).unwrap();
            for (number, (read, expected)) in read.lines().zip(expected.lines()).enumerate() {
                assert_eq!(read, expected, "{}, line {}", path.display(), number + 1);
            }
            assert_eq!(read.len(), expected.len(), "{}", path.display());
            versions += 1;
        }
    }
    assert_eq!(versions, usize::from(gnntop_wire::FORMAT_MAJOR), "one recording of each version");
}

#[test]
fn the_newest_golden_recording_holds_every_kind_of_thing() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../recordings/golden");
    let newest = folder.join(format!("format-{}.txt", gnntop_wire::FORMAT_MAJOR));
    let listing = fs::read_to_string(newest).unwrap();
    let words: Vec<&str> = listing.lines().filter_map(|line| line.split_whitespace().next()).collect();
    for kind in [
        "segment",
        "name",
        "track",
        "signal",
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
    ] {
        assert!(words.contains(&kind), "no {kind}");
    }
    for harm in ["damage", "unknown", "newer", "malformed"] {
        assert!(!words.contains(&harm), "{harm}");
    }
}
