//! The findings against recordings whose causes are known: `recordings/labelled`, made by `examples/labelled`.

pub mod score;

use std::env;
use std::path::{Path, PathBuf};

/// The recordings that ship, or those in the folder that `GNNTOP_LABELLED` names.
fn recordings() -> PathBuf {
    let shipped = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../recordings/labelled");
    env::var_os("GNNTOP_LABELLED").map_or_else(shipped, PathBuf::from)
}

/// `cargo test -p gnntop-analysis --test it labelled -- --nocapture` prints the table of `docs/findings.md`.
#[test]
fn labelled_recordings_match_findings() {
    let scored = score::score_all(&recordings());
    println!("{}", score::table(&scored));
    assert!(scored.len() >= 30, "{} recordings", scored.len());
    assert!(scored.iter().filter(|one| one.name.starts_with("clean-")).count() >= 10);
    let between_ranks = ["straggler", "starved-rank", "imbalance", "work-not-conserved", "communication-bound"];
    let others = ["oversubscribed", "hang", "above-ideal", "confounded"];
    for kind in between_ranks.into_iter().chain(others) {
        assert!(scored.iter().any(|one| one.expected.contains(kind)), "no recording with {kind}");
    }
    let wrong: Vec<_> = scored.iter().filter(|one| !one.is_right()).collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
}
