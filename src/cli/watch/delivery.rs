//! Where notices go beside standard output: to a command of the user's, or to an address, by `curl`.

use std::fs;
use std::io;
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};
use std::time::Duration;

use anyhow::Context;

use super::super::exit::UsageError;
use super::super::output;
use super::super::piped::{curl_option, run_with_input};
use super::notice::Notice;

/// The environment's place for an address.
const ADDRESS: &str = "GNNTOP_WEBHOOK";
/// A command that has not ended by then is ended: it would hold up the notices after it.
const LONGEST: Duration = Duration::from_secs(60);

/// Where notices go.
#[derive(Debug)]
pub(super) struct Delivery {
    command: Option<String>,
    address: Option<String>,
}

impl Delivery {
    /// To this command, and to the address in this file or in the environment.
    ///
    /// # Errors
    /// If the file cannot be read, or what is there is no address.
    pub(super) fn new(command: Option<String>, file: Option<&Path>) -> anyhow::Result<Self> {
        let text = match file {
            Some(path) if path.to_str().is_some_and(is_address) => {
                let why = "an address on the command line is seen by everybody on this machine";
                return Err(UsageError::with_message(format!(
                    "{why}: put it into a file and name that, or into {ADDRESS}"
                )));
            }
            Some(path) => Some(fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?),
            None => std::env::var(ADDRESS).ok().filter(|address| !address.is_empty()),
        };
        let address = text.map(|text| text.lines().next().unwrap_or_default().trim().to_owned());
        if address.as_deref().is_some_and(|address| !is_address(address)) {
            let place = file.map_or_else(|| ADDRESS.to_owned(), |path| path.display().to_string());
            return Err(UsageError::with_message(format!("{place}: the first line is no address: https://...")));
        }
        Ok(Self { command, address })
    }

    /// Sends a notice everywhere. What fails is said on standard error.
    pub(super) fn send(&self, notice: &Notice) {
        if let Some(command) = &self.command {
            let mut shell = Command::new("sh");
            shell.args(["-c", command]).env("GNNTOP_NOTICE", notice.line());
            report(&format!("`{command}`"), run_with_input(shell, notice.json().as_bytes(), LONGEST));
        }
        if let Some(address) = &self.address {
            // All of it goes through standard input: `ps` shows arguments to everybody.
            let mut curl = Command::new("curl");
            curl.args(["--config", "-"]).stdout(Stdio::null()).env_remove(ADDRESS);
            report("curl", run_with_input(curl, curl_config(address, &notice.json()).as_bytes(), LONGEST));
        }
    }
}

fn is_address(text: &str) -> bool {
    let rest = text.strip_prefix("https://").or_else(|| text.strip_prefix("http://"));
    rest.is_some_and(|rest| !rest.is_empty() && !rest.contains(|c: char| c.is_whitespace() || c.is_control()))
}

/// What `curl --config` reads.
fn curl_config(address: &str, body: &str) -> String {
    let options = [("url", address), ("header", "Content-Type: application/json"), ("data-raw", body)];
    let options: String = options.iter().map(|(name, value)| curl_option(name, value)).collect();
    options + "silent\nshow-error\nfail\nmax-time = 20\nretry = 2\n"
}

fn report(what: &str, outcome: io::Result<ExitStatus>) {
    match outcome {
        Ok(status) if status.success() => (),
        Ok(status) => output::print_error(&format!("a notice was not delivered by {what}: {status}")),
        Err(error) => output::print_error(&format!("a notice was not delivered by {what}: {error}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_come_from_files_and_not_from_the_command_line() {
        let new = |path: &Path| Delivery::new(None, Some(path)).map(|delivery| delivery.address);
        let error = new(Path::new("https://hooks.example/T0")).unwrap_err().to_string();
        assert!(error.contains("put it into a file"), "{error}");
        let file = tempfile::NamedTempFile::new().unwrap();
        fs::write(file.path(), "https://hooks.example/T0\nmore\n").unwrap();
        assert_eq!(new(file.path()).unwrap().as_deref(), Some("https://hooks.example/T0"));
        for wrong in ["", "hooks.example", "https://", "file:///etc/passwd", "http://a b"] {
            fs::write(file.path(), wrong).unwrap();
            assert!(new(file.path()).unwrap_err().to_string().contains("no address"), "{wrong}");
        }
    }

    #[test]
    fn nothing_in_a_notice_leaves_its_quotes() {
        let config = curl_config("http://a/\"b", "{\"text\":\"a\\\"\\nurl = evil\"}");
        assert_eq!(config.lines().count(), 8);
        assert!(config.starts_with("url = \"http://a/\\\"b\"\n"), "{config}");
        assert!(config.contains(r#"data-raw = "{\"text\":\"a\\\"\\nurl = evil\"}""#), "{config}");
    }
}
