//! The trait of every check over ranks.

use super::evidence::SideBySide;
use crate::findings::finding::{Kind, Outcome};

/// Looks for one kind of finding over ranks.
pub(super) trait Check: Sync {
    /// What it looks for.
    fn kind(&self) -> Kind;

    /// What it found.
    fn look(&self, evidence: &SideBySide<'_>) -> Outcome;
}
