//! Resolves what a person typed (a process id, a name, a directory, a file or nothing) to a session or recording.

use std::fs;
use std::path::{Path, PathBuf};

use gnntop_sessions::Error as SessionsError;
use gnntop_sessions::discover::{self, ListedSession};

use super::process::Process;
use super::runs::{self, SessionGroup};

/// The result of resolving an argument.
#[derive(Debug)]
pub enum Target {
    /// A session, live or ended.
    Session(Box<ListedSession>),
    /// A recording; `-` is standard input.
    Recording(PathBuf),
    /// A live process that publishes nothing.
    Process(Process),
}

/// Why an argument could not be resolved.
#[derive(Debug, thiserror::Error)]
pub enum TargetError {
    /// The sessions directory cannot be read.
    #[error(transparent)]
    Discover(#[from] SessionsError),
    /// Nothing was named, and nothing is publishing.
    #[error(
        "no live session in {}; start one with `gnntop run pna`, or give a process id, a session's directory or a \
         recording", dir.display()
    )]
    NoSession {
        /// Where sessions were looked for.
        dir: PathBuf,
    },
    /// Nothing has this name.
    #[error("no session named {name}; {}", list_sessions(sessions))]
    UnknownName {
        /// The name.
        name: String,
        /// The existing ones, one label each.
        sessions: Vec<String>,
    },
    /// No process has this id.
    #[error("no session and no process with pid {pid}; {}", list_sessions(sessions))]
    UnknownPid {
        /// The process id.
        pid: u32,
        /// The existing ones, one label each.
        sessions: Vec<String>,
    },
    /// More than one session could be meant.
    #[error("{} live sessions match; choose one by its pid: {}", sessions.len(), sessions.join(", "))]
    Ambiguous {
        /// One label for each.
        sessions: Vec<String>,
    },
    /// A directory that is not a session.
    #[error("{} {error}", path.display())]
    NotASession {
        /// The directory.
        path: PathBuf,
        /// Why it cannot be read as one.
        error: SessionsError,
    },
}

fn list_sessions(sessions: &[String]) -> String {
    if sessions.is_empty() {
        "there are no live sessions".into()
    } else {
        format!("live sessions: {}", sessions.join(", "))
    }
}

/// A session's label in messages: `pna (pid 4711)`.
pub fn label(session: &ListedSession) -> String {
    format!("{} (pid {})", session.info.name, session.info.pid)
}

/// Resolves `argument` among the sessions in `dir`; without one, the only live session.
///
/// A path to an existing file or directory takes precedence over a name; a number is a process id. Among several sessions
/// with one name, the only live one is chosen, or the most recently active if none is live.
///
/// # Errors
/// What exists instead, in one line.
pub fn resolve(argument: Option<&str>, dir: &Path) -> Result<Target, TargetError> {
    match argument {
        None => only_live(dir),
        Some("-") => Ok(Target::Recording(PathBuf::from("-"))),
        Some(argument) if argument.parse::<u32>().is_ok() => by_pid(argument.parse().unwrap_or_default(), dir),
        Some(argument) => match fs::metadata(argument) {
            Ok(meta) if meta.is_dir() => by_directory(Path::new(argument)),
            Ok(_) => Ok(Target::Recording(PathBuf::from(argument))),
            Err(_) => by_name(argument, dir),
        },
    }
}

fn only_live(dir: &Path) -> Result<Target, TargetError> {
    let live: Vec<_> = discover::list(dir)?.sessions.into_iter().filter(|session| session.alive).collect();
    match runs::group(&live).as_slice() {
        [] => Err(TargetError::NoSession { dir: dir.to_owned() }),
        [only] => Ok(first_of(only)),
        several => Err(TargetError::Ambiguous { sessions: several.iter().map(group_label).collect() }),
    }
}

/// A run is chosen by any of its sessions.
fn first_of(group: &SessionGroup) -> Target {
    Target::Session(Box::new(group.newest().clone()))
}

fn by_pid(pid: u32, dir: &Path) -> Result<Target, TargetError> {
    // Live sessions come first, so that an old session of a reused process id does not hide the new one.
    let mut sessions = discover::list(dir)?.sessions;
    let found = sessions.iter().position(|session| session.info.pid == pid);
    let process = Process::find(pid);
    match (found, process) {
        (Some(at), None) => Ok(Target::Session(Box::new(sessions.remove(at)))),
        (Some(at), Some(_)) if sessions[at].alive => Ok(Target::Session(Box::new(sessions.remove(at)))),
        // A scheduler's job number may be a run's id.
        (_, process) => match (by_name(&pid.to_string(), dir), process) {
            (Ok(run), _) => Ok(run),
            (Err(_), Some(process)) => Ok(Target::Process(process)),
            (Err(TargetError::UnknownName { sessions, .. }), None) => Err(TargetError::UnknownPid { pid, sessions }),
            (Err(error), None) => Err(error),
        },
    }
}

fn by_directory(path: &Path) -> Result<Target, TargetError> {
    // The sessions of the same run are beside it, whatever the current directory is.
    let session = discover::read(&std::path::absolute(path).unwrap_or_else(|_| path.to_owned()));
    let refused = |error| TargetError::NotASession { path: path.to_owned(), error };
    session.map(|session| Target::Session(Box::new(session))).map_err(refused)
}

