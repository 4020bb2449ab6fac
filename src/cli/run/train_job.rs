//! The progress of a Kubeflow TrainJob: its controller names an address, a certificate and a token by variables, and the keeper
//! posts there how far the program is, on its own thread
//! (<https://github.com/kubeflow/trainer/tree/master/docs/proposals/2779-trainjob-progress>).

use std::io;
use std::path::PathBuf;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};

use super::super::otlp::JsonService;
use super::pushing::{find, waiter};
use gnntop_analysis::figures::utc;
use gnntop_analysis::ranks::Run;
use gnntop_analysis::source::{ProgramSession, SourceState, follow};
use gnntop_analysis::store::{Limits, Store};

/// The variables that the controller sets: its address, and files with its certificate and with a token, which changes.
const ADDRESS: &str = "KUBEFLOW_TRAINER_SERVER_URL";
const CERTIFICATE: &str = "KUBEFLOW_TRAINER_SERVER_CA_CERT";
const TOKEN: &str = "KUBEFLOW_TRAINER_SERVER_TOKEN";
/// With `TRUE`, the `Trainer` of transformers leaves the reports to others.
const NOT_BY_TRAINER: &str = "DISABLE_KUBEFLOW_INTEGRATION";

/// The controller wants no more than one report in this time.
const INTERVAL: Duration = Duration::from_secs(5);
/// After failures the time between reports doubles, up to this.
const LONGEST_INTERVAL: Duration = Duration::from_secs(80);
/// What one report may take.
const TIMEOUT: Duration = Duration::from_secs(4);
/// How long one look at the run may take, and the time between two.
const POLL_BUDGET: Duration = Duration::from_millis(50);
const POLL_INTERVAL: Duration = Duration::from_secs(1);
/// Progress needs far less than a screen, which draws what was.
const PART_OF_A_STORE: usize = 8;

/// Where reports go.
pub(super) struct TrainJob {
    service: JsonService,
    token: PathBuf,
    is_trainer_silent: bool,
}

impl TrainJob {
    /// What the environment says; `None` where this is no TrainJob whose controller wants reports.
    ///
    /// # Errors
    /// Why nothing can be reported, in words.
    pub(super) fn from_env() -> Result<Option<Self>, String> {
        Self::from_variables(|name| std::env::var(name).ok().filter(|value| !value.is_empty()))
    }

    fn from_variables(variable: impl Fn(&str) -> Option<String>) -> Result<Option<Self>, String> {
        let Some((address, token)) = variable(ADDRESS).zip(variable(TOKEN)) else { return Ok(None) };
        let service = JsonService::new(&address, variable(CERTIFICATE).map(PathBuf::from))
            .map_err(|why| format!("{ADDRESS} is not used: {why}"))?;
        let is_trainer_silent = variable(NOT_BY_TRAINER).is_some_and(|value| value.eq_ignore_ascii_case("true"));
        Ok(Some(Self { service, token: token.into(), is_trainer_silent }))
    }

    /// Posts what is known now; whether there was something.
    fn post(&self, run: &Run) -> io::Result<bool> {
        let store = run.store();
        let is_first = run.members().iter().any(|member| member.place().is_none_or(|place| place.rank == 0));
        // The Trainer reports by itself, and one report replaces the other.
        let is_said = store.session().uses_library("transformers") && !self.is_trainer_silent;
        let Some(body) = body(store, SystemTime::now()).filter(|_| is_first && !is_said) else { return Ok(false) };
        // Read each time: the token changes.
        let token = std::fs::read_to_string(&self.token)?;
        let token = token.trim();
        if token.contains(char::is_control) {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "the token is more than one line"));
        }
        self.service.post(body.to_string().as_bytes(), token, Instant::now() + TIMEOUT).map(|()| true)
    }
}

/// A report; `None` before the first step.
fn body(store: &Store, now: SystemTime) -> Option<Value> {
    let step = store.steps().last()?.step().0;
    let mut metrics = vec![("step", step.to_string())];
    metrics.extend(store.statistics().steps_per_s().map(|rate| ("steps_per_second", format!("{rate:.3}"))));
    metrics.extend(store.statistics().last_loss().map(|loss| ("loss", loss.to_string())));
    let metrics: Vec<Value> =
        metrics.into_iter().map(|(name, value)| json!({ "name": name, "value": value })).collect();
    let now_ns = u64::try_from(now.duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos()).unwrap_or(u64::MAX);
    // RFC 3339.
    let updated = utc(now_ns).replacen(' ', "T", 1).replace(" UTC", "Z");
    let mut status = json!({ "metrics": metrics, "lastUpdatedTime": updated });
    let progress = store.progress();
    if let Some(share) = progress.as_ref().and_then(|progress| progress.share()) {
        status["progressPercentage"] = json!((share * 100.0).floor() as u64);
    }
    if let Some(left_ns) = progress.and_then(|progress| progress.left_ns) {
        status["estimatedRemainingSeconds"] = json!(left_ns / 1_000_000_000);
    }
    Some(json!({ "trainerStatus": status }))
}

