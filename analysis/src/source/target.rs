//! Resolves what a person typed (a process id, a name, a directory, a file or nothing) to a session or recording.

use std::fs;
use std::path::{Path, PathBuf};

use gnntop_sessions::Error as SessionsError;
use gnntop_sessions::discover::{self, ListedSession};

use super::file_format;
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
    #[error("no session named {name}{}; {}", file_in_words(*file), list_sessions(sessions))]
    UnknownName {
        /// The name.
        name: String,
        /// What the file of this name is, if there is one.
        file: Option<&'static str>,
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
    /// Nothing was named, and several sessions are live.
    #[error("{} live sessions match; choose one by its pid: {}", sessions.len(), sessions.join(", "))]
    SeveralLive {
        /// One label for each.
        sessions: Vec<String>,
    },
    /// More than one session, or a session and a recording, could be meant.
    #[error("{name} may be any of {}: {}; choose a session by its pid, a file with a slash", all.len(), all.join(", "))]
    Ambiguous {
        /// What was named.
        name: String,
        /// One label for each.
        all: Vec<String>,
    },
    /// A program whose process is none of those that can be seen here.
    #[error("{label} runs {place}; run gnntop there")]
    Elsewhere {
        /// Its label.
        label: String,
        /// Where it runs.
        place: &'static str,
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

fn file_in_words(file: Option<&str>) -> String {
    file.map_or_else(String::new, |file| format!(", and the file of this name {file}"))
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
/// What has a slash is a path, and a number is a process id. Anything else is a session's name, id or run, or their beginning,
/// or a file or directory that is a recording or a session. A live session is chosen before those that have ended, and of
/// ended ones with one name the most recently active.
///
/// # Errors
/// What exists instead, or what could be meant, in one line.
pub fn resolve(argument: Option<&str>, dir: &Path) -> Result<Target, TargetError> {
    match argument {
        None => only_live(dir),
        Some("-") => Ok(Target::Recording(PathBuf::from("-"))),
        Some(argument) if argument.contains('/') => by_path(argument),
        Some(argument) if argument.parse::<u32>().is_ok() => by_pid(argument.parse().unwrap_or_default(), dir),
        Some(argument) => match (by_name(argument, dir), recording_kind(Path::new(argument))) {
            (Ok(session), Some(Ok(()))) if !is_inside(Path::new(argument), dir) => {
                let all = vec![target_label(&session), format!("the file ./{argument}")];
                Err(TargetError::Ambiguous { name: argument.to_owned(), all })
            }
            (Err(TargetError::UnknownName { .. }), Some(Ok(()))) => by_path(argument),
            // Its opening says what is wrong with it.
            (Err(TargetError::UnknownName { .. }), _) if is_called_recording(argument) => by_path(argument),
            (Err(TargetError::UnknownName { name, sessions, .. }), Some(Err(file))) => {
                Err(TargetError::UnknownName { name, file: Some(file), sessions })
            }
            (found, _) => found,
        },
    }
}

/// Whether the name is that of a recording, whether or not there is one.
fn is_called_recording(name: &str) -> bool {
    Path::new(name).extension().is_some_and(|extension| extension == "gnntop")
}

/// Whether a path is a recording or a session's directory, or what it is instead; `None` if there is nothing.
fn recording_kind(path: &Path) -> Option<Result<(), &'static str>> {
    let meta = fs::metadata(path).ok()?;
    if meta.is_dir() {
        return discover::read(&std::path::absolute(path).ok()?).ok().map(|_| Ok(()));
    }
    // A pipe can be read once only.
    Some(if meta.is_file() { file_format::identify(path) } else { Ok(()) })
}

/// Whether a path is one of the directories in `dir`, where it is the session of its own name.
fn is_inside(path: &Path, dir: &Path) -> bool {
    let is_there = |path: &Path| Some(fs::canonicalize(path).ok()?.parent()? == fs::canonicalize(dir).ok()?);
    path.is_dir() && is_there(path).unwrap_or(false)
}

fn by_path(path: &str) -> Result<Target, TargetError> {
    let path = Path::new(path);
    if path.is_dir() { by_directory(path) } else { Ok(Target::Recording(path.to_owned())) }
}

fn only_live(dir: &Path) -> Result<Target, TargetError> {
    let live: Vec<_> = discover::list(dir)?.sessions.into_iter().filter(|session| session.alive).collect();
    match runs::group(&live).as_slice() {
        [] => Err(TargetError::NoSession { dir: dir.to_owned() }),
        [only] => Ok(first_of(only)),
        several => Err(TargetError::SeveralLive { sessions: several.iter().map(group_label).collect() }),
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

/// The one of these sessions that has this process id, name, id or run, or the beginning of one of the last three.
///
/// # Errors
/// If there is none, or several could be meant.
pub fn among(argument: &str, sessions: &[ListedSession]) -> Result<ListedSession, TargetError> {
    let pid = argument.parse::<u32>().ok();
    let of_pid =
        sessions.iter().filter(|session| Some(session.info.pid) == pid).max_by_key(|session| session.last_active);
    of_pid.map_or_else(|| named(argument, sessions), |session| Ok(session.clone()))
}

fn by_name(name: &str, dir: &Path) -> Result<Target, TargetError> {
    Ok(Target::Session(Box::new(named(name, &discover::list(dir)?.sessions)?)))
}

/// The one of these sessions whose name, directory, id or run this is; or where none is called so, begins so.
///
/// # Errors
/// If there is none, or several could be meant.
pub fn named(name: &str, sessions: &[ListedSession]) -> Result<ListedSession, TargetError> {
    let groups = runs::group(sessions);
    let called = |is_it: fn(&str, &str) -> bool| {
        let is_called = |session: &ListedSession| identifiers(session).iter().any(|known| is_it(known, name));
        groups.iter().filter(|group| group.sessions.iter().any(is_called)).collect::<Vec<&SessionGroup>>()
    };
    let mut found = called(is_same_program);
    if found.is_empty() {
        found = called(|known, name| known.starts_with(name));
    }
    if found.iter().any(|group| group.living() > 0) {
        found.retain(|group| group.living() > 0);
    } else if found.windows(2).all(|two| two[0].sessions[0].info.name == two[1].sessions[0].info.name) {
        found.truncate(1);
    }
    match found.as_slice() {
        [] => Err(TargetError::UnknownName { name: name.to_owned(), file: None, sessions: live_labels(sessions) }),
        [only] => Ok(only.newest().clone()),
        several => {
            let all = several.iter().map(|group| group_label(group)).collect();
            Err(TargetError::Ambiguous { name: name.to_owned(), all })
        }
    }
}

/// What a session may be called: its name, its directory's, the id at the end of that, its run.
fn identifiers(session: &ListedSession) -> Vec<String> {
    let dir = session.dir.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let id = dir.rsplit_once('-').map(|(_, id)| id.to_owned());
    let run = session.info.place.as_ref().map(|place| place.run.clone());
    [Some(session.info.name.clone()), Some(dir.clone()), id, run].into_iter().flatten().collect()
}

/// Whether two names are the same, or the same script with and without its interpreter: `python train.py`, `train.py`.
pub fn is_same_program(known: &str, name: &str) -> bool {
    let script = |name: &str| name.rsplit(' ').next().map(str::to_owned);
    known == name || (known.contains(' ') != name.contains(' ') && script(known) == script(name))
}

/// A target's label in messages.
fn target_label(target: &Target) -> String {
    match target {
        Target::Session(session) => label(session),
        Target::Recording(path) => path.display().to_string(),
        Target::Process(process) => format!("process {}", process.pid()),
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
        let all = discover::list(dir.path()).unwrap().sessions;
        assert_eq!([&A.to_string(), "pna"].map(|name| among(name, &all).unwrap().info.pid), [A, B]);
        let refusal = refusal(Some("pan"), dir.path());
        assert_eq!(refusal, "no session named pan; live sessions: pna (pid 900000002)");
    }

    #[test]
    fn resolve_beginning_is_the_only_session_that_begins_so() {
        let dir = tempfile::tempdir().unwrap();
        add(dir.path(), "train.py", A);
        add(dir.path(), "train.py", A + 7);
        assert!((A..=A + 7).contains(&pid_of(resolve(Some("tra"), dir.path()).unwrap())));
        add(dir.path(), "trace.py", B);
        assert_eq!(pid_of(resolve(Some("trac"), dir.path()).unwrap()), B);
        let all = refusal(Some("tra"), dir.path());
        assert!(all.starts_with("tra may be any of 3: ") && all.contains("trace.py (pid 900000002)"), "{all}");
        let live = add(dir.path(), "train.py", B + 1);
        let _lock = live.lock();
        assert_eq!(pid_of(resolve(Some("tra"), dir.path()).unwrap()), B + 1, "it is the live one");
    }

    #[test]
    fn resolve_script_is_found_with_and_without_its_interpreter() {
        let dir = tempfile::tempdir().unwrap();
        add(dir.path(), "train.py", A);
        assert_eq!(pid_of(resolve(Some("python train.py"), dir.path()).unwrap()), A);
        assert!(is_same_program("python train.py", "train.py"));
        assert!(!is_same_program("python train.py", "python3 train.py") && !is_same_program("train.py", "rain.py"));
    }

    #[test]
    fn resolve_file_without_slash_is_a_recording_or_not_meant() {
        let (dir, here) = (tempfile::tempdir().unwrap(), Path::new(env!("CARGO_MANIFEST_DIR")));
        let session = add(dir.path(), "pna", A);
        assert_eq!(recording_kind(&here.join("Cargo.toml")), Some(Err("is a text file: not a recording")));
        assert_eq!(recording_kind(&session.path().join("00000000.gnntop")), Some(Ok(())));
        assert_eq!(recording_kind(session.path()), Some(Ok(())));
        assert_eq!([recording_kind(&here.join("src")), recording_kind(&here.join("none"))], [None, None]);
        // Tests run in their crate's directory.
        add(dir.path(), "Cargo.toml", B);
        assert_eq!(pid_of(resolve(Some("Cargo.toml"), dir.path()).unwrap()), B);
        let said = refusal(Some("build.rs"), dir.path());
        assert!(said.starts_with("no session named build.rs"), "{said}");
        assert!(matches!(resolve(Some("none.gnntop"), dir.path()), Ok(Target::Recording(_))));
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
