//! What every check over ranks is.

use super::evidence::SideBySide;
use crate::findings::finding::{Kind, Outcome};

/// Looks for one kind of finding over ranks.
pub(super) trait Check: Sync {
    /// What it looks for.
    fn kind(&self) -> Kind;

    /// What there is of it.
    fn look(&self, evidence: &SideBySide<'_>) -> Outcome;
}
