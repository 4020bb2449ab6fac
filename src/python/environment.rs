//! What the environment of a program says, so that every Python in it is seen: the program itself, what a script or a launcher
//! starts, and their children.

use std::ffi::OsString;
use std::path::Path;

use super::{answers::Answers, package};
use gnntop_sessions::layout::LAUNCH;

/// Where NCCL looks for a profiler, and the longest path that it reads there.
const NCCL_PLUGIN: &str = "NCCL_PROFILER_PLUGIN";
const NCCL_LONGEST: usize = 254;

/// Variables for a program that `gnntop run` starts, its name and value each.
///
/// `PYTHONPATH` has our folder in front of what it had, `GNNTOP_LAUNCH` an id that all ranks of a run have in common,
/// `GNNTOP_ANSWERS` where a Python says that it was reached, `GNNTOP_PROGRAM` this program, which makes reports.
/// `NCCL_PROFILER_PLUGIN` is our library, unless it is set: a profiler of the user's own stays, and `none` turns ours off.
pub fn variables(package: &Path, run: &str, answers: &Answers) -> Vec<(&'static str, OsString)> {
    let bootstrap = package::bootstrap(package).into_os_string();
    let mut variables = vec![
        ("PYTHONPATH", prepend_path(bootstrap, std::env::var_os("PYTHONPATH"))),
        (LAUNCH, run.into()),
        ("GNNTOP_ANSWERS", answers.dir().as_os_str().to_owned()),
    ];
    variables.extend(nccl_plugin(package, std::env::var_os(NCCL_PLUGIN)));
    if let Ok(own) = std::env::current_exe() {
        variables.push(("GNNTOP_PROGRAM", own.into_os_string()));
    }
    variables
}

/// Makes NCCL load our plugin, unless another one is set.
fn nccl_plugin(package: &Path, set: Option<OsString>) -> Option<(&'static str, OsString)> {
    let library = package::native(package).into_os_string();
    (set.is_none() && library.len() <= NCCL_LONGEST).then_some((NCCL_PLUGIN, library))
}

/// Whether a person has turned everything off.
pub fn is_off() -> bool {
    std::env::var_os("GNNTOP").is_some_and(|value| value == "0")
}

/// A search path with `first` in front, once.
fn prepend_path(first: OsString, path: Option<OsString>) -> OsString {
    let rest = path.unwrap_or_default();
    let others = std::env::split_paths(&rest).filter(|entry| entry.as_os_str() != first && !rest.is_empty());
    // An entry of ours has no colon in it, and the others had none either.
    std::env::join_paths(std::iter::once(first.clone().into()).chain(others)).unwrap_or(first)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nccl_plugin_is_set_unless_another_is() {
        let package = Path::new("/cache/python-1");
        let ours = Some((NCCL_PLUGIN, OsString::from("/cache/python-1/gnntop/libgnntop.so")));
        assert_eq!(nccl_plugin(package, None), ours);
        for set in ["", "none", "/other.so"] {
            assert_eq!(nccl_plugin(package, Some(set.into())), None);
        }
        assert_eq!(nccl_plugin(Path::new(&"/long".repeat(60)), None), None, "NCCL would cut it");
    }

    #[test]
    fn prepended_path_is_first_and_once() {
        let path = |first: &str, rest: Option<&str>| prepend_path(first.into(), rest.map(OsString::from));
        assert_eq!(path("/o", None), "/o");
        assert_eq!(path("/o", Some("")), "/o");
        assert_eq!(path("/o", Some("/a:/b")), "/o:/a:/b");
        assert_eq!(path("/o", Some("/a:/o:/b")), "/o:/a:/b", "a second gnntop around it");
        assert_eq!(path("/o", Some("/a:")), "/o:/a:", "an empty entry is the current directory");
    }
}
