//! `gnntop push`: sends the figures of a run to an OpenTelemetry collector.

use std::thread;
use std::time::{Duration, Instant};

use anyhow::bail;

use super::exit::SUCCESS;
use super::named::{self, NAMED};
use super::otlp::{OtlpArguments, OtlpSettings, Pusher, push_until};
use super::reading::{ExactArguments, read_run};
use super::{output, signals};
use gnntop_analysis::source::follow;
use gnntop_analysis::source::target::Target;

const EXAMPLES: &str = "\
Examples:
  gnntop push                                        the only live run, to a collector on this machine
  gnntop push pna --otlp http://collector:4318       every 15 s until it ends
  gnntop push pna --otlp http://prometheus:9090/api/v1/otlp
                                                     to a Prometheus with --web.enable-otlp-receiver
  gnntop push a.gnntop --otlp https://collector      a recording's figures, once
  OTEL_EXPORTER_OTLP_HEADERS=Authorization=Bearer%20TOKEN gnntop push --otlp https://collector

The same for a run that is started: `gnntop run --otlp URL ...`. OTEL_EXPORTER_OTLP_ENDPOINT, _HEADERS, _TIMEOUT, _COMPRESSION,
_CERTIFICATE, _CLIENT_CERTIFICATE, _CLIENT_KEY, the same with _METRICS_, OTEL_SERVICE_NAME, OTEL_RESOURCE_ATTRIBUTES and
OTEL_METRIC_EXPORT_INTERVAL have their usual meaning. Requests are OTLP over HTTP in JSON; https needs curl. docs/otlp.md lists the
metrics.";

/// Between two looks whether a signal has come.
const TURN: Duration = Duration::from_millis(100);

/// Send a run's figures to an OpenTelemetry collector
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct PushArguments {
    /// A session by name, process id, run or their beginning, or a recording [default: the only live session]
    #[arg(value_name = NAMED)]
    session: Option<String>,
    #[command(flatten)]
    otlp: OtlpArguments,
}

/// Does `gnntop push`.
pub(super) fn push(arguments: &PushArguments) -> anyhow::Result<u8> {
    let settings = OtlpSettings::new(arguments.otlp.otlp.as_deref().unwrap_or_default())?;
    let (address, every) = (settings.address(), settings.interval().as_secs_f64());
    let warn = |text: &str| output::print_error(&format!("warning: {text}"));
    let target = named::find(arguments.session.as_deref())?;
    let is_once = matches!(target, Target::Recording(_));
    let pusher = match target {
        Target::Process(process) => bail!("process {} publishes no steps, so there is nothing to send", process.pid()),
        Target::Recording(_) => {
            let run = read_run(arguments.session.as_deref(), ExactArguments::default())?;
            let mut pusher = Pusher::with_run(settings, run);
            pusher.push(true, &|_| ());
            pusher
        }
        Target::Session(session) => {
            let interruption = signals::Interruption::catch()?;
            output::print(&format!("to {address} every {every} s, until the run ends or Ctrl-C"))?;
            let mut pusher = Pusher::new(settings);
            let mut wait = |time| wait_for(time, &|| interruption.take().is_some());
            push_until(&mut pusher, follow(&session).as_mut(), &warn, &mut wait);
            pusher
        }
    };
    match (pusher.failure(), pusher.answer()) {
        (Some(why), _) => bail!("the figures did not reach {address}: {why}"),
        (None, Some((why, true))) => bail!("{address} did not take all figures: {why}"),
        // Of a run, it was said.
        (None, Some((why, false))) if is_once => {
            warn(&format!("{address}: {why}"));
            Ok(SUCCESS)
        }
        _ if pusher.is_empty() => bail!("there is no session in it, so nothing was sent"),
        _ => Ok(SUCCESS),
    }
}

/// Waits for this time, or until `is_over`; whether it is.
fn wait_for(time: Duration, is_over: &dyn Fn() -> bool) -> bool {
    let end = Instant::now() + time;
    while Instant::now() < end {
        if is_over() {
            return true;
        }
        thread::sleep(TURN.min(time));
    }
    is_over()
}
