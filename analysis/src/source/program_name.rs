//! Names a program by what people think of as the program, not by what starts it. `nice -n 5 env A=1 python train.py`,
//! `bash -c 'python train.py'` and a version manager's shim of Python are all `python train.py`.

/// Programs that start another one: which of their options take a value, and how many words come between the options and
/// the program.
const STARTERS: &[Starter] = &[
    Starter { name: "env", verb: None, valued: &["-u", "--unset", "-C", "--chdir"], words: 0 },
    Starter { name: "nice", verb: None, valued: &["-n", "--adjustment"], words: 0 },
    Starter { name: "ionice", verb: None, valued: &["-c", "--class", "-n", "--classdata"], words: 0 },
    Starter { name: "nohup", verb: None, valued: &[], words: 0 },
    Starter { name: "setsid", verb: None, valued: &[], words: 0 },
    Starter { name: "time", verb: None, valued: &["-f", "--format", "-o", "--output"], words: 0 },
    Starter { name: "timeout", verb: None, valued: &["-k", "--kill-after", "-s", "--signal"], words: 1 },
    Starter { name: "stdbuf", verb: None, valued: &["-i", "-o", "-e"], words: 0 },
    Starter { name: "taskset", verb: None, valued: &[], words: 1 },
    Starter { name: "numactl", verb: None, valued: &["-C", "-N", "-m", "-i", "-p"], words: 0 },
    Starter { name: "uv", verb: Some("run"), valued: &["-p", "--python", "--with", "--extra", "--group"], words: 0 },
    Starter { name: "conda", verb: Some("run"), valued: &["-n", "--name", "-p", "--prefix", "--cwd"], words: 0 },
    Starter { name: "mamba", verb: Some("run"), valued: &["-n", "--name", "-p", "--prefix", "--cwd"], words: 0 },
    Starter { name: "micromamba", verb: Some("run"), valued: &["-n", "--name", "-p", "--prefix"], words: 0 },
    Starter { name: "pixi", verb: Some("run"), valued: &["-e", "--environment"], words: 0 },
    Starter { name: "poetry", verb: Some("run"), valued: &["-C", "--directory"], words: 0 },
    Starter { name: "pipenv", verb: Some("run"), valued: &[], words: 0 },
    Starter { name: "pyenv", verb: Some("exec"), valued: &[], words: 0 },
    Starter { name: "pyenv-exec", verb: None, valued: &[], words: 0 },
];
/// `busybox sh` is one too: its first word is no option, so it counts as what it starts.
const SHELLS: [&str; 9] = ["sh", "bash", "dash", "zsh", "ksh", "mksh", "ash", "busybox", "fish"];
/// Commands of a shell that start nothing.
const BUILT_IN: [&str; 16] = [
    ":", ".", "[", "cd", "echo", "exit", "export", "false", "kill", "printf", "read", "return", "set", "test", "true",
    "ulimit",
];
/// Suffixes of programs that are run by an interpreter.
const SCRIPTS: [&str; 5] = [".py", ".jl", ".R", ".lua", ".ipynb"];
/// Most nested starters.
const MAX_STARTERS: usize = 8;

struct Starter {
    name: &'static str,
    verb: Option<&'static str>,
    valued: &'static [&'static str],
    words: usize,
}

/// Whether a program with this file name is a shell.
pub fn is_shell(name: &str) -> bool {
    SHELLS.contains(&name)
}

/// The name of the program with this command line; empty without words.
pub fn program_name(command: &[String]) -> String {
    let mut words = command.to_vec();
    for _ in 0..MAX_STARTERS {
        match started_by(&words) {
            Some(started) => words = started,
            None => break,
        }
    }
    let Some((program, arguments)) = words.split_first() else { return String::new() };
    match script(base(program), arguments) {
        Some(script) => format!("{} {script}", base(program)),
        None => base(program).to_owned(),
    }
}

/// The command that this one starts, if it does nothing else.
fn started_by(words: &[String]) -> Option<Vec<String>> {
    let (program, arguments) = words.split_first()?;
    let program = base(program);
    if is_shell(program) {
        return started_by_shell(arguments);
    }
    let starter = STARTERS.iter().find(|starter| starter.name == program)?;
    let arguments = match starter.verb {
        Some(verb) => &arguments[arguments.iter().position(|word| word == verb)? + 1..],
        None => arguments,
    };
    let rest = after_options(arguments, starter.valued);
    let is_variable = |word: &&String| program == "env" && word.contains('=');
    let rest = &rest[rest.iter().take_while(is_variable).count()..];
    rest.get(starter.words..).filter(|rest| !rest.is_empty()).map(<[String]>::to_vec)
}

/// What a shell starts: a script, or the last of the commands in its argument.
fn started_by_shell(arguments: &[String]) -> Option<Vec<String>> {
    let options = shell_options(arguments);
    let next = arguments.get(options)?;
    if !arguments[..options].iter().any(|option| is_command_option(option)) {
        return Some(arguments[options..].to_vec());
    }
    let one_by_one = next.replace("&&", "\0").replace(">&", ">").replace("&>", ">");
    if one_by_one.contains(['\n', ';', '|', '&', '(', ')', '{', '}', '`']) {
        return None;
    }
    // Redirections are not part of the name.
    let command = one_by_one.rsplit('\0').next()?.split(['<', '>']).next()?;
    let mut words = command.split_whitespace().skip_while(|word| is_assignment(word)).peekable();
    let is_executed = words.next_if_eq(&"exec").is_some();
    let words = words.skip_while(|word| is_assignment(word)).map(|word| word.trim_matches(['"', '\'']).to_owned());
    let words: Vec<String> = words.collect();
    let words = if is_executed { after_options(&words, &["-a"]) } else { &words };
    let is_program = words.first().is_some_and(|first| !BUILT_IN.contains(&first.as_str()));
    is_program.then(|| words.to_vec())
}