/// The thread that reports.
pub(super) struct ActiveTrainJob {
    /// Dropped when the program has ended.
    running: Option<Sender<()>>,
    ended: Instant,
    done: Receiver<()>,
}

impl ActiveTrainJob {
    /// Starts reporting how far this session is. `warn` hears of the first failure.
    ///
    /// # Errors
    /// If the system cannot start a thread.
    pub(super) fn start(
        job: TrainJob,
        session: ProgramSession,
        warn: impl Fn(&str) + Send + 'static,
    ) -> io::Result<Self> {
        let ((running, program), (finished, done)) = (mpsc::channel(), mpsc::channel());
        let report = move || {
            report(&job, session, &program, &warn);
            let _ = finished.send(());
        };
        thread::Builder::new().name("gnntop progress".to_owned()).spawn(report)?;
        Ok(Self { running: Some(running), ended: Instant::now(), done })
    }

    /// The program has ended.
    pub(super) fn note_end(&mut self) {
        self.running = None;
        self.ended = Instant::now();
    }

    /// Waits for the last report, at most as long as one may take. A controller that does not answer delays nobody further.
    pub(super) fn wait(self) -> Option<String> {
        let left = TIMEOUT.saturating_sub(self.ended.elapsed());
        let is_late = self.done.recv_timeout(left) == Err(RecvTimeoutError::Timeout);
        is_late.then(|| "the last progress did not reach the TrainJob's controller: no answer in time".to_owned())
    }
}

fn report(job: &TrainJob, mut session: ProgramSession, program: &Receiver<()>, warn: &dyn Fn(&str)) {
    let Some(session) = find(&mut session, program) else { return };
    let (mut source, mut run) = (follow(&session), Run::with_limits(Limits::default().shared_by(PART_OF_A_STORE)));
    let mut is_over = waiter(program);
    let (mut next, mut interval, mut has_warned) = (Instant::now(), INTERVAL, false);
    let mut post = |run: &Run| {
        let outcome = job.post(run);
        interval = if outcome.is_err() { (interval * 2).min(LONGEST_INTERVAL) } else { INTERVAL };
        if let Err(why) = &outcome
            && !std::mem::replace(&mut has_warned, true)
        {
            warn(&format!("the TrainJob's controller does not take the progress: {why}"));
        }
        let had_nothing = outcome.is_ok_and(|was_something| !was_something);
        if had_nothing { POLL_INTERVAL } else { interval }
    };
    loop {
        while source.poll(&mut run, POLL_BUDGET).more {}
        if matches!(source.status().state, SourceState::Ended(_)) {
            break;
        }
        if Instant::now() >= next {
            next = Instant::now() + post(&run);
        }
        if is_over(POLL_INTERVAL) {
            break;
        }
    }
    post(&run);
}

#[cfg(test)]
mod tests {
    use super::*;
    use gnntop_fixtures::{TrainingRun, each_item};
    use gnntop_wire::{Definition, Fact, put_definitions};

    fn store(goal: Option<&str>) -> Store {
        let mut store = Store::default();
        let mut bytes = TrainingRun { steps: 50, ends: false, ..TrainingRun::default() }.bytes();
        let goal = goal.map(|goal| Definition::Fact(Fact::Goal { goal: goal.parse().unwrap(), by: String::new() }));
        put_definitions(&mut bytes, &goal);
        each_item(&bytes, |item| store.apply(item));
        store
    }

    #[test]
    fn report_is_what_the_controller_reads() {
        let body = |goal| body(&store(goal), UNIX_EPOCH + Duration::from_secs(1_700_000_000)).unwrap();
        let status = body(Some("200"))["trainerStatus"].clone();
        assert_eq!(
            (&status["progressPercentage"], &status["lastUpdatedTime"]),
            (&json!(25), &json!("2023-11-14T22:13:20Z"))
        );
        assert!(status["estimatedRemainingSeconds"].as_u64().is_some_and(|seconds| seconds > 0), "{status}");
        assert_eq!(status["metrics"][0], json!({ "name": "step", "value": "50" }));
        let without = body(None)["trainerStatus"].clone();
        assert!(without.get("progressPercentage").is_none() && without["metrics"].is_array(), "{without}");
        assert_eq!(super::body(&Store::default(), SystemTime::now()), None);
    }

    #[test]
    fn variables_are_those_of_the_controller() {
        let read = |set: &[(&str, &str)]| {
            let find = |name: &str| set.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned());
            TrainJob::from_variables(find).map(|job| job.is_some())
        };
        assert_eq!(read(&[]), Ok(false));
        assert_eq!(read(&[(ADDRESS, "https://c:8082/apis"), (TOKEN, "/token")]), Ok(true));
        assert!(read(&[(ADDRESS, "http://c:8082/apis"), (TOKEN, "/token")]).unwrap_err().contains("https"));
    }
}
