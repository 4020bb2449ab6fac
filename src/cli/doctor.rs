//! `gnntop doctor`: what can be read here, what cannot, and how to change that.

use std::io::{self, IsTerminal};
use std::path::Path;

use gnntop_sensors::{SensorOptions, diagnose};
use gnntop_sessions::{Error, discover, layout};
use rustix::fs::Access;
use serde::Serialize;

use super::exit::{FAILURE, SUCCESS};
use super::settings::SensorArguments;
use super::{output, screen};
use crate::python::diagnose;

const EXAMPLES: &str = "\
Examples:
  gnntop doctor             as text
  gnntop doctor --json      as JSON

Exit codes: 0 sessions can be published and watched, even if sensors are missing; 1 they cannot.";

/// Version of the JSON form.
const SCHEMA_VERSION: u32 = 1;

/// Check what can be measured here, what cannot, and how to change that
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct DoctorArguments {
    /// Write JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    sensors: SensorArguments,
}

/// What was found.
#[derive(Debug, Serialize)]
struct DoctorReport {
    schema_version: u32,
    version: &'static str,
    checks: Vec<DoctorCheck>,
}

/// One thing that was looked at.
#[derive(Debug, PartialEq, Eq, Serialize)]
struct DoctorCheck {
    component: &'static str,
    /// `ok`, `off`, `failed`, or how much of a sensor can be read.
    state: &'static str,
    detail: String,
    /// What a person can do about it.
    remedy: Option<String>,
}

/// Does `gnntop doctor`.
pub(super) fn doctor(arguments: &DoctorArguments) -> anyhow::Result<u8> {
    arguments.sensors.apply();
    let mut checks = vec![sessions_dir(&layout::sessions_dir()), publishing(), python(), terminal()];
    checks.extend(diagnose(&SensorOptions::default()).into_iter().map(|found| DoctorCheck {
        component: found.component,
        state: found.state.as_str(),
        detail: found.detail,
        remedy: found.remedy,
    }));
    let failed = checks.iter().any(|check| check.state == "failed");
    let findings = DoctorReport { schema_version: SCHEMA_VERSION, version: env!("CARGO_PKG_VERSION"), checks };
    if arguments.json {
        output::print(&serde_json::to_string_pretty(&findings)?)?;
    } else {
        output::print(&describe(&findings))?;
    }
    Ok(if failed { FAILURE } else { SUCCESS })
}

/// Whether sessions can be written and found.
fn sessions_dir(dir: &Path) -> DoctorCheck {
    let component = "sessions directory";
    let check = |state, detail, remedy: Option<&str>| DoctorCheck {
        component,
        state,
        detail: format!("{}: {detail}", dir.display()),
        remedy: remedy.map(str::to_owned),
    };
    let remedy = Some("set GNNTOP_DIR to a directory of your own, for both the training run and gnntop");
    let listing = match discover::list(dir) {
        Ok(listing) => listing,
        Err(Error::SessionsDir { error, .. }) => {
            let is_open = matches!(*error, Error::WritableByOthers);
            let remedy = if is_open { Some("remove their access: chmod 700") } else { remedy };
            return check("failed", error.to_string(), remedy);
        }
        Err(error) => return check("failed", error.to_string(), remedy),
    };
    // The nearest existing directory must let us make the others.
    let Some(nearest) = dir.ancestors().find(|dir| dir.exists()) else {
        return check("failed", "cannot be created".to_owned(), remedy);
    };
    if !is_writable(nearest) {
        return check("failed", format!("{} is not writable", nearest.display()), remedy);
    }
    let live = listing.sessions.iter().filter(|session| session.alive).count();
    let ended = listing.sessions.len() - live;
    check("ok", format!("{live} live and {ended} ended sessions"), None)
}

/// Whether this process may write to the directory.
fn is_writable(dir: &Path) -> bool {
    rustix::fs::access(dir, Access::WRITE_OK | Access::EXEC_OK).is_ok()
}

/// Whether programs that start from this environment publish.
fn publishing() -> DoctorCheck {
    let off = std::env::var_os("GNNTOP").is_some_and(|value| value == "0");
    let (state, detail) = if off { ("off", "GNNTOP=0 is set: nothing is published") } else { ("ok", "not turned off") };
    let remedy = off.then(|| "unset GNNTOP".to_owned());
    DoctorCheck { component: "publishing", state, detail: detail.to_owned(), remedy }
}

/// Whether Python programs are seen from within.
fn python() -> DoctorCheck {
    let found = diagnose::diagnose();
    let state = if found.works { "ok" } else { "off" };
    DoctorCheck { component: "Python programs", state, detail: found.detail, remedy: found.remedy }
}

/// What the screen can do here.
fn terminal() -> DoctorCheck {
    let set = |name| std::env::var(name).ok().filter(|value| !value.is_empty());
    let term = set("TERM").unwrap_or_else(|| "not set".to_owned());
    let mut detail = format!("TERM is {term}");
    if let Some(depth) = set("COLORTERM") {
        detail.push_str(&format!(", COLORTERM is {depth}"));
    }
    if set("NO_COLOR").is_some() {
        detail.push_str(", NO_COLOR is set");
    }
    if !io::stdout().is_terminal() {
        detail.push_str("; standard output is not a terminal, so plain lines are printed");
    } else if screen::is_possible() {
        detail.push_str("; screen");
    } else {
        detail.push_str("; plain lines");
    }
    DoctorCheck { component: "terminal", state: "ok", detail, remedy: None }
}

fn describe(findings: &DoctorReport) -> String {
    let mut lines = vec![format!("gnntop {}", findings.version)];
    for check in &findings.checks {
        lines.push(format!("{:9} {}: {}", check.state, check.component, check.detail));
        lines.extend(check.remedy.iter().map(|remedy| format!("{:9} -> {remedy}", "")));
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn sessions_dir_writable_by_others_fails() {
        let dir = tempfile::tempdir().unwrap();
        fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o700)).unwrap();
        assert_eq!(sessions_dir(dir.path()).state, "ok");
        assert_eq!(sessions_dir(&dir.path().join("not/yet")).state, "ok");
        fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o777)).unwrap();
        let check = sessions_dir(dir.path());
        assert_eq!((check.state, check.remedy.is_some()), ("failed", true));
    }

    #[test]
    fn sessions_dir_that_is_a_file_fails() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let check = sessions_dir(file.path());
        assert_eq!(check.state, "failed");
        assert!(check.detail.contains("is not a directory"), "{}", check.detail);
    }

    #[test]
    fn every_remedy_follows_its_finding() {
        let check = |remedy: Option<&str>| DoctorCheck {
            component: "x",
            state: "failed",
            detail: "broken".to_owned(),
            remedy: remedy.map(str::to_owned),
        };
        let findings =
            DoctorReport { schema_version: 1, version: "0", checks: vec![check(Some("mend it")), check(None)] };
        assert_eq!(describe(&findings), "gnntop 0\nfailed    x: broken\n          -> mend it\nfailed    x: broken");
    }
}
