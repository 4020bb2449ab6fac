//! Why a Python of a run was not reached, from what the system shows of its process, and what to change.

use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};

use gnntop_analysis::source::process::Process;
use gnntop_analysis::source::program_name::is_shell;
use gnntop_sessions::user_id;
use gnntop_wire::text::clean;

/// Bytes of a script that are read at most.
const MAX_SCRIPT: u64 = 256 * 1024;
/// Longest line of a script that is quoted.
const MAX_LINE: usize = 100;
/// Processes above a Python that are searched for a script.
const MAX_GENERATIONS: usize = 16;
/// How the entry of `PYTHONPATH` that reaches a Python ends.
const OURS: &str = "gnntop/bootstrap";
/// Programs that start others as another user, with an environment of its own.
const AS_ANOTHER: [&str; 5] = ["sudo", "su", "doas", "runuser", "pkexec"];
/// Programs that start others in an environment of Conda's, by `run`.
const CONDAS: [&str; 4] = ["conda", "mamba", "micromamba", "pixi"];

/// Why it was not reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Reason {
    /// In words, with what to do.
    pub(super) text: String,
    /// Whether it is known. Otherwise the Python may only be slow to start.
    pub(super) is_certain: bool,
    /// Whether it only does not look for us: nobody has turned us off, and it answers to the same run.
    pub(super) may_join: bool,
}

/// What the system shows of a process that runs Python.
#[derive(Debug, Default)]
struct UnreachedEvidence {
    words: Vec<String>,
    /// Its environment when it started; `None` if this user may not read it.
    variables: Option<Vec<String>>,
    /// The file that it runs, without folders; empty if this user may not know it.
    program: String,
    is_other_user: bool,
    is_container: bool,
    /// The command lines above it, innermost first.
    above: Vec<Vec<String>>,
    /// The scripts of the shells among them: name and text.
    scripts: Vec<(String, String)>,
    /// Where the Pythons of this run answer.
    answers: PathBuf,
}

/// Why the Python in this process with these words was not reached; `None` if it ended meanwhile, when the system shows
/// an empty environment and no program.
///
/// `answers` is where it should have answered.
pub(super) fn reason(python: &Process, words: &[String], answers: &Path) -> Option<Reason> {
    let evidence = UnreachedEvidence { answers: answers.to_owned(), ..UnreachedEvidence::collect(python, words) };
    python.is_alive().then(|| evidence.reason())
}

/// The user as whom a process runs, if that is not this one.
pub(super) fn other_user(process: &Process) -> Option<u32> {
    process.user().filter(|user| *user != user_id())
}

impl UnreachedEvidence {
    fn collect(python: &Process, words: &[String]) -> Self {
        let pid = python.pid();
        let mounts = |process: &str| fs::read_link(format!("/proc/{process}/ns/mnt")).ok();
        let own = mounts("self");
        let above = std::iter::successors(python.parent(), Process::parent).take(MAX_GENERATIONS);
        let above: Vec<_> = below_gnntop(above.map(|process| (process.pid(), process.words()))).collect();
        Self {
            words: words.to_vec(),
            variables: variables(pid),
            program: fs::read_link(format!("/proc/{pid}/exe")).map(last_part).unwrap_or_default(),
            is_other_user: other_user(python).is_some(),
            is_container: mounts(&pid.to_string()).is_some_and(|found| own.is_some_and(|own| own != found)),
            scripts: above.iter().filter_map(|(pid, words)| script(*pid, words)).collect(),
            above: above.into_iter().map(|(_, words)| words).collect(),
            answers: PathBuf::new(),
        }
    }

    fn reason(&self) -> Reason {
        let certain = |text: String, may_join| Reason { text, is_certain: true, may_join };
        let is_of_the_run = self.value("GNNTOP_ANSWERS").is_some();
        if self.value("GNNTOP") == Some("0") {
            return certain("GNNTOP=0 is set for it".to_owned(), false);
        }
        if self.value("GNNTOP_ANSWERS").is_some_and(|answers| *self.answers != *answers) {
            return certain(INNER.to_owned(), false);
        }
        if self.is_container {
            return certain("it runs in a container of its own: run gnntop inside it".to_owned(), false);
        }
        if let Some(version) = older_version(&self.program) {
            return certain(format!("it is Python {version}, and gnntop needs 3.10 or newer"), false);
        }
        if let Some(letter) = ignoring_option(&self.words) {
            return certain(ignored(letter), is_of_the_run && !self.is_other_user);
        }
        if self.is_other_user {
            let text =
                "it runs as another user, as with sudo: run gnntop as that user, `sudo gnntop run -- python ...`";
            return certain(text.to_owned(), false);
        }
        if self.variables.is_none() || self.has_path() {
            let is_python = self.program.is_empty() || self.program.starts_with("python");
            let otherwise = || if is_python { unknown() } else { frozen(&self.program) };
            return full(&self.answers).map_or_else(otherwise, |text| certain(text, false));
        }
        if is_of_the_run { certain(self.overwritten(), true) } else { certain(self.cleared(), false) }
    }

