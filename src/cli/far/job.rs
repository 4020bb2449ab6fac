//! The processes of a Slurm job on this machine, by the variables that Slurm gives them: they say where the job's sessions are,
//! which a shell beside them does not know.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use anyhow::bail;
use gnntop_sessions::discover::{self, ListedSession};
use gnntop_sessions::{layout, user_id};

use super::super::exit::SUCCESS;
use super::super::output;

const EXAMPLES: &str = "\
Examples:
  gnntop job-dir 4711      started by `gnntop stop slurm:4711` on a machine of the job; not for use by hand";

/// Print the sessions directory of a Slurm job on this machine
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(in super::super) struct JobDirArguments {
    /// The job
    job: String,
}

/// Does `gnntop job-dir`.
pub(in super::super) fn job_dir(arguments: &JobDirArguments) -> anyhow::Result<u8> {
    let job = &arguments.job;
    let dirs = sessions_dirs(job);
    // A shell of the job has variables of its own.
    let trains = dirs.iter().find(|dir| !live_sessions(job, dir).is_empty());
    let Some(dir) = trains.or(dirs.first()) else { bail!("no process of job {job} runs on this machine") };
    output::print_bytes(&[dir.as_os_str().as_bytes(), b"\n"].concat())?;
    Ok(SUCCESS)
}

/// The directories in which processes of the job have their sessions.
pub(super) fn sessions_dirs(job: &str) -> BTreeSet<PathBuf> {
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = processes.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let of_job = pids.filter_map(Environment::read).filter(|environment| environment.is_of(job));
    of_job.map(|environment| environment.sessions_dir()).filter(|dir| dir.is_dir()).collect()
}

/// The live sessions in this directory that are of the job.
pub(super) fn live_sessions(job: &str, dir: &Path) -> Vec<ListedSession> {
    let sessions = discover::list(dir).unwrap_or_default().sessions;
    sessions.into_iter().filter(|session| session.alive && has_process(job, session.info.pid)).collect()
}

/// Whether a process belongs to the job.
fn has_process(job: &str, pid: u32) -> bool {
    Environment::read(pid).is_some_and(|environment| environment.is_of(job))
}

/// The variables that a process was started with.
struct Environment(Vec<u8>);

impl Environment {
    /// `None` for another user's process.
    fn read(pid: u32) -> Option<Self> {
        fs::read(format!("/proc/{pid}/environ")).ok().map(Self)
    }

    fn value(&self, name: &str) -> Option<&OsStr> {
        let mut lines = self.0.split(|byte| *byte == 0);
        lines.find_map(|line| line.strip_prefix(name.as_bytes())?.strip_prefix(b"=")).map(OsStr::from_bytes)
    }

    fn is_of(&self, job: &str) -> bool {
        let is = |name: &str, text: &str| self.value(name).is_some_and(|value| value == text);
        let is_task = |(array, task)| is("SLURM_ARRAY_JOB_ID", array) && is("SLURM_ARRAY_TASK_ID", task);
        // The parts of one job, 4711+0 and 4711+1, have its number.
        let first = job.split_once('+').map_or(job, |(first, _)| first);
        is("SLURM_JOB_ID", first) || is("SLURM_ARRAY_JOB_ID", job) || job.split_once('_').is_some_and(is_task)
    }

    fn sessions_dir(&self) -> PathBuf {
        let value = |name: &str| self.value(name).map(OsStr::to_owned);
        let temporary = layout::temporary_dir_from(value("TMPDIR"));
        layout::sessions_dir_from(value, &temporary, user_id())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_says_its_job_and_where_its_sessions_are() {
        let environment = |lines: &[&str]| Environment(lines.join("\0").into_bytes());
        let own = environment(&["HOME=/x", "SLURM_JOB_ID=4711", "GNNTOP_DIR=/scratch/g", "NOSLURM_JOB_ID=9"]);
        assert!(own.is_of("4711") && !own.is_of("471") && !own.is_of("9"));
        assert_eq!(own.sessions_dir(), Path::new("/scratch/g"));
        let task = environment(&["SLURM_JOB_ID=99", "SLURM_ARRAY_JOB_ID=98", "SLURM_ARRAY_TASK_ID=3", "TMPDIR=/local"]);
        assert!(task.is_of("98_3") && task.is_of("99") && task.is_of("98") && !task.is_of("98_4"));
        assert!(own.is_of("4711+1") && !own.is_of("471+1"));
        assert_eq!(task.sessions_dir(), Path::new(&format!("/local/gnntop-{}", user_id())));
        assert!(!has_process("4711", std::process::id()));
    }
}
