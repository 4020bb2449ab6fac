//! `gnntop serve`: a session's figures for Prometheus and others that scrape OpenMetrics.
//!
//! ```text
//! connections.rs  all clients at once, with the progress and the deadline of each
//! http.rs         the head of a request, the host names under which it is answered, and an answer
//! session_follower.rs  what is served, on its own thread; followed_run.rs: one run, or all of this machine
//! ```

mod connections;
mod followed_run;
mod http;
mod session_follower;

use std::net::{SocketAddr, TcpListener};

use anyhow::{Context, bail};

use super::exit::SUCCESS;
use super::named::{self, NAMED};
use super::{attach, output, signals};
use connections::{Connections, Reply};
use followed_run::{FollowedRun, LiveRuns, Served};
use gnntop_sessions::layout;
use http::{HttpRequest, HttpResponse, TEXT};
use session_follower::SessionFollower;

const EXAMPLES: &str = "\
Examples:
  gnntop serve                                   the only live session, at http://127.0.0.1:9464/metrics
  gnntop serve pna --metrics 127.0.0.1:9100      by name, on another port
  gnntop serve --all                             all runs of this machine, with the labels run and rank
  gnntop serve --metrics '[::1]:0'               on any free port, which is printed
  gnntop serve --metrics 0.0.0.0:9464 --allow-remote --allow-host node7
                                                 for a Prometheus on another machine that calls this one node7

docs/export.md lists the metrics. After the session ends, its last figures stay until Ctrl-C.";

/// Serve a session's figures to Prometheus while it runs
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct ServeArguments {
    /// A session by name, process id, run or their beginning, or a recording [default: the only live session]
    #[arg(value_name = NAMED)]
    session: Option<String>,
    /// Serve all runs of this machine as they come and go, with the labels run and rank; the machine's own figures have
    /// the label host. An ended run stays for five minutes
    #[arg(long, conflicts_with = "session")]
    all: bool,
    /// Address to listen on, for HTTP without encryption
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:9464")]
    metrics: SocketAddr,
    /// Allow an address that other machines can reach; anyone who reaches it can read the session's names and figures
    #[arg(long)]
    allow_remote: bool,
    /// Also answer requests for this host name; can be given several times. Otherwise only requests for an address or
    /// localhost are answered, so that a web page cannot read the figures through its own name
    #[arg(long = "allow-host", value_name = "NAME", value_parser = http::parse_host_name)]
    allowed_hosts: Vec<String>,
}

/// Does `gnntop serve`.
pub(super) fn serve(arguments: &ServeArguments) -> anyhow::Result<u8> {
    let address = arguments.metrics;
    if !address.ip().to_canonical().is_loopback() && !arguments.allow_remote {
        bail!("{address} can be reached from other machines: listen on 127.0.0.1, or add --allow-remote");
    }
    let dir = layout::sessions_dir();
    let served = match arguments.all {
        true => Served::All(LiveRuns::new(dir)),
        false => {
            let source = attach::open(named::find(arguments.session.as_deref())?, &dir)?;
            Served::One(Box::new(FollowedRun::new(source)))
        }
    };
    let interruption = signals::Interruption::catch()?;
    let listener = TcpListener::bind(address).with_context(|| format!("cannot listen on {address}"))?;
    output::print(&format!("http://{}/metrics, until Ctrl-C", listener.local_addr()?))?;
    let following = SessionFollower::start(served).context("cannot follow the session")?;
    let mut connections = Connections::new(listener)?;
    let mut reply = |request: &HttpRequest| reply(request, &following, &arguments.allowed_hosts);
    while interruption.take().is_none() {
        connections.poll(&mut reply).context("cannot accept more requests")?;
    }
    Ok(SUCCESS)
}

fn reply(request: &HttpRequest, following: &SessionFollower, allowed_hosts: &[String]) -> Reply {
    let plain = |status, body: &str| Reply::Now(HttpResponse { status, content_type: TEXT, body: body.to_owned() });
    if request.host.as_ref().is_some_and(|host| !http::is_known_host(host, allowed_hosts)) {
        return plain("403 Forbidden", "unknown host name: use an address, or start gnntop serve with --allow-host\n");
    }
    match (request.method.as_str(), request.path.as_str()) {
        ("GET" | "HEAD", "/metrics") => Reply::Later(following.figures()),
        ("GET" | "HEAD", "/") => plain("200 OK", "gnntop: the figures are at /metrics\n"),
        ("GET" | "HEAD", _) => plain("404 Not Found", "the figures are at /metrics\n"),
        _ => plain("405 Method Not Allowed", "only GET and HEAD\n"),
    }
}
