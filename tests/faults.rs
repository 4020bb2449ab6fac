//! What is no recording, or only a part of one, given to the commands that read recordings; and the tests that docs/reliability.md
//! names.

use std::fs;
use std::path::Path;

use crate::sessions::Sessions;
use gnntop_fixtures::TrainingRun;

fn short_run() -> Vec<u8> {
    TrainingRun { steps: 3, has_hardware: false, ..TrainingRun::default() }.bytes()
}

/// Both commands that read recordings, on the same file.
fn each_command(sessions: &Sessions, mut check: impl FnMut(&str, crate::sessions::Ran)) {
    check("report", sessions.run(["report", "a.gnntop"]));
    check("replay", sessions.run(["replay", "a.gnntop", "--speed", "100"]));
}

#[test]
fn invalid_recording_is_refused_in_one_line() {
    let sessions = Sessions::new();
    let cases: [(&[u8], &str); 4] = [
        (b"", "a.gnntop is empty: not a recording"),
        (b"idx,smiles,homolumogap\n0,CCO,5.0\n", "a.gnntop is a text file: not a recording"),
        (&[0; 5000], "a.gnntop is not a recording"),
        (&short_run()[..20], "a.gnntop is truncated or damaged: it has no complete frame"),
    ];
    for (bytes, words) in cases {
        sessions.file("a.gnntop", bytes);
        each_command(&sessions, |_, ran| ran.assert_refused(words));
        for command in ["report", "replay"] {
            sessions.run_with([command, "-"], bytes).assert_refused(&words.replace("a.gnntop", "standard input"));
        }
    }
    sessions.run(["report", "missing.gnntop"]).assert_refused("cannot read missing.gnntop: No such file");
    sessions.run(["replay", "missing.gnntop"]).assert_refused("cannot read missing.gnntop: No such file");
}

#[test]
fn a_newer_format_is_refused_by_its_number() {
    let sessions = Sessions::new();
    let mut bytes = short_run();
    fixtures_newer(&mut bytes);
    sessions.file("a.gnntop", &bytes);
    each_command(&sessions, |_, ran| {
        ran.assert_refused("is written in format 9, this gnntop reads up to 1: update gnntop")
    });
}

/// Changes the major version in the first frame, and its checksum with it. The layout is in the crate
/// `gnntop-wire`: two sync bytes, check, CRC-32 of what follows, kind, flags, length (3), then the payload.
pub fn fixtures_newer(bytes: &mut [u8]) {
    const HEADER_LEN: usize = 12;
    let len = u32::from_le_bytes([bytes[9], bytes[10], bytes[11], 0]) as usize;
    assert_eq!(&bytes[HEADER_LEN..HEADER_LEN + 6], b"gnntop");
    bytes[HEADER_LEN + 6] = 9;
    let step = |crc: u32, _| if crc & 1 == 1 { crc >> 1 ^ 0xEDB8_8320 } else { crc >> 1 };
    let body = &bytes[7..HEADER_LEN + len];
    let crc = !body.iter().fold(!0_u32, |crc, byte| (0..8).fold(crc ^ u32::from(*byte), step));
    bytes[3..7].copy_from_slice(&crc.to_le_bytes());
}

#[test]
fn a_cut_recording_is_reported_up_to_the_cut() {
    let sessions = Sessions::new();
    let whole = TrainingRun::default().bytes();
    sessions.file("a.gnntop", &whole[..whole.len() * 2 / 3]);
    each_command(&sessions, |command, ran| {
        assert_eq!(ran.code, Some(0), "{ran:?}");
        assert!(ran.err.contains("warning: ") && ran.err.contains("damaged in one place"), "{ran:?}");
        assert!(ran.out.contains(if command == "report" { "steps" } else { "step " }), "{ran:?}");
    });
}

#[test]
fn damage_in_the_middle_is_a_warning() {
    let sessions = Sessions::new();
    let mut bytes = TrainingRun::default().bytes();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 0x10;
    sessions.file("a.gnntop", &bytes);
    each_command(&sessions, |_, ran| {
        assert_eq!(ran.code, Some(0), "{ran:?}");
        assert!(ran.err.contains("damaged in one place, first at byte "), "{ran:?}");
    });
}

/// The library's tests cut and flip each byte; here the whole program is tried at places spread over the file.
#[test]
fn no_cut_and_no_flipped_byte_crashes_the_program() {
    let sessions = Sessions::new();
    let whole = short_run();
    for at in (0..whole.len()).step_by(whole.len() / 12) {
        let path = sessions.file("a.gnntop", &whole[..at]);
        let cut = sessions.run(["report", "a.gnntop"]);
        assert!(matches!(cut.code, Some(0 | 1)) && cut.err.lines().count() <= 1, "cut at {at}: {cut:?}");
        let mut flipped = whole.clone();
        flipped[at] ^= 0xFF;
        fs::write(path, flipped).unwrap();
        let flipped = sessions.run(["report", "a.gnntop"]);
        assert_eq!(flipped.code, Some(0), "byte {at}: {flipped:?}");
        assert!(flipped.err.contains("damaged"), "byte {at}: {flipped:?}");
    }
}

/// Whether a file of Rust or Python has a function of this name.
fn has_function(path: &str, name: &str) -> bool {
    let text = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(path)).unwrap();
    ["fn", "def"].iter().any(|keyword| text.contains(&format!("{keyword} {name}(")))
}

#[test]
fn every_promise_of_the_docs_names_its_tests() {
    let docs = include_str!("../docs/reliability.md");
    let promises: Vec<&str> = docs
        .lines()
        .filter_map(|line| line.strip_prefix("- **")?.split_once("**"))
        .map(|(promise, _)| promise)
        .collect();
    let (_, table) = docs.split_once("| promise | tests |").unwrap();
    let rows = table.lines().skip(2).map_while(|line| line.strip_prefix("| ")?.split_once(" | "));
    let rows: Vec<(&str, &str)> = rows.collect();
    assert_eq!(rows.iter().map(|(promise, _)| *promise).collect::<Vec<_>>(), promises);
    for (promise, tests) in rows {
        let mut path = "";
        for name in tests.split('`').skip(1).step_by(2) {
            match name.contains('/') {
                true => path = name,
                false => assert!(has_function(path, name), "{promise}: {path} has no {name}"),
            }
        }
    }
}