/// A session's name, its directory's, or a run's id.
fn by_name(name: &str, dir: &Path) -> Result<Target, TargetError> {
    let sessions = discover::list(dir)?.sessions;
    let called = |session: &ListedSession| {
        let is_run = session.info.place.as_ref().is_some_and(|place| place.run == name);
        is_run || session.info.name == name || session.dir.file_name().is_some_and(|dir_name| dir_name == name)
    };
    let mut found = runs::group(&sessions);
    found.retain(|group| group.sessions.iter().any(called));
    let living = found.iter().filter(|group| group.living() > 0).count();
    match (found.as_slice(), living) {
        ([], _) => Err(TargetError::UnknownName { name: name.to_owned(), sessions: live_labels(&sessions) }),
        ([first, ..], 0 | 1) => Ok(first_of(first)),
        _ => {
            let living = found.iter().filter(|group| group.living() > 0);
            Err(TargetError::Ambiguous { sessions: living.map(group_label).collect() })
        }
    }
}

/// A run's label in messages: `run 5f3a, 4 ranks`, or its only session's.
fn group_label(group: &SessionGroup) -> String {
    match (group.id(), group.sessions.as_slice()) {
        (Some(id), [_, _, ..]) => format!("run {id}, {} ranks", group.ranks().0),
        (_, sessions) => sessions.iter().map(label).collect(),
    }
}

fn live_labels(sessions: &[ListedSession]) -> Vec<String> {
    let live: Vec<ListedSession> = sessions.iter().filter(|session| session.alive).cloned().collect();
    runs::group(&live).iter().map(group_label).collect()
}

#[cfg(test)]
mod tests {
    use super::super::fixture::{self, SessionDir};
    use super::*;

    fn add(dir: &Path, name: &str, pid: u32) -> SessionDir {
        let session = SessionDir::create(dir, name, pid);
        session.write_segment(0, &fixture::segment(name, pid, 0));
        session
    }

    fn pid_of(target: Target) -> u32 {
        match target {
            Target::Session(session) => session.info.pid,
            other => panic!("{other:?}"),
        }
    }

    fn refusal(argument: Option<&str>, dir: &Path) -> String {
        resolve(argument, dir).unwrap_err().to_string()
    }

    /// Process ids above the largest that Linux gives out.
    const A: u32 = 900_000_001;
    const B: u32 = 900_000_002;

    #[test]
    fn resolve_without_argument_is_only_live_session() {
        let dir = tempfile::tempdir().unwrap();
        add(dir.path(), "ended", A);
        assert!(refusal(None, dir.path()).starts_with("no live session in "));
        let one = add(dir.path(), "pna", B);
        let _lock = one.lock();
        assert_eq!(pid_of(resolve(None, dir.path()).unwrap()), B);
        let two = add(dir.path(), "gin", B + 1);
        let _lock = two.lock();
        let refusal = refusal(None, dir.path());
        assert!(refusal.starts_with("2 live sessions match"), "{refusal}");
        assert!(refusal.contains("gin (pid 900000003)") && !refusal.contains("ended"), "{refusal}");
    }

    #[test]
    fn resolve_name_prefers_live_session() {
        let dir = tempfile::tempdir().unwrap();
        add(dir.path(), "pna", A);
        assert_eq!(pid_of(resolve(Some("pna"), dir.path()).unwrap()), A);
        let live = add(dir.path(), "pna", B);
        let _lock = live.lock();
        assert_eq!(pid_of(resolve(Some("pna"), dir.path()).unwrap()), B);
        let dir_name = live.path().file_name().unwrap().to_str().unwrap();
        assert_eq!(pid_of(resolve(Some(dir_name), dir.path()).unwrap()), B);
        let refusal = refusal(Some("pan"), dir.path());
        assert_eq!(refusal, "no session named pan; live sessions: pna (pid 900000002)");
    }

    #[test]
    fn resolve_number_is_pid() {
        let dir = tempfile::tempdir().unwrap();
        add(dir.path(), "pna", A);
        assert_eq!(pid_of(resolve(Some("900000001"), dir.path()).unwrap()), A);
        let own = std::process::id();
        assert!(matches!(resolve(Some(&own.to_string()), dir.path()), Ok(Target::Process(p)) if p.pid() == own));
        assert!(refusal(Some("900000009"), dir.path()).starts_with("no session and no process with pid 900000009"));
    }

    #[test]
    fn a_path_is_a_session_or_a_recording() {
        let dir = tempfile::tempdir().unwrap();
        let session = add(dir.path(), "pna", A);
        let path = session.path().to_str().unwrap();
        assert_eq!(pid_of(resolve(Some(path), dir.path()).unwrap()), A);
        let file = format!("{path}/00000000.gnntop");
        assert!(matches!(resolve(Some(&file), dir.path()), Ok(Target::Recording(_))));
        assert!(refusal(dir.path().to_str(), dir.path()).ends_with("has no segments"));
    }
}
