//! The trait of every check over ranks.

use super::evidence::RankEvidence;
use crate::findings::finding::{CheckOutcome, FindingKind};

/// Looks for one kind of finding over ranks.
pub(super) trait RankCheck: Sync {
    /// What it looks for.
    fn kind(&self) -> FindingKind;

    /// What it found.
    fn check(&self, evidence: &RankEvidence<'_>) -> CheckOutcome;
}
