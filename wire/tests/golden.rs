//! Recordings of every released format version stay readable.
//!
//! `format-1` is version 1.0; a minor version that adds something has a pair of its own, such as `format-1.2`.

use std::fs;
use std::path::Path;

use gnntop_fixtures::listing;

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
    assert_eq!(
        versions, 6,
        "1.0, 1.2, which adds devices to the places of 1.1, 1.3 with facts, 1.4 with the past, 2.0, packed, 2.1 with chunks"
    );
}

#[test]
fn the_newest_golden_recording_holds_every_kind_of_thing() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../recordings/golden");
    let newest = format!("format-{}.{}.txt", gnntop_wire::FORMAT_MAJOR, gnntop_wire::FORMAT_MINOR);
    // What recordings are written in, and live sessions.
    [newest.as_str(), "format-1.4.txt"].iter().for_each(|name| holds_every_kind(&folder.join(name)));
}

fn holds_every_kind(path: &Path) {
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
        "past",
    ] {
        assert!(words.contains(&kind), "no {kind}");
    }
    for harm in ["damage", "unknown", "newer", "malformed"] {
        assert!(!words.contains(&harm), "{harm}");
    }
}