    /// Whether its environment has our entry of `PYTHONPATH`.
    fn has_path(&self) -> bool {
        let is_ours = |entry: &str| entry.trim_end_matches('/').ends_with(OURS);
        self.value("PYTHONPATH").is_some_and(|path| path.split(':').any(is_ours))
    }

    /// A variable of its environment.
    fn value(&self, name: &str) -> Option<&str> {
        let mut lines = self.variables.iter().flatten();
        lines.find_map(|line| line.strip_prefix(name)?.strip_prefix('='))
    }

    /// The program above it whose command line has this form.
    fn above(&self, is_it: impl Fn(&str, &[String]) -> bool) -> Option<String> {
        let name = |words: &[String]| words.iter().take(2).find(|word| is_it(file_name(word), words)).cloned();
        self.above.iter().find_map(|words| name(words)).map(|word| file_name(&word).to_owned())
    }

    fn conda(&self) -> Option<String> {
        self.above(|name, words| CONDAS.contains(&name) && words.iter().any(|word| word == "run"))
    }

    /// It has none of our variables.
    fn cleared(&self) -> String {
        if let Some(program) = self.above(|name, _| AS_ANOTHER.contains(&name)) {
            return format!(
                "{program} clears its environment: run gnntop inside it, `{program} gnntop run -- python ...`"
            );
        }
        format!("its environment was cleared, as by `env -i`: run gnntop after that, or add {START}")
    }

    /// `PYTHONPATH` has lost our entry: where, if a script says so.
    fn overwritten(&self) -> String {
        if let Some(conda) = self.conda() {
            return format!(
                "its environment of {conda} sets PYTHONPATH without what it had: run gnntop inside it, \
                 `{conda} run gnntop run -- python ...`"
            );
        }
        for (name, text) in &self.scripts {
            let lines = text.lines().zip(1..).filter(|(line, _)| drops_path(line));
            if let Some((line, number)) = lines.last() {
                return format!(
                    "line {number} of {name} sets PYTHONPATH without what it had: change `{}` to `{}`",
                    shortened(line.trim()),
                    shortened(&with_rest(line.trim()))
                );
            }
        }
        if self.value("PYTHONPATH").is_none() {
            return format!("it was started without PYTHONPATH, as pex starts programs: add {START}");
        }
        "PYTHONPATH was set without what it had: where that is done, end its value with `:$PYTHONPATH`".to_owned()
    }
}

/// For one that answers to another run.
const INNER: &str = "it was started by another `gnntop run` inside this one, which watches it";

const START: &str = "`import gnntop; gnntop.start()`";

fn unknown() -> Reason {
    let text = format!("it may be a frozen program, or one without sitecustomize; add {START} to see more");
    Reason { text, is_certain: false, may_join: false }
}

/// For a program that is not called Python. Others have Python in them as well, and look for us.
fn frozen(program: &str) -> Reason {
    let text = format!("Python is built into {program}, as by PyInstaller, and does not look for gnntop; add {START}");
    Reason { text, is_certain: false, may_join: false }
}

/// Whether the process with this program, which is not called Python, has one in it: a library that it has loaded.
pub(super) fn is_frozen(pid: u32, program: &Path) -> bool {
    // Those of the system are not; reading what each of them has loaded would take long.
    if ["/usr", "/bin", "/sbin"].iter().any(|folder| program.starts_with(folder)) {
        return false;
    }
    let loaded = fs::read_to_string(format!("/proc/{pid}/maps")).unwrap_or_default();
    loaded.lines().any(|line| file_name(line).starts_with("libpython3"))
}

/// Whether the process was started for this run, and without the way to gnntop that its Pythons are started with.
pub(super) fn has_lost_path(pid: u32) -> bool {
    let evidence = UnreachedEvidence { variables: variables(pid), ..UnreachedEvidence::default() };
    evidence.value("GNNTOP_ANSWERS").is_some() && !evidence.has_path()
}

/// What its folder lacks to hold an answer; `None` if nothing is known to be missing.
fn full(answers: &Path) -> Option<String> {
    let what = lacking_in(answers)?;
    Some(format!("it cannot write a file into {}, whose disk has no {what} left", answers.display()))
}

