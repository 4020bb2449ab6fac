//! `gnntop send`, the far end of a line: sends the sessions of this machine to the near end, as they grow.

use std::collections::BTreeMap;
use std::io::{self, BufReader, Write};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use gnntop_analysis::source::runs;
use gnntop_analysis::source::target::{self, Target};
use gnntop_sessions::copy::{Change, CopyReader};
use gnntop_sessions::discover::{self, ListedSession};
use gnntop_sessions::{BEAT_INTERVAL, Error, Publisher, SessionDir, layout, user_id};

use super::super::exit::SUCCESS;
use super::distinct::distinct;
use super::job;
use super::message::{FromFar, PROTOCOL, ToFar, read_near, write};

/// Time between two looks at what a session has written.
const POLL_INTERVAL: Duration = Duration::from_millis(250);
/// Time between two looks for sessions.
const FIND_INTERVAL: Duration = Duration::from_secs(2);

const EXAMPLES: &str = "\
Examples:
  gnntop send            started by `gnntop attach ssh:HOST` on that machine; not for use by hand";

/// Send sessions to another machine, for `gnntop attach ssh:`
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(in super::super) struct SendArguments {
    /// A session by name, process id or run [default: all live ones, else the newest]
    run: Option<String>,
    /// Only those of this Slurm job
    #[arg(long)]
    job: Option<String>,
}

/// Does `gnntop send`: ends when the other side is gone.
pub(in super::super) fn send(arguments: &SendArguments) -> anyhow::Result<u8> {
    let asked = near_end()?;
    let mut line = io::stdout().lock();
    write(&mut line, &FromFar::Hello { protocol: PROTOCOL, version: env!("CARGO_PKG_VERSION").to_owned() }, b"")?;
    line.flush()?;
    let have = loop {
        match asked.recv() {
            Ok(ToFar::Ping) => {
                write(&mut line, &FromFar::Pong { monotonic_ns: gnntop_sensors::monotonic_ns() }, b"")?;
                line.flush()?;
            }
            Ok(ToFar::Have { sessions }) => break sessions,
            Err(_) => return Ok(SUCCESS),
        }
    };
    let SendArguments { run, job } = arguments.clone();
    let mut sent = SentSessions { run, job, have, sent: BTreeMap::new(), problem: None };
    let mut next_search = Instant::now();
    loop {
        if Instant::now() >= next_search {
            sent.find(&mut line)?;
            next_search = Instant::now() + FIND_INTERVAL;
        }
        sent.send_news(&mut line)?;
        write(&mut line, &FromFar::Synced, b"")?;
        line.flush()?;
        if asked.recv_timeout(POLL_INTERVAL).is_err_and(|error| error == RecvTimeoutError::Disconnected) {
            return Ok(SUCCESS);
        }
    }
}

/// What the near end says, until it is gone.
fn near_end() -> io::Result<Receiver<ToFar>> {
    let (send, asked) = mpsc::channel();
    let read = move || {
        let mut from = BufReader::new(io::stdin());
        while let Ok(Some(message)) = read_near(&mut from) {
            let _ = send.send(message);
        }
    };
    thread::Builder::new().name("gnntop near end".to_owned()).spawn(read)?;
    Ok(asked)
}

/// Where this user's sessions may be: a shell that ssh starts need not have the variables of the one that trains.
fn sessions_dirs() -> Vec<PathBuf> {
    let own = layout::sessions_dir();
    if std::env::var_os("GNNTOP_DIR").is_some_and(|dir| !dir.is_empty()) {
        return vec![own];
    }
    let user = user_id();
    let usual = [format!("/run/user/{user}/gnntop").into(), layout::temporary_dir().join(format!("gnntop-{user}"))];
    distinct([vec![own], usual.to_vec()].concat())
}

/// The sessions that are sent.
struct SentSessions {
    run: Option<String>,
    job: Option<String>,
    /// What the near end has of those that are not sent yet.
    have: BTreeMap<String, BTreeMap<String, u64>>,
    sent: BTreeMap<PathBuf, SentSession>,
    /// Why there is none, as it was said.
    problem: Option<String>,
}

struct SentSession {
    name: String,
    dir: PathBuf,
    reader: CopyReader,
    said: Option<Publisher>,
    last_beat: Instant,
}

