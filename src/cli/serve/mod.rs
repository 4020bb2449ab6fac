//! `gnntop serve`: a session's figures for Prometheus and what else scrapes OpenMetrics.

mod http;

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::thread;
use std::time::Duration;

use anyhow::{Context, bail};

use super::exit::SUCCESS;
use super::{attach, output, signals};
use crate::export::openmetrics;
use gnntop_analysis::findings::{Judgement, Watch};
use gnntop_analysis::ranks::Run;
use gnntop_analysis::source::{Source, State, discover, target};
use http::{Answer, Request};

const EXAMPLES: &str = "\
Examples:
  gnntop serve                                   the only live session, at http://127.0.0.1:9464/metrics
  gnntop serve pna --metrics 127.0.0.1:9100      by name, at another port
  gnntop serve --metrics '[::1]:0'               at any free port, which is printed

Scrape it as OpenMetrics; docs/export.md names the metrics. When the session ends its last figures stay until Ctrl-C.";

/// Time between two looks at the session and at who asks.
const POLL_INTERVAL: Duration = Duration::from_millis(20);
/// How long one look at the session may take.
const POLL_BUDGET: Duration = Duration::from_millis(200);
/// Answers between two looks at the session.
const ANSWERS: usize = 8;
const OPENMETRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
const TEXT: &str = "text/plain; charset=utf-8";

/// Offer a session's figures to Prometheus while it runs
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct ServeArguments {
    /// Process id, name or directory of the session, or a recording; without it the only live session
    #[arg(value_name = "PID|NAME|DIR|FILE")]
    session: Option<String>,
    /// Where to listen, for HTTP without encryption
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:9464")]
    metrics: SocketAddr,
    /// Allow an address that other machines reach: whoever reaches it can read the session's names and figures
    #[arg(long)]
    allow_remote: bool,
}

/// Does `gnntop serve`.
pub(super) fn serve(arguments: &ServeArguments) -> anyhow::Result<u8> {
    let address = arguments.metrics;
    if !address.ip().to_canonical().is_loopback() && !arguments.allow_remote {
        bail!("{address} can be reached from other machines: listen on 127.0.0.1, or add --allow-remote");
    }
    let dir = discover::sessions_dir();
    let source = attach::open(target::resolve(arguments.session.as_deref(), &dir)?, &dir)?;
    let interruption = signals::Interruption::catch()?;
    let listener = TcpListener::bind(address).with_context(|| format!("cannot listen on {address}"))?;
    listener.set_nonblocking(true)?;
    output::say(&format!("http://{}/metrics, until Ctrl-C", listener.local_addr()?))?;
    let (run, watch) = (Run::default(), Watch::new());
    let mut served = Served { source, run, watch, judgement: Judgement::default(), has_ended: false };
    while interruption.take().is_none() {
        let has_more = served.follow();
        let has_asked = served.answer_all(&listener)?;
        if !has_more && !has_asked {
            thread::sleep(POLL_INTERVAL);
        }
    }
    Ok(SUCCESS)
}

/// A session and what is known of it.
struct Served {
    source: Box<dyn Source>,
    run: Run,
    watch: Watch,
    judgement: Judgement,
    has_ended: bool,
}

impl Served {
    /// Takes what has come; whether there is more.
    fn follow(&mut self) -> bool {
        let progress = self.source.poll(&mut self.run, POLL_BUDGET);
        if let State::Ended(why) = self.source.status().state
            && !std::mem::replace(&mut self.has_ended, true)
        {
            output::note(&format!("{why}; the last figures stay until Ctrl-C"));
        }
        progress.more
    }

    /// Answers those who wait, a few at a time; whether there was anybody.
    fn answer_all(&mut self, listener: &TcpListener) -> anyhow::Result<bool> {
        for answered in 0..ANSWERS {
            match listener.accept() {
                // A client that fails is its own affair, and it knows.
                Ok((stream, _)) => drop(http::serve(stream, |request| self.answer(request))),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(answered > 0),
                // Those a client causes by leaving: accept(2).
                Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => (),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => (),
                Err(error) => return Err(error).context("cannot take any more requests"),
            }
        }
        Ok(true)
    }

    fn answer(&mut self, request: &Request) -> Answer {
        let plain = |status, body: &str| Answer { status, content_type: TEXT, body: body.to_owned() };
        match (request.method.as_str(), request.path.as_str()) {
            ("GET" | "HEAD", "/metrics") => {
                if let Some(judgement) = self.watch.update(&self.run) {
                    self.judgement = judgement;
                }
                let body = openmetrics::write(self.run.store(), &self.judgement.findings);
                Answer { status: "200 OK", content_type: OPENMETRICS, body }
            }
            ("GET" | "HEAD", "/") => plain("200 OK", "gnntop: the figures are at /metrics\n"),
            ("GET" | "HEAD", _) => plain("404 Not Found", "the figures are at /metrics\n"),
            _ => plain("405 Method Not Allowed", "only GET and HEAD\n"),
        }
    }
}
