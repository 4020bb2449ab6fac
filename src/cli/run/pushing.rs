//! `gnntop run --otlp`: the keeper sends the program's figures to a collector, on its own thread.

use std::io;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread;
use std::time::{Duration, Instant};

use super::super::otlp::{OtlpSettings, Pusher, push_until};
use gnntop_analysis::source::{ProgramSession, follow};
use gnntop_sessions::discover::ListedSession;

/// Time between two looks for the session.
const POLL_INTERVAL: Duration = Duration::from_millis(200);
/// After the program's end, that of its session is waited for this long.
const GRACE: Duration = Duration::from_secs(2);

/// The thread that sends.
pub(super) struct ActivePush {
    address: String,
    timeout: Duration,
    /// Dropped when the program has ended.
    running: Option<Sender<()>>,
    ended: Instant,
    done: Receiver<()>,
}

impl ActivePush {
    /// Starts sending the figures of this session, as soon as there is one. `warn` is called when they do not arrive.
    ///
    /// # Errors
    /// If the system cannot start a thread.
    pub(super) fn start(
        settings: OtlpSettings,
        session: ProgramSession,
        warn: impl Fn(&str) + Send + 'static,
    ) -> io::Result<Self> {
        let (address, timeout) = (settings.address(), settings.timeout());
        let ((running, program), (finished, done)) = (mpsc::channel(), mpsc::channel());
        let push = move || {
            push(settings, session, &program, &warn);
            let _ = finished.send(());
        };
        thread::Builder::new().name("gnntop otlp".to_owned()).spawn(push)?;
        Ok(Self { address, timeout, running: Some(running), ended: Instant::now(), done })
    }

    /// The program has ended.
    pub(super) fn note_end(&mut self) {
        self.running = None;
        self.ended = Instant::now();
    }

    /// Waits for the last figures, at most as long as a request may take. Returns what is to be said if that is too long: a
    /// collector that does not answer delays nobody further, and the thread goes with the process.
    pub(super) fn wait(mut self) -> Option<String> {
        self.running = None;
        let left = self.timeout.saturating_sub(self.ended.elapsed());
        let is_late = self.done.recv_timeout(left) == Err(RecvTimeoutError::Timeout);
        is_late.then(|| format!("the last figures did not reach {}: no answer in time", self.address))
    }
}

fn push(settings: OtlpSettings, mut session: ProgramSession, program: &Receiver<()>, warn: &dyn Fn(&str)) {
    let Some(session) = find(&mut session, program) else {
        return warn("the program published nothing, so no figures were sent");
    };
    let address = settings.address();
    let mut pusher = Pusher::new(settings.for_host(session.info.host.clone()));
    push_until(&mut pusher, follow(&session).as_mut(), warn, &mut waiter(program));
    if let Some(why) = pusher.failure() {
        warn(&format!("the last figures did not reach {address}: {why}"));
    }
}

/// Waits for this long, or until the program has ended; whether it has, and its session had time to end as well.
pub(super) fn waiter(program: &Receiver<()>) -> impl FnMut(Duration) -> bool {
    let mut give_up_at = None;
    move |time| match give_up_at {
        None => {
            if !is_running(program, time) {
                give_up_at = Some(Instant::now() + GRACE);
            }
            false
        }
        Some(at) => {
            thread::sleep(POLL_INTERVAL.min(time));
            Instant::now() >= at
        }
    }
}

/// The session, once there is one; `None` if the program ends without.
pub(super) fn find(session: &mut ProgramSession, program: &Receiver<()>) -> Option<ListedSession> {
    loop {
        // Asked before the look, so that a session of a program that has just ended is still found.
        let last_look = !is_running(program, POLL_INTERVAL);
        if let Some(session) = session.find() {
            return Some(session);
        }
        if last_look {
            return None;
        }
    }
}

/// Whether the program runs after this time, or has ended before.
fn is_running(program: &Receiver<()>, time: Duration) -> bool {
    program.recv_timeout(time) == Err(RecvTimeoutError::Timeout)
}