/// What the file system of a folder has no more of.
pub(super) fn lacking_in(folder: &Path) -> Option<&'static str> {
    let system = rustix::fs::statvfs(folder).ok()?;
    lacking(system.f_files, system.f_favail, system.f_bavail)
}

/// What a file system with this many inodes, free inodes and free blocks has no more of.
fn lacking(inodes: u64, free_inodes: u64, free_blocks: u64) -> Option<&'static str> {
    // Some file systems do not count their inodes.
    let has_no_inodes = inodes > 0 && free_inodes == 0;
    if has_no_inodes { Some("inodes") } else { (free_blocks == 0).then_some("space") }
}

/// Those below `gnntop run`, of the processes above a Python: what is above it has not started the program.
fn below_gnntop(above: impl Iterator<Item = (u32, Vec<String>)>) -> impl Iterator<Item = (u32, Vec<String>)> {
    above.take_while(|(_, words)| words.first().is_none_or(|program| file_name(program) != "gnntop"))
}

fn file_name(word: &str) -> &str {
    word.rsplit('/').next().unwrap_or(word)
}

/// Whether this command line starts a Python itself.
pub fn is_python(words: &[String]) -> bool {
    words.first().is_some_and(|program| file_name(program).starts_with("python"))
}

/// Why a Python that is started with this command line will not be reached, if that alone says so.
pub(super) fn reason_in_command(words: &[String]) -> Option<String> {
    ignoring_option(words).filter(|_| is_python(words)).map(ignored)
}

fn last_part(path: PathBuf) -> String {
    file_name(&path.to_string_lossy()).to_owned()
}

/// The version in the name of a Python's file, such as `python3.8`, if it is too old to be watched.
fn older_version(program: &str) -> Option<&str> {
    let version = program.strip_prefix("python")?;
    let (major, minor) = version.split_once('.')?;
    let (major, minor): (u32, u32) = (major.parse().ok()?, minor.parse().ok()?);
    ((major, minor) < (3, 10)).then_some(version)
}

/// For a Python with this option.
fn ignored(letter: char) -> String {
    format!(
        "it was started with -{letter}, which ignores PYTHONPATH or sitecustomize; start it without, or add {START}"
    )
}

/// The letter of the option by which a Python that was started with these words does not look at `PYTHONPATH`.
fn ignoring_option(words: &[String]) -> Option<char> {
    let mut words = words.iter().skip(1);
    while let Some(option) = words.next().filter(|word| word.starts_with('-')) {
        // The program is read from standard input; what follows is its.
        if option == "-" {
            return None;
        }
        if option.starts_with("--") {
            continue;
        }
        // What follows these letters is their argument.
        let (letters, argument) =
            option.split_at(option.find(|letter| "WXcm".contains(letter)).unwrap_or(option.len()));
        if let Some(found) = letters.chars().find(|letter| "IES".contains(*letter)) {
            return Some(found);
        }
        match argument {
            "W" | "X" => _ = words.next(),
            _ if argument.starts_with(['c', 'm']) => return None,
            _ => (),
        }
    }
    None
}

/// Whether a line of a shell script gives `PYTHONPATH` a value that does not contain the old one.
fn drops_path(line: &str) -> bool {
    let line = line.trim_start();
    let Some((before, value)) = line.split_once("PYTHONPATH=") else { return false };
    let is_start = before.chars().next_back().is_none_or(|c| c.is_whitespace() || c == ';');
    is_start && !line.starts_with('#') && !value.contains("$PYTHONPATH") && !value.contains("${PYTHONPATH")
}

/// The line with the old value at the end of the new one.
fn with_rest(line: &str) -> String {
    let Some((before, value)) = line.split_once("PYTHONPATH=") else { return line.to_owned() };
    let quote = value.chars().next().filter(|c| matches!(c, '"' | '\''));
    let closed = quote.and_then(|quote| value[1..].find(quote).map(|at| at + 2));
    let is_end = |c: char| quote.is_none() && (c.is_whitespace() || matches!(c, ';' | '&' | '|'));
    let (value, rest) = value.split_at(closed.or_else(|| value.find(is_end)).unwrap_or(value.len()));
    match value.strip_suffix('"').filter(|_| closed.is_some()) {
        Some(open) => format!("{before}PYTHONPATH={open}:$PYTHONPATH\"{rest}"),
        None => format!("{before}PYTHONPATH={value}:$PYTHONPATH{rest}"),
    }
}

fn shortened(line: &str) -> String {
    let text = clean(line.replace('\t', " ").as_bytes());
    match text.char_indices().nth(MAX_LINE) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text,
    }
}

