//! What a person names on the command line: a session, live or kept, a recording, or a program that publishes nothing. All
//! commands take the same names.

use std::path::{Path, PathBuf};

use anyhow::bail;

use super::run::{self, ProgramEntry};
use gnntop_analysis::source::process::Process;
use gnntop_analysis::source::target::{self, Target, TargetError, is_same_program};
use gnntop_analysis::source::{FULL_READ_LIMIT, Recording, Source, follow};
use gnntop_sessions::{discover, layout};

/// How such an argument is shown in usage and completions.
pub(super) const NAMED: &str = "NAME|PID|FILE";

/// The session, recording or process that is meant; without such a session, the only program of this name that
/// `gnntop run` has started and that publishes nothing, or nothing yet. `gnntop list --live` shows both.
pub(super) fn find(named: Option<&str>) -> Result<Target, TargetError> {
    let dir = layout::sessions_dir();
    target::resolve(named, &dir).or_else(|error| {
        use TargetError::{NoSession, UnknownName, UnknownPid};
        if !matches!(error, NoSession { .. } | UnknownName { .. } | UnknownPid { .. }) {
            return Err(error);
        }
        let mut programs = run::unpublished(&discover::list(&dir)?.sessions);
        let is_it = |program: &ProgramEntry, name: &str| match &error {
            UnknownPid { pid, .. } => program.program == *pid,
            _ => is_same_program(&program.name, name),
        };
        programs.retain(|program| named.is_none_or(|name| is_it(program, name)));
        match programs.as_slice() {
            [] => Err(error),
            [only] => match only.elsewhere() {
                Some(place) => Err(TargetError::Elsewhere { label: only.label(), place }),
                None => Process::find(only.program).map(Target::Process).ok_or(error),
            },
            several => Err(TargetError::SeveralLive { sessions: several.iter().map(ProgramEntry::label).collect() }),
        }
    })
}

/// The recording or the session's directory that is meant, for commands that read files.
pub(super) fn find_path(named: &Path) -> anyhow::Result<PathBuf> {
    let Some(name) = named.to_str() else { return Ok(named.to_owned()) };
    match find(Some(name))? {
        Target::Recording(path) => Ok(path),
        Target::Session(session) => Ok(session.dir),
        Target::Process(process) => bail!("process {} publishes nothing", process.pid()),
    }
}

/// The other side of a comparison, if one is named: a whole recording, or a live session as it continues.
///
/// # Errors
/// If it cannot be read, or publishes no steps.
pub(super) fn open_against(named: Option<&str>) -> anyhow::Result<Option<Box<dyn Source>>> {
    let Some(named) = named else { return Ok(None) };
    Ok(Some(match find(Some(named))? {
        Target::Session(session) => follow(&session),
        Target::Recording(path) => Box::new(Recording::open_with_past(&path, FULL_READ_LIMIT)?.0),
        Target::Process(_) => bail!("{named} publishes no steps, so there is nothing to compare with"),
    }))
}
