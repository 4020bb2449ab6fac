//! One POST with encryption, by the `curl` of the system: it has the certificates, proxies and versions of TLS that the site has set
//! up. The address and the headers, which hold tokens, go through its standard input, the body through a file of this user's.

use std::fmt::Write as _;
use std::fs;
use std::io::{self, Read as _, Write};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use super::super::piped::{curl_option, run_with_input};
use super::answer::{Answer, MOST};
use super::post::Request;
use super::settings::TlsFiles;

/// `curl` ends by itself; it is waited for a little longer.
const GRACE: Duration = Duration::from_secs(1);

/// How `curl` ends that had no answer in time.
const CURL_TIMEOUT: i32 = 28;

/// Sends a request and reads the answer until `deadline`.
///
/// # Errors
/// If there is no answer by then, or no `curl`.
pub(super) fn post(request: &Request<'_>, tls: &TlsFiles, deadline: Instant) -> io::Result<Answer> {
    let left = deadline.saturating_duration_since(Instant::now());
    let mut body = tempfile::NamedTempFile::new()?;
    body.write_all(request.body)?;
    let (answer, failure) = (tempfile::NamedTempFile::new()?, tempfile::NamedTempFile::new()?);
    let files =
        [("data-binary", format!("@{}", body.path().display())), ("output", answer.path().display().to_string())];
    let files = files.iter().map(|(name, value)| curl_option(name, value)).collect::<String>();
    let config = config(request, tls, left) + &files;
    let mut curl = Command::new("curl");
    curl.args(["--config", "-"]).stdout(Stdio::null()).stderr(failure.reopen()?);
    let status = run_with_input(curl, config.as_bytes(), left + GRACE).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => io::Error::new(error.kind(), "https needs curl, which is not installed"),
        _ => error,
    })?;
    if status.code() == Some(CURL_TIMEOUT) {
        return Err(io::ErrorKind::TimedOut.into());
    }
    if !status.success() {
        let text = fs::read_to_string(failure.path()).unwrap_or_default();
        return Err(io::Error::other(text.lines().next().unwrap_or("curl failed").to_owned()));
    }
    let mut bytes = Vec::new();
    answer.reopen()?.take(MOST as u64).read_to_end(&mut bytes)?;
    Answer::parse(&bytes)
}

/// What `curl --config` reads, but for the files of this one request.
fn config(request: &Request<'_>, tls: &TlsFiles, left: Duration) -> String {
    let mut config = curl_option("url", &request.endpoint.to_string());
    request.headers().for_each(|(name, value)| config += &curl_option("header", &format!("{name}: {value}")));
    // No pause before the body, and an answer in the form that is read here.
    config += &curl_option("header", "Expect:");
    let _ = write!(config, "max-time = {:.3}\nsilent\nshow-error\ninclude\nhttp1.1\n", left.as_secs_f64().max(0.001));
    config += "suppress-connect-headers\nproto = \"=https\"\n";
    let _ = writeln!(config, "max-filesize = {MOST}");
    for (name, file) in [("cacert", &tls.authority), ("cert", &tls.certificate), ("key", &tls.key)] {
        config.extend(file.iter().map(|path| curl_option(name, &path.display().to_string())));
    }
    config
}

#[cfg(test)]
mod tests {
    use super::super::endpoint::Endpoint;
    use super::*;

    #[test]
    fn nothing_of_a_header_leaves_its_quotes() {
        let endpoint = Endpoint::parse("https://a/v1/metrics").unwrap();
        let headers = [("Authorization".to_owned(), "Bearer \"\\x".to_owned())];
        let request = Request { endpoint: &endpoint, headers: &headers, body: b"{}", is_compressed: true };
        let tls = TlsFiles { authority: Some("/ca.pem".into()), ..TlsFiles::default() };
        let config = config(&request, &tls, Duration::from_secs(10));
        for line in [
            "url = \"https://a/v1/metrics\"",
            r#"header = "Authorization: Bearer \"\\x""#,
            "header = \"Content-Encoding: gzip\"",
            "cacert = \"/ca.pem\"",
            "max-time = 10.000",
        ] {
            assert!(config.lines().any(|known| known == line), "no {line} in {config}");
        }
    }
}