/// The environment that a process was started with; `None` if this user may not read it.
fn variables(pid: u32) -> Option<Vec<String>> {
    fs::read(format!("/proc/{pid}/environ")).ok().map(|bytes| texts(&bytes))
}

fn texts(bytes: &[u8]) -> Vec<String> {
    let texts = bytes.split(|byte| *byte == 0).filter(|text| !text.is_empty());
    texts.map(|text| String::from_utf8_lossy(text).into_owned()).collect()
}

/// Name and text of the script that this process runs, if it is a shell.
fn script(pid: u32, words: &[String]) -> Option<(String, String)> {
    if !is_shell(file_name(words.first()?)) {
        return None;
    }
    let path = words.iter().skip(1).find(|word| !word.starts_with('-'))?;
    let name = clean(Path::new(path).file_name()?.as_encoded_bytes());
    let found = fs::canonicalize(Path::new(&format!("/proc/{pid}/cwd")).join(path)).ok()?;
    if !fs::metadata(&found).is_ok_and(|found| found.is_file()) {
        return None; // `sh -c` has no script, and a pipe would block
    }
    let mut text = Vec::new();
    File::open(found).ok()?.take(MAX_SCRIPT).read_to_end(&mut text).ok()?;
    Some((name, String::from_utf8_lossy(&text).into_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn evidence(line: &str, variables: &[&str]) -> UnreachedEvidence {
        let texts = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect();
        let words: Vec<&str> = line.split(' ').collect();
        {
            let variables = Some(texts(variables));
            let answers = PathBuf::from("/tmp/a");
            UnreachedEvidence { words: texts(&words), variables, answers, ..UnreachedEvidence::default() }
        }
    }

    const REACHED: [&str; 2] = ["GNNTOP_ANSWERS=/tmp/a", "PYTHONPATH=/c/gnntop/bootstrap:."];

    #[test]
    fn full_disks_lack_space_or_inodes() {
        assert_eq!([lacking(9, 1, 1), lacking(0, 0, 1)], [None, None]);
        assert_eq!([lacking(9, 0, 1), lacking(9, 1, 0)], [Some("inodes"), Some("space")]);
    }

    #[test]
    fn an_option_is_read_from_the_command_line() {
        for (line, letter) in [
            ("python -I train.py", "-I"),
            ("python3 -u -E train.py -S", "-E"),
            ("python -uS -m train", "-S"),
            ("python -OOI -c pass", "-I"),
            ("python -W error::SyntaxWarning -I train.py", "-I"),
            ("python -Wignore -X dev -uE train.py", "-E"),
        ] {
            let reason = evidence(line, &REACHED).reason();
            assert!(reason.is_certain && reason.text.contains(&format!("started with {letter},")), "{line}");
        }
        for line in [
            "python train.py -I",
            "python -Wignore::SyntaxWarning train.py",
            "python -uWError::ImportWarning train.py",
            "python -W ImportWarning -X SI train.py -E",
            "python -uc pass -I",
            "python -m train -S",
            "python - -I",
            "python --help",
            "/opt/app/python",
        ] {
            assert!(evidence(line, &REACHED).reason().text.contains("frozen"), "{line}");
        }
    }

    #[test]
    fn what_is_above_gnntop_has_not_started_the_program() {
        let line = |line: &str| (1, line.split(' ').map(str::to_owned).collect::<Vec<_>>());
        let above = ["bash train.sh", "env -i", "/usr/bin/gnntop keep --name=a", "sudo gnntop run", "bash other.sh"];
        let found: Vec<_> = below_gnntop(above.into_iter().map(line)).map(|(_, words)| words.join(" ")).collect();
        assert_eq!(found, above[..2]);
    }

    #[test]
    fn each_cause_has_a_sentence_of_its_own() {
        let line = "python train.py";
        let reason = |change: &dyn Fn(&mut UnreachedEvidence)| {
            let mut evidence = evidence(line, &REACHED);
            change(&mut evidence);
            evidence.reason()
        };
        let cleared = |evidence: &mut UnreachedEvidence| evidence.variables = Some(vec!["PATH=/bin".to_owned()]);
        assert!(reason(&cleared).text.contains("env -i"));
        assert!(reason(&|evidence| evidence.is_other_user = true).text.contains("sudo gnntop run"));
        assert!(reason(&|evidence| evidence.is_container = true).text.contains("run gnntop inside it"));
        let off = |evidence: &mut UnreachedEvidence| evidence.variables = Some(vec!["GNNTOP=0".to_owned()]);
        assert!(reason(&off).text.contains("GNNTOP=0"));
        let old = |program: &'static str| {
            reason(&move |evidence: &mut UnreachedEvidence| evidence.program = program.to_owned())
        };
        assert_eq!(old("python3.8").text, "it is Python 3.8, and gnntop needs 3.10 or newer");
        assert!(old("python2.7").is_certain && !old("python3.10").is_certain && !old("python3").is_certain);
        let above = |words: &[&str]| vec![words.iter().map(|word| (*word).to_owned()).collect()];
        let sudo = |evidence: &mut UnreachedEvidence| {
            cleared(evidence);
            evidence.above = above(&["/usr/bin/sudo", "python", "train.py"]);
        };
        assert!(reason(&sudo).text.contains("`sudo gnntop run -- python ...`"));
        let conda = |evidence: &mut UnreachedEvidence| {
            evidence.variables = Some(vec!["GNNTOP_ANSWERS=/tmp/a".to_owned(), "PYTHONPATH=/ros".to_owned()]);
            evidence.above = above(&["/opt/conda/bin/python", "/opt/conda/bin/conda", "run", "-n", "x", "python"]);
        };
        assert!(reason(&conda).text.contains("`conda run gnntop run -- python ...`"));
        let lost =
            |evidence: &mut UnreachedEvidence| evidence.variables = Some(vec!["GNNTOP_ANSWERS=/tmp/a".to_owned()]);
        assert!(reason(&lost).text.contains("without PYTHONPATH, as pex starts programs"));
        let frozen = reason(&|evidence| evidence.program = "train".to_owned());
        assert!(frozen.text.contains("built into train, as by PyInstaller") && !frozen.is_certain);
        assert!(!reason(&|evidence| evidence.program = "python".to_owned()).is_certain, "it may be slow to start");
        assert!(!reason(&|evidence| evidence.variables = None).is_certain);
    }

    #[test]
    fn a_python_joins_that_nobody_has_turned_off_or_put_elsewhere() {
        let may_join = |line: &str, variables: &[&str]| evidence(line, variables).reason().may_join;
        let answers = "GNNTOP_ANSWERS=/tmp/a";
        for line in ["python train.py", "python -I train.py", "python -S train.py"] {
            assert!(may_join(line, &[answers, "PYTHONPATH=."]), "{line}");
            assert!(!may_join(line, &[answers, "PYTHONPATH=.", "GNNTOP=0"]), "{line}");
            assert!(!may_join(line, &["PATH=/bin"]), "{line}");
        }
        assert!(!may_join("python train.py", &REACHED));
        for change in [
            |evidence: &mut UnreachedEvidence| evidence.is_other_user = true,
            |evidence: &mut UnreachedEvidence| evidence.is_container = true,
        ] {
            let mut evidence = evidence("python -I train.py", &REACHED);
            change(&mut evidence);
            assert!(!evidence.reason().may_join);
        }
    }

    #[test]
    fn the_line_that_sets_the_path_is_named_with_what_to_write() {
        let mut evidence = evidence("python train.py", &["GNNTOP_ANSWERS=/tmp/a", "PYTHONPATH=."]);
        assert!(evidence.reason().text.contains("end its value with `:$PYTHONPATH`"));
        let script =
            "#!/bin/bash\n# PYTHONPATH=no\nexport PYTHONPATH=.\nexport PYTHONPATH=a:$PYTHONPATH\npython train.py\n";
        evidence.scripts = vec![("train.sh".to_owned(), script.to_owned())];
        let expected = "line 3 of train.sh sets PYTHONPATH without what it had: \
                        change `export PYTHONPATH=.` to `export PYTHONPATH=.:$PYTHONPATH`";
        assert_eq!(evidence.reason(), Reason { text: expected.to_owned(), is_certain: true, may_join: true });
    }

    #[test]
    fn old_python_path_is_appended() {
        for (line, expected) in [
            ("PYTHONPATH=. python a.py", "PYTHONPATH=.:$PYTHONPATH python a.py"),
            ("export PYTHONPATH=\"a b\"; x", "export PYTHONPATH=\"a b:$PYTHONPATH\"; x"),
            ("PYTHONPATH='a'", "PYTHONPATH='a':$PYTHONPATH"),
            ("PYTHONPATH=$PWD&& x", "PYTHONPATH=$PWD:$PYTHONPATH&& x"),
            ("PYTHONPATH=\"open", "PYTHONPATH=\"open:$PYTHONPATH"),
        ] {
            assert_eq!(with_rest(line), expected);
        }
        assert!(!drops_path("OTHER_PYTHONPATH=."));
    }
}
