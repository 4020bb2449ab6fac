//! The output of `gnntop --version`: the version, the commit it was built from, and the built-in features.

use std::sync::LazyLock;

/// Set by the scripts that build releases; asking git in each build would compile everything again after each commit.
const COMMIT: Option<&str> = option_env!("GNNTOP_COMMIT");

const FEATURES: [(&str, bool); 4] = [
    ("workloads", cfg!(feature = "workloads")),
    ("cuda", cfg!(feature = "cuda")),
    ("mpi", cfg!(feature = "mpi")),
    ("nccl", cfg!(feature = "nccl")),
];

/// Such as `0.1.0 (commit 1a2b3c4; workloads, cuda)`.
pub(super) static LONG: LazyLock<String> = LazyLock::new(|| {
    let features: Vec<_> = FEATURES.iter().filter(|(_, is_in)| *is_in).map(|(name, _)| *name).collect();
    let features = if features.is_empty() { "without built-in trainings".to_owned() } else { features.join(", ") };
    let commit =
        COMMIT.filter(|commit| !commit.is_empty()).map(|commit| format!("commit {commit}; ")).unwrap_or_default();
    format!("{} ({commit}{features})", env!("CARGO_PKG_VERSION"))
});
