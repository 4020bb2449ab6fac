//! Tables, traces and settings files with damage of any kind: the fuzz targets' checks, with mutants of their seeds.

mod checks;

use std::fs;
use std::path::Path;

use proptest::prelude::*;

/// Numbers and signs that such files trip over.
const TOKENS: [&str; 16] = [
    "",
    ",",
    ";",
    "\n",
    "\"",
    "-1",
    "0",
    "1e308",
    "-1e-308",
    "nan",
    "inf",
    "18446744073709551616",
    "9223372036854775807",
    "\u{202e}",
    "[[",
    "{\"ph\":\"X\"",
];

/// Where trackers' files are.
const HISTORIES: [&str; 4] = [
    "tests/import/histories",
    "tests/import/histories/wandb",
    "tests/import/histories/tensorboard/torch",
    "tests/import/histories/tensorboard/tensors",
];

/// What is done to a file.
#[derive(Clone, Debug)]
enum Damage {
    /// Another byte at this place.
    Byte(usize, u8),
    /// Ends here.
    Cut(usize),
    /// One of the tokens in the place of so many bytes.
    Token(usize, usize, usize),
    /// These bytes once more, elsewhere.
    Copy(usize, usize, usize),
}

impl Damage {
    fn any() -> impl Strategy<Value = Self> {
        let place = || any::<usize>();
        prop_oneof![
            3 => (place(), any::<u8>()).prop_map(|(at, byte)| Self::Byte(at, byte)),
            1 => place().prop_map(Self::Cut),
            4 => (place(), 0..12_usize, 0..TOKENS.len()).prop_map(|(at, len, token)| Self::Token(at, len, token)),
            2 => (place(), 0..80_usize, place()).prop_map(|(from, len, to)| Self::Copy(from, len, to)),
        ]
    }

    fn apply(&self, bytes: &mut Vec<u8>) {
        let len = bytes.len();
        let place = |at: usize| at % (len + 1);
        match *self {
            Self::Byte(at, byte) => bytes.iter_mut().skip(place(at)).take(1).for_each(|old| *old = byte),
            Self::Cut(at) => bytes.truncate(place(at)),
            Self::Token(at, replaced, token) => {
                let end = (place(at) + replaced).min(len);
                bytes.splice(place(at)..end, TOKENS[token].bytes());
            }
            Self::Copy(from, count, to) => {
                let copy = bytes[place(from)..(place(from) + count).min(len)].to_vec();
                bytes.splice(place(to)..place(to), copy);
            }
        }
    }
}

/// One of the seeds in these folders, damaged up to eight times.
fn mutant(folders: &[&str]) -> impl Strategy<Value = Vec<u8>> + use<> {
    let entries = |folder: &&str| fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join(folder)).unwrap();
    let paths = folders.iter().flat_map(entries).map(|entry| entry.unwrap().path()).filter(|path| path.is_file());
    let files: Vec<Vec<u8>> = paths.map(|path| fs::read(path).unwrap()).collect();
    assert!(!files.is_empty());
    (prop::sample::select(files), prop::collection::vec(Damage::any(), 0..8)).prop_map(|(mut bytes, damages)| {
        damages.iter().for_each(|damage| damage.apply(&mut bytes));
        bytes
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn tables_are_imported_or_refused(bytes in mutant(&["fuzz/seeds/table"])) {
        checks::table(&bytes);
    }

    #[test]
    fn traces_are_imported_or_refused(bytes in mutant(&["fuzz/seeds/trace"])) {
        checks::chrome_trace(&bytes);
    }

    #[test]
    fn histories_are_imported_or_refused(bytes in mutant(&HISTORIES)) {
        checks::history(&bytes);
    }

    #[test]
    fn settings_are_parsed_or_the_mistake_is_reported(bytes in mutant(&["fuzz/seeds/settings"])) {
        checks::settings(&bytes);
    }
}
