//! What a person types for sessions of other machines: `ssh:node7`, `ssh:me@node[1-8],login/RUN`, `slurm:4711`.

use super::distinct::distinct;

/// Most machines of one address.
pub(super) const MAX_HOSTS: usize = 1024;

/// Where the machines are, and what is meant there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct FarAddress {
    /// The machines.
    pub(super) place: FarPlace,
    /// A session by name, process id or run; without one, what lives there.
    pub(super) run: Option<String>,
}

/// How machines are named.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum FarPlace {
    /// Machines as `ssh` knows them.
    Ssh(Vec<String>),
    /// Those of a Slurm job.
    Slurm(String),
}

impl FarAddress {
    /// Reads an address; `None` if the word is none.
    ///
    /// # Errors
    /// What is wrong with it.
    pub(super) fn parse(word: &str) -> Option<Result<Self, String>> {
        let (is_ssh, rest) = match (word.strip_prefix("ssh:"), word.strip_prefix("slurm:")) {
            (Some(rest), _) => (true, rest),
            (_, Some(rest)) => (false, rest),
            _ => return None,
        };
        let rest = rest.strip_prefix("//").unwrap_or(rest);
        let (place, run) = rest.split_once('/').map_or((rest, None), |(place, run)| (place, Some(run)));
        let run = run.filter(|run| !run.is_empty()).map(str::to_owned);
        let place = if is_ssh { hosts(place).map(FarPlace::Ssh) } else { job(place).map(FarPlace::Slurm) };
        Some(place.map(|place| Self { place, run }).map_err(|why| format!("{word}: {why}")))
    }
}

fn job(text: &str) -> Result<String, String> {
    let is_job = text.starts_with(|c: char| c.is_ascii_digit())
        && text.chars().all(|c| c.is_ascii_digit() || matches!(c, '_' | '+' | '.'));
    is_job.then(|| text.to_owned()).ok_or_else(|| "write slurm:JOB, such as slurm:4711 or slurm:4711_3".to_owned())
}

/// The machines, each once, in a list such as `me@node[01-03,7],login`.
fn hosts(text: &str) -> Result<Vec<String>, String> {
    let mut hosts = Vec::new();
    for part in split_outside_brackets(text) {
        expand(part, &mut hosts)?;
    }
    match hosts.iter().find(|host| !is_host(host)) {
        Some(host) => Err(format!("`{host}` is no machine; write ssh:HOST, ssh:USER@HOST or ssh:node[1-8]")),
        None => Ok(distinct(hosts)),
    }
}

/// Whether this can be a machine's name: what is handed to ssh must not be one of its options.
pub(super) fn is_host(host: &str) -> bool {
    let is_known = |c: char| c.is_alphanumeric() || matches!(c, '.' | '-' | '_' | '@' | ':' | '%');
    !host.is_empty() && !host.starts_with('-') && host.chars().all(is_known)
}

fn split_outside_brackets(text: &str) -> impl Iterator<Item = &str> {
    let mut depth = 0_i32;
    text.split(move |c| {
        depth += i32::from(c == '[') - i32::from(c == ']');
        c == ',' && depth <= 0
    })
}

/// Adds the machines of `node[01-03,7]`, of which there may be several brackets.
fn expand(text: &str, hosts: &mut Vec<String>) -> Result<(), String> {
    let Some((before, rest)) = text.split_once('[') else {
        hosts.push(text.to_owned());
        return if hosts.len() > MAX_HOSTS { Err(format!("more than {MAX_HOSTS} machines")) } else { Ok(()) };
    };
    let (numbers, after) = rest.split_once(']').ok_or("a bracket is not closed")?;
    for range in numbers.split(',') {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let number = |text: &str| {
            let is_short = (1..=9).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit());
            is_short.then(|| text.parse::<u64>().ok()).flatten()
        };
        let (Some(from), Some(to)) = (number(first), number(last)) else {
            return Err(format!("`{range}` is no range of numbers, such as 1-8"));
        };
        if from > to {
            return Err(format!("`{range}` counts down; write `{last}-{first}`"));
        }
        for number in from..=to {
            expand(&format!("{before}{number:0width$}{after}", width = first.len()), hosts)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ssh(word: &str) -> (Vec<String>, Option<String>) {
        match FarAddress::parse(word).unwrap().unwrap() {
            FarAddress { place: FarPlace::Ssh(hosts), run } => (hosts, run),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn machines_and_run_are_read() {
        assert_eq!(ssh("ssh:node7"), (vec!["node7".to_owned()], None));
        assert_eq!(ssh("ssh:me@node7/train.py"), (vec!["me@node7".to_owned()], Some("train.py".to_owned())));
        assert_eq!(ssh("ssh://node7/a/b").1.as_deref(), Some("a/b"), "a run's id may have a slash");
        assert_eq!(
            ssh("ssh:node[08-10,3].lab,login/").0,
            ["node08.lab", "node09.lab", "node10.lab", "node3.lab", "login"]
        );
        assert_eq!(ssh("ssh:r[1-2]n[1-2]").0, ["r1n1", "r1n2", "r2n1", "r2n2"]);
        assert_eq!(ssh("ssh:a,node[1-3],node2,a/run").0, ["a", "node1", "node2", "node3"]);
        let slurm = |word: &str| FarAddress::parse(word).unwrap().unwrap();
        assert_eq!(
            slurm("slurm:4711_3/job"),
            FarAddress { place: FarPlace::Slurm("4711_3".to_owned()), run: Some("job".to_owned()) }
        );
        for other in ["train.py", "ssh", "4711", "./ssh:x", "sshd:x"] {
            assert!(FarAddress::parse(other).is_none(), "{other}");
        }
    }

    #[test]
    fn what_is_no_address_is_refused() {
        for word in [
            "ssh:",
            "ssh:-oProxyCommand=x",
            "ssh:a b",
            "ssh:a;b",
            "ssh:node[1-",
            "ssh:node[x]",
            "ssh:node[1-9999]",
            "ssh:node[5-1]",
            "ssh:node[1-99999999999999]",
            "ssh:a,,b",
            "ssh:$(x)",
            "slurm:",
            "slurm:job",
            "slurm:-1",
            "slurm:1;2",
        ] {
            assert!(FarAddress::parse(word).unwrap().is_err(), "{word}");
        }
    }
}
