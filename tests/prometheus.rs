//! `gnntop serve`, scraped by a real Prometheus: `$GNNTOP_PROMETHEUS`, else `prometheus` on the path (Debian has a package).
//! Skipped, and saying so, where there is none.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};

use crate::sessions::{Sessions, spawn, wait_until};
use gnntop_fixtures::TrainingRun;
use serde_json::Value;

/// A child that does not outlive the test.
struct KilledOnDrop(Child);

impl Drop for KilledOnDrop {
    fn drop(&mut self) {
        _ = self.0.kill();
        _ = self.0.wait();
    }
}

/// A port that was free a moment ago.
fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

/// Starts Prometheus on what is served at `address`, or says why not.
fn prometheus(sessions: &Sessions, address: &str, port: u16) -> Result<KilledOnDrop, String> {
    let program = std::env::var("GNNTOP_PROMETHEUS").unwrap_or_else(|_| "prometheus".to_owned());
    let config = format!(
        "global: {{scrape_interval: 1s, scrape_timeout: 1s}}\n\
         scrape_configs: [{{job_name: training, static_configs: [{{targets: ['{address}']}}]}}]\n"
    );
    let config = sessions.file("prometheus.yml", config.as_bytes());
    let mut command = Command::new(&program);
    command.arg(format!("--config.file={}", config.display()));
    command.arg(format!("--storage.tsdb.path={}", sessions.path().join("tsdb").display()));
    command.arg(format!("--web.listen-address=127.0.0.1:{port}"));
    command.stdout(Stdio::null()).stderr(fs::File::create(sessions.path().join("prometheus.log")).unwrap());
    command.spawn().map(KilledOnDrop).map_err(|error| format!("{program}: {error}"))
}

/// The value of an instant query, `None` while Prometheus has none.
fn query(port: u16, expression: &str) -> Option<f64> {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).ok()?;
    write!(stream, "GET /api/v1/query?query={expression} HTTP/1.0\r\n\r\n").ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok()?;
    let body: Value = serde_json::from_str(answer.split_once("\r\n\r\n")?.1).ok()?;
    body["data"]["result"][0]["value"][1].as_str()?.parse().ok()
}

#[test]
fn prometheus_scrapes_a_running_training() {
    let sessions = Sessions::new();
    let bytes = TrainingRun { ends: false, ..TrainingRun::default() }.bytes();
    let (begin, rest) = bytes.split_at(bytes.len() / 2);
    let session = sessions.live("pna", begin);
    let mut served = KilledOnDrop(spawn(&mut sessions.gnntop(["serve", "--metrics", "127.0.0.1:0"])));
    let mut said = String::new();
    BufReader::new(served.0.stdout.as_mut().unwrap()).read_line(&mut said).unwrap();
    let address = said.strip_prefix("http://").and_then(|url| url.split('/').next()).unwrap();
    let port = free_port();
    let _prometheus = match prometheus(&sessions, address, port) {
        Ok(started) => started,
        Err(why) => return println!("skipped: no Prometheus ({why}); install it or set GNNTOP_PROMETHEUS"),
    };
    wait_until(|| query(port, "up") == Some(1.0));
    wait_until(|| query(port, "gnntop_steps_total").is_some_and(|steps| (10.0..100.0).contains(&steps)));
    session.append(rest);
    wait_until(|| query(port, "gnntop_steps_total") == Some(100.0));
    assert_eq!(query(port, "gnntop_phase_seconds_count%7Bphase=%22backward%22%7D"), Some(100.0));
    let p90 = query(port, "gnntop_period_seconds%7Bquantile=%220.9%22%7D").unwrap();
    assert!((0.03..0.2).contains(&p90), "{p90} s");
}
