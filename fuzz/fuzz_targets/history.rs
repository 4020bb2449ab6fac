//! Any bytes, taken for the history that a tracker keeps: what holds of them is in `tests/mutants/checks.rs`.

#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../../tests/mutants/checks.rs"]
#[allow(dead_code)]
mod checks;

fuzz_target!(|bytes: &[u8]| checks::history(bytes));
