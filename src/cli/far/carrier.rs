//! What reaches another machine: the user's own `ssh`, with its configuration, keys and jump hosts, or `srun` into a job.

use std::collections::HashSet;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, bail};

use super::super::signals::Interruption;
use super::address::{FarPlace, MAX_HOSTS, is_host};
use super::lines::{self, CommandEnd};

/// Options of ssh beyond the user's configuration: no terminal, no question that nobody sees, and a line that is cut is noticed.
const SSH: [&str; 9] = [
    "-T",
    "-o",
    "BatchMode=yes",
    "-o",
    "ConnectTimeout=10",
    "-o",
    "ServerAliveInterval=5",
    "-o",
    "ServerAliveCountMax=3",
];
/// Where a user installs programs, which a shell without a terminal may not have in its PATH.
const PATHS: &str = "PATH=\"$PATH:$HOME/.local/bin:$HOME/.cargo/bin\"";

/// Slurm is given up that has said nothing for so long, and a machine that is only asked whether it lets this user in.
const SLURM_PATIENCE: Duration = Duration::from_secs(60);
const SSH_PATIENCE: Duration = Duration::from_secs(30);

/// What squeue says of a job that it has forgotten, some minutes after its end, or never had.
const UNKNOWN_JOB: &str = "Invalid job id";

/// Letters that are shown of what can be no machine's name.
const MAX_NAME: usize = 40;

/// One machine, and how to reach it.
#[derive(Clone, Debug)]
pub(super) struct Carrier {
    /// The machine's name.
    pub(super) host: String,
    /// The Slurm job that is meant there.
    pub(super) job: Option<String>,
    /// The part of that job of which a step reaches it, where ssh does not.
    step: Option<JobPart>,
}

/// What Slurm runs by itself: a job, a task of an array, or a part of a job that has several.
#[derive(Clone, Debug, PartialEq, Eq)]
struct JobPart {
    /// The number by which `srun` joins it.
    number: String,
    /// Its place in a job of several parts.
    group: Option<String>,
}

/// A Slurm job that runs on no machine.
#[derive(Debug, thiserror::Error)]
#[error("job {job} runs on no machine: {why}")]
pub(super) struct NoMachines {
    pub(super) job: String,
    why: String,
}

impl NoMachines {
    fn error(job: &str, why: impl Into<String>) -> anyhow::Error {
        anyhow::Error::new(Self { job: job.to_owned(), why: why.into() })
    }
}

impl Carrier {
    /// Those to the machines of an address.
    ///
    /// # Errors
    /// If Slurm does not answer; [`NoMachines`] if the job waits, has ended or is not known.
    pub(super) fn to(place: &FarPlace, interruption: &Interruption) -> anyhow::Result<Vec<Self>> {
        Ok(match place {
            FarPlace::Ssh(hosts) => {
                hosts.iter().map(|host| Self { host: host.clone(), job: None, step: None }).collect()
            }
            FarPlace::Slurm(job) => {
                let hosts = hosts_of_job(job, interruption)?;
                let Some((first, _)) = hosts.first() else {
                    return Err(NoMachines::error(job, "it waits, or has ended"));
                };
                // Many sites let users into nodes only through Slurm.
                let is_open = answers(first, interruption)?;
                let carrier = |(host, part)| Self { host, job: Some(job.clone()), step: (!is_open).then_some(part) };
                hosts.into_iter().map(carrier).collect()
            }
        })
    }

    /// The command that runs `gnntop` with these words there. Its standard streams are those of the far one.
    pub(super) fn command<S: AsRef<str>>(&self, words: &[S]) -> Command {
        let words: Vec<String> = words.iter().map(|word| quoted(word.as_ref())).collect();
        // A shell beside the job's does not know where it has its sessions.
        let dir = self
            .job
            .as_ref()
            .map(|job| format!("GNNTOP_DIR=\"$(gnntop job-dir {})\" || exit; export GNNTOP_DIR; ", quoted(job)));
        let script = format!("{PATHS}; {}exec gnntop {}", dir.unwrap_or_default(), words.join(" "));
        match &self.step {
            None => {
                let mut ssh = Command::new("ssh");
                ssh.args(SSH).arg("--").arg(&self.host).arg(format!("exec sh -c {}", quoted(&script)));
                ssh
            }
            Some(part) => {
                let mut srun = Command::new("srun");
                srun.arg(format!("--jobid={}", part.number)).arg(format!("--nodelist={}", self.host));
                srun.args(part.group.iter().map(|group| format!("--het-group={group}")));
                srun.args(["--overlap", "--nodes=1", "--ntasks=1", "--unbuffered", "--quiet", "sh", "-c"]).arg(script);
                srun
            }
        }
    }
}

/// Whether a machine lets this user in by ssh.
fn answers(host: &str, interruption: &Interruption) -> anyhow::Result<bool> {
    let mut ssh = Command::new("ssh");
    ssh.args(SSH).arg("--").arg(host).arg("exec true");
    let end = lines::run(ssh, interruption, &mut |_| Ok(()), &mut |silent| silent >= SSH_PATIENCE);
    match end {
        Ok(CommandEnd::Interrupted(_)) => bail!("interrupted"),
        Ok(CommandEnd::Exit(Some(status))) => Ok(status.success()),
        _ => Ok(false),
    }
}