/// How many of these words are options of a shell, with their values.
fn shell_options(words: &[String]) -> usize {
    let mut at = 0;
    while let Some(word) = words.get(at).filter(|word| word.starts_with(['-', '+']) && word.len() > 1) {
        let has_value = match word.strip_prefix("--") {
            Some(long) => ["rcfile", "init-file"].contains(&long),
            None => word.ends_with(['o', 'O']),
        };
        at += if has_value { 2 } else { 1 };
        if word == "--" {
            break;
        }
    }
    at.min(words.len())
}

/// Whether an option says that a command follows them all.
fn is_command_option(option: &str) -> bool {
    option.starts_with('-') && !option.starts_with("--") && option.contains('c')
}

fn is_assignment(word: &str) -> bool {
    word.split_once('=').is_some_and(|(name, _)| name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_'))
}

fn after_options<'w>(words: &'w [String], valued: &[&str]) -> &'w [String] {
    let mut at = 0;
    while let Some(word) = words.get(at).filter(|word| word.starts_with('-')) {
        at += if valued.contains(&word.as_str()) { 2 } else { 1 };
        if word == "--" {
            break;
        }
    }
    words.get(at..).unwrap_or_default()
}

/// The script or module that an interpreter runs.
fn script(program: &str, arguments: &[String]) -> Option<String> {
    if let Some(script) = arguments.iter().find(|word| SCRIPTS.iter().any(|end| word.ends_with(end))) {
        return Some(base(script).to_owned());
    }
    let options = arguments.iter().take_while(|word| word.starts_with('-'));
    let at = options.clone().position(|option| option == "-m").filter(|_| program.starts_with("python"))?;
    Some(format!("-m {}", arguments.get(at + 1)?))
}

fn base(path: &str) -> &str {
    path.rsplit('/').find(|part| !part.is_empty()).unwrap_or(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(command: &[&str], name: &str) {
        let words: Vec<String> = command.iter().map(|word| (*word).to_owned()).collect();
        assert_eq!(program_name(&words), name, "{command:?}");
    }

    #[test]
    fn options_and_commands_of_a_shell_are_no_programs() {
        check(&["sh", "-c", "exit 5"], "sh");
        check(&["bash", "-c", "kill -9 $$"], "bash");
        check(&["bash", "-o", "pipefail", "-c", "python3 train.py"], "python3 train.py");
        check(&["bash", "-euo", "pipefail", "job.sh"], "job.sh");
        check(&["bash", "--norc", "job.sh"], "job.sh");
        check(&["sh", "-c", "A=1 exec -a '' python3 train.py"], "python3 train.py");
    }

    #[test]
    fn a_program_has_the_name_of_its_file() {
        check(&["/opt/train", "--lr", "0.1"], "train");
        check(&["./train"], "train");
        check(&["sleep", "5"], "sleep");
        check(&[], "");
    }

    #[test]
    fn program_name_of_python_includes_script() {
        check(&["/usr/bin/python3", "-u", "src/train.py", "--lr", "0.1"], "python3 train.py");
        check(&["python", "-m", "pkg.train", "--lr", "0.1"], "python -m pkg.train");
        check(&["python", "-c", "import torch"], "python");
        check(&["torchrun", "--nproc-per-node", "4", "train.py"], "torchrun train.py");
    }

    #[test]
    fn program_name_skips_starters() {
        for starter in [
            &["env", "-u", "B", "CUDA_VISIBLE_DEVICES=0"][..],
            &["nice", "-n", "5"],
            &["nice", "-5"],
            &["nohup"],
            &["timeout", "-k", "5", "10m"],
            &["taskset", "-c", "0-3"],
            &["numactl", "--cpunodebind=0", "-m", "0"],
            &["uv", "run", "--with", "torch"],
            &["conda", "run", "-n", "gnn", "--no-capture-output"],
            &["/home/me/.pyenv/libexec/pyenv", "exec"],
            &["bash", "/home/me/.pyenv/shims/python"],
            &["bash", "/home/me/.pyenv/libexec/pyenv-exec", "python"],
            &["nohup", "nice", "env", "A=1", "python"],
        ] {
            let is_whole = starter.last().is_some_and(|word| word.ends_with("python"));
            let program: &[&str] = if is_whole { &["train.py"] } else { &["python", "train.py"] };
            check(&[starter, program].concat(), "python train.py");
        }
        check(&["env"], "env");
        check(&["uv", "pip", "install", "torch"], "uv");
    }

    #[test]
    fn program_name_of_shell_is_its_command() {
        for script in [
            "python train.py",
            "exec python train.py --lr 0.1",
            "cd runs && OMP_NUM_THREADS=4 python 'train.py' > log 2>&1",
        ] {
            check(&["bash", "-c", script], "python train.py");
            check(&["/bin/sh", "-lc", script], "python train.py");
        }
        check(&["bash", "run.sh", "train.py"], "run.sh train.py");
        for script in [
            "for i in 1 2; do python train.py; done",
            "exit 3; true",
            "touch a; exit 3",
            "a | b",
            "echo a >&2; exit 3",
            "",
        ] {
            check(&["sh", "-c", script], "sh");
        }
        check(&["bash"], "bash");
    }
}
