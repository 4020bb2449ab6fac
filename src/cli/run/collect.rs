//! `gnntop collect`, which the owner of a program starts: the process that takes the program's output out of its pipe into
//! the log. It is apart from the keeper, so that the program runs on and prints when either of them is stopped or killed.

use std::ffi::OsStr;
use std::io::{self, PipeReader};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use anyhow::Context;
use gnntop_sessions::PrivateDir;

use super::super::exit::SUCCESS;
use super::super::passing_on::passed_on;
use super::inherited::Inherited;
use super::messages::{MessageReader, ToCollector, send};
use crate::log::{BoundedLog, Pump};

/// If the log is slow, waits this long for what a program has written.
const SETTLE: Duration = Duration::from_secs(2);

const EXAMPLES: &str = "\
Examples:
  gnntop collect --log a.log      started by `gnntop run`; not for use by hand";

/// Write a program's output to its log, for `gnntop run`
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(in super::super) struct CollectArguments {
    /// The log
    #[arg(long, value_name = "FILE")]
    log: PathBuf,
}

impl CollectArguments {
    /// The command line of a collector that writes this log.
    pub(super) fn words(log: &Path) -> [&OsStr; 3] {
        ["collect".as_ref(), "--log".as_ref(), log.as_os_str()]
    }
}

/// Does `gnntop collect`: standard input is the pipe, standard output a socket to the program's owner. Ends when no process
/// can write into the pipe any more and the owner has nothing to say.
pub(in super::super) fn collect(arguments: &CollectArguments) -> anyhow::Result<u8> {
    Inherited::find().close();
    let owner = UnixStream::from(io::stdout().as_fd().try_clone_to_owned().context("no socket to `gnntop run`")?);
    owner.peer_addr().context("`gnntop collect` is started by `gnntop run`")?;
    // A scheduler sends these to every process of a job, and the program's last words are still to come.
    for signal in passed_on() {
        signal_hook::flag::register(signal, Arc::default())?;
    }
    // `pkill -9 gnntop` shall not leave a program without a reader of its output. Elsewhere than on Linux it may.
    let _ = std::fs::write("/proc/self/comm", "output");
    let (dir, name) = (arguments.log.parent(), arguments.log.file_name().and_then(OsStr::to_str));
    let (dir, name) = dir.zip(name).context("no log")?;
    let pipe = PipeReader::from(io::stdin().as_fd().try_clone_to_owned()?);
    let pump = Arc::new(Pump::start(pipe, BoundedLog::open(PrivateDir::create(dir)?, name)?)?);
    let asked = Arc::clone(&pump);
    let answers = thread::Builder::new().name("gnntop owner".to_owned()).spawn(move || answer(&owner, &asked))?;
    pump.wait_for_the_end();
    // What the owner has dropped comes last.
    let _ = answers.join();
    pump.wait_for_the_end();
    Ok(SUCCESS)
}

/// Answers the owner for as long as it lives.
fn answer(owner: &UnixStream, pump: &Pump) {
    let mut asked = MessageReader::default();
    while let Some(asked) = asked.next(owner) {
        let answer = match asked {
            ToCollector::Ping => true,
            ToCollector::Settle => pump.wait_written(SETTLE),
            ToCollector::HasUntoldLosses => pump.has_untold_losses(),
            ToCollector::Dropped(bytes) => {
                pump.lose(bytes);
                true
            }
        };
        send(owner, &answer);
    }
}