/// A word for a shell of any kind.
fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', r"'\''"))
}

/// The machines of a Slurm job, each with the first part of the job on it; none if it waits or has ended.
fn hosts_of_job(job: &str, interruption: &Interruption) -> anyhow::Result<Vec<(String, JobPart)>> {
    let lines = match ask("squeue", &["--noheader", "--jobs", job, "--format=%i %A %N"], interruption) {
        Err(error) if error.to_string().contains(UNKNOWN_JOB) => return Err(NoMachines::error(job, error.to_string())),
        lines => lines?,
    };
    let mut hosts: Vec<(String, JobPart)> = Vec::new();
    let (mut known_lists, mut known) = (HashSet::new(), HashSet::new());
    for (list, part) in lines.iter().filter_map(|line| job_part(line)) {
        if !known_lists.insert(list) {
            continue;
        }
        let listed = ask("scontrol", &["show", "hostnames", list], interruption)?;
        hosts.extend(listed.into_iter().filter(|host| known.insert(host.clone())).map(|host| (host, part.clone())));
        if hosts.len() > MAX_HOSTS {
            bail!("job {job} has {} machines: more than {MAX_HOSTS} are not read at once", hosts.len());
        }
    }
    if let Some((host, _)) = hosts.iter().find(|(host, _)| !is_host(host)) {
        let host: String = host.chars().take(MAX_NAME).collect();
        bail!("scontrol names a machine `{host}`, which can be none");
    }
    Ok(hosts)
}

/// The machines in a line of squeue, and which part of the job runs there: `4711_3 4714 node[1-2]` for a task of an array,
/// `4711+1 4712 node3` for a part of a job that has several, which is joined by the number of the first. `None` for one that waits.
fn job_part(line: &str) -> Option<(&str, JobPart)> {
    let mut words = line.split_whitespace();
    let (id, number, list) = (words.next()?, words.next()?, words.next()?);
    let (number, group) = id.split_once('+').map_or((number, None), |(first, group)| (first, Some(group)));
    Some((list, JobPart { number: number.to_owned(), group: group.map(str::to_owned) }))
}

/// The lines of what a command of Slurm says, without empty ones.
fn ask(program: &str, words: &[&str], interruption: &Interruption) -> anyhow::Result<Vec<String>> {
    let (mut said, mut errors, mut is_cut) = (Vec::new(), Vec::new(), false);
    let mut take = |line: lines::SaidLine| {
        is_cut |= line.is_cut && !line.is_error;
        let text = line.text.trim();
        if !text.is_empty() {
            if line.is_error { &mut errors } else { &mut said }.push(text.to_owned());
        }
        Ok(())
    };
    let mut silent = lines::waiting_for(program, SLURM_PATIENCE);
    let mut command = Command::new(program);
    command.args(words);
    let end = lines::run(command, interruption, &mut take, &mut silent);
    match end.with_context(|| format!("{program} is needed: is this a machine of the cluster?"))? {
        CommandEnd::Exit(Some(status)) if status.success() && !is_cut => Ok(said),
        CommandEnd::Exit(_) if !is_cut => {
            bail!("{program}: {}", errors.first().map_or("it failed", String::as_str))
        }
        CommandEnd::Exit(_) | CommandEnd::TooMuch => {
            bail!("{program} says more than the names of {MAX_HOSTS} machines")
        }
        CommandEnd::TooLong => {
            bail!("{program} does not answer: it has said nothing for {} s", SLURM_PATIENCE.as_secs())
        }
        CommandEnd::Interrupted(_) => bail!("interrupted"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(command: &Command) -> Vec<String> {
        command.get_args().map(|word| word.to_string_lossy().into_owned()).collect()
    }

    #[test]
    fn ssh_gets_one_word_that_no_shell_expands() {
        let carrier = Carrier { host: "node7".to_owned(), job: None, step: None };
        let words = words(&carrier.command(&["send", "it's $(x)"]));
        let [.., end, host, last] = words.as_slice() else { panic!("{words:?}") };
        assert_eq!((end.as_str(), host.as_str()), ("--", "node7"));
        let said = Command::new("sh").args(["-c", &last.replace("exec gnntop", "printf %s,")]).output().unwrap();
        assert_eq!(String::from_utf8_lossy(&said.stdout), "send,it's $(x),");
    }

    #[test]
    fn srun_joins_the_job() {
        let words_of = |line: &str| {
            let (list, part) = job_part(line).unwrap();
            assert_eq!(list, "node7");
            let carrier = Carrier { host: list.to_owned(), job: Some("4711".to_owned()), step: Some(part) };
            words(&carrier.command(&["send"]))
        };
        let has = |words: &[String], word: &str| words.iter().any(|known| known == word);
        let words = words_of("4711 4711 node7");
        assert!(
            has(&words, "--overlap") && has(&words, "--jobid=4711") && !words.concat().contains("--het"),
            "{words:?}"
        );
        assert!(has(&words_of("4711_3 4714 node7"), "--jobid=4714"));
        let words = words_of("4711+1 4712 node7");
        assert!(has(&words, "--jobid=4711") && has(&words, "--het-group=1"), "{words:?}");
        assert_eq!(job_part("4711_[4-9] 4711"), None, "it waits");
    }
}