impl SentSessions {
    /// Looks for sessions that are not sent yet.
    fn find(&mut self, line: &mut impl Write) -> io::Result<()> {
        let found = match (&self.run, &self.job) {
            (Some(run), None) => named(run, &sessions_dirs()),
            (Some(run), Some(job)) => named(run, &job::sessions_dirs(job).into_iter().collect::<Vec<_>>()),
            (None, Some(job)) => Ok(of_job(job)),
            (None, None) => Ok(living(self.sent.is_empty())),
        };
        let problem = match &found {
            Err(why) => Some(why.clone()),
            Ok(found) if found.is_empty() && self.sent.is_empty() => Some("has no session".to_owned()),
            Ok(_) => None,
        };
        if problem != self.problem {
            if let Some(text) = problem.clone() {
                write(line, &FromFar::Problem { text }, b"")?;
            }
            self.problem = problem;
        }
        for session in found.unwrap_or_default() {
            if self.sent.contains_key(&session.dir) {
                continue;
            }
            let Some(name) = session.dir.file_name().and_then(|name| name.to_str()).map(str::to_owned) else {
                continue;
            };
            let reader = CopyReader::new(&session.dir, self.have.remove(&name).unwrap_or_default());
            // One that has ended says so behind its last byte.
            write(line, &FromFar::session(&name, &Publisher { alive: true, ..Publisher::default() }, None), b"")?;
            let dir = session.dir.clone();
            self.sent.insert(session.dir, SentSession { name, dir, reader, said: None, last_beat: Instant::now() });
        }
        Ok(())
    }

    /// Sends what the sessions have written since.
    fn send_news(&mut self, line: &mut impl Write) -> io::Result<()> {
        let mut gone = Vec::new();
        for (dir, session) in &mut self.sent {
            match session.send_news(line) {
                Ok(()) => (),
                // Removed, or damaged: the line itself works as long as it can be said.
                Err(Error::Io(error)) if error.kind() == io::ErrorKind::BrokenPipe => return Err(error),
                Err(_) => gone.push(dir.clone()),
            }
        }
        for dir in gone {
            if let Some(session) = self.sent.remove(&dir) {
                write(line, &FromFar::session(&session.name, &Publisher::default(), None), b"")?;
            }
        }
        Ok(())
    }
}

impl SentSession {
    fn send_news(&mut self, line: &mut impl Write) -> Result<(), Error> {
        let name = &self.name;
        let publisher = self.reader.read(&mut |change| write_change(line, name, &change))?;
        let is_known = self.said.as_ref() == Some(&publisher);
        if !is_known || publisher.alive && self.last_beat.elapsed() >= BEAT_INTERVAL {
            write(line, &FromFar::session(name, &publisher, last_active(&self.dir)), b"")?;
            (self.said, self.last_beat) = (Some(publisher), Instant::now());
        }
        Ok(())
    }
}

/// When a session was written last.
fn last_active(dir: &Path) -> Option<SystemTime> {
    let session = SessionDir::open(dir).ok()?;
    session.segments().ok()?.into_iter().filter_map(|number| session.modified(number)).max()
}

fn write_change(line: &mut impl Write, session: &str, change: &Change<'_>) -> io::Result<()> {
    let session = session.to_owned();
    match *change {
        Change::Append { file, at, bytes } => {
            write(line, &FromFar::Append { session, file: file.to_owned(), at, len: bytes.len() }, bytes)
        }
        Change::Replace { file, bytes } => {
            write(line, &FromFar::Replace { session, file: file.to_owned(), len: bytes.len() }, bytes)
        }
        Change::Remove { file } => write(line, &FromFar::Remove { session, file: file.to_owned() }, b""),
    }
}

/// The sessions of the run that this names, of all ranks here.
fn named(run: &str, dirs: &[PathBuf]) -> Result<Vec<ListedSession>, String> {
    let (mut found, mut why) = (Vec::new(), None);
    for dir in dirs {
        match target::resolve(Some(run), dir) {
            Ok(Target::Session(session)) => {
                let all = session.dir.parent().and_then(|dir| discover::list(dir).ok()).unwrap_or_default().sessions;
                found.extend(runs::siblings(&session, &all).sessions);
            }
            Ok(Target::Recording(_)) => return Err("has a file of that name, which must be copied".to_owned()),
            Ok(Target::Process(process)) => why = Some(format!("publishes nothing of process {}", process.pid())),
            Err(error) => _ = why.get_or_insert(format!("has {error}")),
        }
    }
    if found.is_empty() { Err(why.unwrap_or_else(|| "has no session".to_owned())) } else { Ok(found) }
}

/// The live sessions of the processes of a job.
fn of_job(job: &str) -> Vec<ListedSession> {
    job::sessions_dirs(job).iter().flat_map(|dir| job::live_sessions(job, dir)).collect()
}

/// The live sessions of this machine; if there is none and one is needed, those of the newest run.
fn living(is_one_needed: bool) -> Vec<ListedSession> {
    let sessions = sessions_dirs().into_iter().filter_map(|dir| discover::list(&dir).ok());
    let (live, ended): (Vec<_>, Vec<_>) = sessions.flat_map(|found| found.sessions).partition(|session| session.alive);
    if !live.is_empty() || !is_one_needed {
        return live;
    }
    let newest = ended.iter().max_by_key(|session| session.last_active);
    newest.map(|newest| runs::siblings(newest, &ended).sessions).unwrap_or_default()
}
