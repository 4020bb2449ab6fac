//! What a Slurm job that runs no more has left in this machine's sessions directory.

use std::path::{Path, PathBuf};

use anyhow::bail;
use gnntop_analysis::source::{runs, target};
use gnntop_sessions::discover;

use super::super::list::is_of_job;

/// The directory of the session that is meant: of the job's run, or of the one of its runs that has this name.
///
/// # Errors
/// If the job has none here, none of this name, or several that could be meant.
pub(super) fn find(job: &str, run: Option<&str>, dir: &Path) -> anyhow::Result<PathBuf> {
    let mut groups = runs::group(&discover::list(dir)?.sessions);
    groups.retain(|group| group.id().is_some_and(|id| is_of_job(id, job)));
    let sessions: Vec<_> = groups.into_iter().flat_map(|group| group.sessions).collect();
    if sessions.is_empty() {
        bail!("{} has no session of it: set GNNTOP_DIR to the directory that has them", dir.display());
    }
    match run {
        Some(run) => Ok(target::among(run, &sessions)?.dir),
        // Its number begins its runs' ids.
        None => Ok(target::named(job, &sessions)?.dir),
    }
}
