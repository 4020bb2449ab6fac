//! Sessions: one publishing process each. A session is opened with a few settings and closed when dropped.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::thread::JoinHandle;
use std::time::{Duration, Instant, SystemTime};

use gnntop_sensors::SensorOptions;
use gnntop_sessions::layout;
use gnntop_wire::{Fact, Origin, Place, TrackRole};

use crate::clock;
use crate::drain::Drain;
use crate::foreign::{Ring, WaitingRings};
use crate::launched::{Launched, asked_goal};
use crate::publisher::Publisher;
use crate::settings::Settings;
use crate::threads::{self, Spawn};
use crate::track::Track;
use crate::warning::{Warning, WarningListener};
use crate::{accounts, fork, prune, sensing, switch};

/// Longest time that the program's end waits for our threads, whatever the file system does.
const END_WITHIN: Duration = Duration::from_secs(2);
/// Longest wait for [`Session::flush`].
const FLUSH_WITHIN: Duration = Duration::from_secs(1);
/// Time between two checks whether a thread has ended.
const JOIN_INTERVAL: Duration = Duration::from_micros(200);

/// The settings of a session; made by [`Session::builder`].
pub struct SessionBuilder {
    settings: Settings,
    sessions_dir: Option<PathBuf>,
    sensors: Option<SensorOptions>,
    sensor_interval: Duration,
    allocation_event_bytes: Option<usize>,
    spawn: Spawn,
}

impl fmt::Debug for SessionBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = f.debug_struct("SessionBuilder");
        text.field("name", &self.settings.name).field("sessions_dir", &self.sessions_dir);
        text.field("sensors", &self.sensors.is_some()).finish_non_exhaustive()
    }
}

impl SessionBuilder {
    /// Publishes under `dir` instead of `$GNNTOP_DIR` and its fallbacks.
    #[must_use]
    pub fn directory(mut self, dir: impl Into<PathBuf>) -> Self {
        self.sessions_dir = Some(dir.into());
        self
    }

    /// Writes everything to one new recording instead of a live session.
    #[must_use]
    pub fn record_to(mut self, file: impl Into<PathBuf>) -> Self {
        self.settings.recording = Some(file.into());
        self
    }

    /// Limits what a live session keeps on disk, 64 MiB by default: half for the newest segments, half for the figures of
    /// the dropped ones.
    #[must_use]
    pub fn max_bytes(mut self, bytes: u64) -> Self {
        self.settings.max_bytes = bytes;
        self
    }

    /// How often rings are emptied, 20 ms by default. A ring's size limits the events between two drains.
    #[must_use]
    pub fn drain_interval(mut self, interval: Duration) -> Self {
        self.settings.drain_interval = interval;
        self
    }

    /// Which hardware is sampled; `None` for none. By default this process and the machine, including GPUs.
    #[must_use]
    pub fn sensors(mut self, options: Option<SensorOptions>) -> Self {
        self.sensors = options;
        self
    }

    /// How often hardware is sampled, 100 ms by default.
    #[must_use]
    pub fn sensor_interval(mut self, interval: Duration) -> Self {
        self.sensor_interval = interval;
        self
    }

    /// Size from which single allocations are recorded, 1 MiB by default. Needs a
    /// [`TrackingAllocator`](crate::TrackingAllocator).
    #[must_use]
    pub fn allocation_event_bytes(mut self, bytes: usize) -> Self {
        self.allocation_event_bytes = Some(bytes);
        self
    }

    /// Sets what observes the program, [`Origin::Probe`] by default.
    #[must_use]
    pub fn origin(mut self, origin: Origin) -> Self {
        self.settings.origin = origin;
        self
    }

    /// Sets this session's place in a run of several ranks.
    #[must_use]
    pub fn place(mut self, place: Place) -> Self {
        self.settings.place = Some(place);
        self
    }

    /// Called when publishing is not possible; by default, a line is written to stderr. At most once for each
    /// [`Warning`], on the thread that detects it.
    #[must_use]
    pub fn on_warning(mut self, tell: impl FnMut(&Warning) + Send + 'static) -> Self {
        self.settings.on_warning = WarningListener::new(tell);
        self
    }

    /// Called with what a person asks of this program through `gnntop trace`, within half a second and on the drain thread;
    /// with an empty text when the request is withdrawn. The text and the answer are described in
    /// `gnntop_sessions::request`. Without this, nothing looks for requests.
    #[must_use]
    pub fn on_request(mut self, pass_on: impl FnMut(&str) + Send + 'static) -> Self {
        self.settings.on_request = Some(Box::new(pass_on));
        self
    }

    /// Starts publishing. Never fails and never waits: if publishing is impossible, the program is warned once and
    /// continues unobserved. With `GNNTOP=0` in the environment, nothing is started.
    pub fn start(mut self) -> Session {
        if std::env::var_os("GNNTOP").is_some_and(|value| value == "0") {
            return Session { running: None, has_goal: false };
        }
        if let Some(bytes) = self.allocation_event_bytes {
            accounts::set_event_bytes(bytes);
        }
        self.settings.place = Launched::from_env().complete(self.settings.place.take());
        let goal = asked_goal();
        let session = Session { running: Running::start(self), has_goal: goal.is_some() };
        session
            .running
            .iter()
            .for_each(|running| goal.iter().for_each(|goal| running.publisher.add_fact(goal.clone())));
        session
    }
}

/// A publishing session, from [`SessionBuilder::start`] until it is dropped.
#[must_use = "publishing ends when this is dropped"]
pub struct Session {
    running: Option<Running>,
    /// Whether a person has said how far the run is meant to go, which counts more than what the program says.
    has_goal: bool,
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let dir = self.running.as_ref().and_then(|running| running.dir.as_ref());
        f.debug_struct("Session").field("is_publishing", &self.running.is_some()).field("dir", &dir).finish()
    }
}

struct Running {
    publisher: Arc<Publisher>,
    threads: Vec<JoinHandle<()>>,
    /// Rings of workers; created with the first ring.
    workers: OnceLock<WaitingRings>,
    dir: Option<PathBuf>,
    listener: WarningListener,
}

impl Session {
    /// Default settings for a session called `name`, such as the model's name.
    pub fn builder(name: impl Into<String>) -> SessionBuilder {
        let settings = Settings {
            name: name.into(),
            recording: None,
            max_bytes: 64 << 20,
            drain_interval: Duration::from_millis(20),
            origin: Origin::Probe,
            place: None,
            on_warning: WarningListener::stderr(),
            on_request: None,
        };
        SessionBuilder {
            settings,
            sessions_dir: None,
            sensors: Some(SensorOptions::default()),
            sensor_interval: Duration::from_millis(100),
            allocation_event_bytes: None,
            spawn: threads::spawn,
        }
    }

    /// Opens a track for the calling thread, which records on it until the result is dropped. Use [`TrackRole::Training`]
    /// on the thread that runs the training loop.
    pub fn track(&self, name: &str, role: TrackRole) -> Track {
        match &self.running {
            Some(running) => Track::open(&running.publisher, name, role),
            None => Track::inert(),
        }
    }

    /// Adds the ring of a worker process. It becomes a track of this session once the worker has attached.
    pub fn worker(&self, ring: &Ring) {
        if let Some(Running { workers, publisher, .. }) = &self.running {
            workers.get_or_init(|| WaitingRings::open(publisher)).push(ring);
        }
    }

    /// Publishes a fact of the program's own, which is shown. A repeated key replaces the earlier text.
    pub fn fact(&self, key: &str, text: &str) {
        self.add_fact(Fact::Other { key: key.to_owned(), text: text.to_owned() });
    }

    /// Publishes a fact that gnntop knows, such as the framework: `Fact::Framework("candle 0.9".into())`. It replaces an
    /// earlier one about the same.
    pub fn add_fact(&self, fact: Fact) {
        if let Some(running) = &self.running.as_ref().filter(|_| !(self.has_goal && matches!(fact, Fact::Goal { .. })))
        {
            running.publisher.add_fact(fact);
        }
    }

    /// Reports that the program resumes from a checkpoint taken after `steps` steps, counted from the start of the run: the
    /// steps since then are repeated. To be called before the first step.
    pub fn resumed(&self, steps: u64) {
        self.add_fact(Fact::Resumed { steps });
    }

    /// Writes out everything recorded so far, which otherwise happens 25 times a second. Returns false if that takes longer
    /// than a second, and at once if nothing is published, or nothing can be written now.
    pub fn flush(&self) -> bool {
        let Some(Running { publisher, threads, .. }) = &self.running.as_ref().filter(|_| self.is_publishing()) else {
            return false;
        };
        let (number, give_up_at) = (publisher.request_flush(), Instant::now() + FLUSH_WITHIN);
        threads.iter().for_each(|thread| thread.thread().unpark());
        while !publisher.is_flushed(number) {
            if Instant::now() >= give_up_at || !publisher.is_of_this_process() || !self.is_publishing() {
                return false;
            }
            std::thread::sleep(JOIN_INTERVAL);
        }
        true
    }

    /// Whether what is recorded now is published: not while there is no room for it. That ends by itself.
    pub fn is_publishing(&self) -> bool {
        self.running.is_some() && switch::is_recording()
    }

    /// The session's directory, which `gnntop attach` takes; `None` where nothing is published, or to a recording.
    pub fn dir(&self) -> Option<&Path> {
        self.running.as_ref()?.dir.as_deref()
    }
}

impl Running {
    /// Starts the session's threads; `None` if nothing can be published, in which case the program has been warned.
    fn start(builder: SessionBuilder) -> Option<Self> {
        let SessionBuilder { settings, sessions_dir, sensors, sensor_interval, spawn, .. } = builder;
        let Some(clock) = clock::tick_counter() else {
            settings.on_warning.notify(&Warning::FrozenClock);
            return None;
        };
        fork::register_fork_handlers();
        let publisher = Publisher::start(clock, settings.recording.is_some());
        let dir = settings.recording.is_none().then(|| {
            let sessions = sessions_dir.unwrap_or_else(layout::sessions_dir);
            sessions.join(layout::session_dir_name(&settings.name, std::process::id(), publisher.id))
        });
        let listener = settings.on_warning.clone();
        switch::begin_session();
        let (workers, threads) = (OnceLock::new(), Vec::new());
        let mut running = Self { publisher, threads, workers, dir: dir.clone(), listener: listener.clone() };
        let drain = Drain::new(Arc::clone(&running.publisher), settings, dir);
        if let Err(error) = running.spawn(spawn, "gnntop drain", move || drain.run()) {
            listener.notify(&Warning::Thread { error });
            return None;
        }
        if let Some(sessions) = running.dir.as_deref().and_then(Path::parent).map(Path::to_owned) {
            // Not on the drain thread: it may take a second, in which the first events would wait. Nothing waits for it.
            let _ = spawn("gnntop prune", Box::new(move || prune::remove_old(&sessions, SystemTime::now())));
        }
        if let Some(options) = sensors {
            let publisher = Arc::clone(&running.publisher);
            let sample = move || sensing::run(&publisher, &options, sensor_interval);
            if let Err(error) = running.spawn(spawn, "gnntop sensors", sample) {
                listener.notify(&Warning::SensorThread { error });
            }
        }
        Some(running)
    }

    fn spawn(&mut self, spawn: Spawn, name: &str, body: impl FnOnce() + Send + 'static) -> std::io::Result<()> {
        self.threads.push(spawn(name, Box::new(body))?);
        Ok(())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if !self.publisher.is_of_this_process() {
            // A forked child has neither the threads nor a right to the files.
            return std::mem::forget(std::mem::take(&mut self.threads));
        }
        self.publisher.stop();
        let give_up_at = Instant::now() + END_WITHIN;
        let left = self.threads.drain(..).rev().filter_map(|thread| join_until(thread, give_up_at).err()).count();
        switch::end_session();
        if left > 0 {
            self.listener.notify(&Warning::Unfinished { waited: END_WITHIN });
        }
    }
}

/// Waits for a thread to end. Returns it if it does not end in time, because it hangs in the file system.
fn join_until(thread: JoinHandle<()>, give_up_at: Instant) -> Result<(), JoinHandle<()>> {
    thread.thread().unpark();
    while !thread.is_finished() {
        if Instant::now() >= give_up_at {
            return Err(thread);
        }
        std::thread::sleep(JOIN_INTERVAL);
    }
    // The panic hook has reported a panic in the thread; it must not become the program's.
    let _ = thread.join();
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::sync::mpsc;

    use super::*;

    /// A session on a system where the thread of this name cannot be started.
    fn warnings_when_a_thread_fails(spawn: Spawn) -> (Session, Vec<String>, tempfile::TempDir) {
        let temp = tempfile::tempdir().unwrap();
        let (tell, told) = mpsc::channel();
        let mut builder = Session::builder("no thread")
            .directory(temp.path())
            .on_warning(move |warning| tell.send(warning.to_string()).unwrap());
        builder.spawn = spawn;
        let session = builder.start();
        (session, told.try_iter().collect(), temp)
    }

    fn no_thread() -> io::Error {
        io::Error::from(io::ErrorKind::WouldBlock)
    }

    #[test]
    fn failed_drain_thread_is_a_warning() {
        let (session, told, temp) = warnings_when_a_thread_fails(|_, _| Err(no_thread()));
        assert_eq!(told.len(), 1);
        assert!(told[0].starts_with("gnntop cannot publish: starting a thread failed: "), "{told:?}");
        assert_eq!(session.dir(), None);
        assert!(!session.track("train", TrackRole::Training).is_recording());
        assert_eq!(std::fs::read_dir(temp.path()).unwrap().count(), 0);
    }

    #[test]
    fn drop_does_not_wait_for_hung_thread() {
        // Like a thread that writes to a frozen file system.
        let (tell, told) = mpsc::channel();
        let mut builder = Session::builder("hangs").on_warning(move |warning| tell.send(warning.to_string()).unwrap());
        builder.spawn = |_, _| std::thread::Builder::new().spawn(|| std::thread::sleep(Duration::from_secs(3600)));
        drop(builder.start());
        assert_eq!(
            told.recv().unwrap(),
            "gnntop did not finish its stream: the file system did not accept it within 2s"
        );
    }

    #[test]
    fn failed_sensor_thread_keeps_publishing() {
        let (session, told, _temp) = warnings_when_a_thread_fails(|name, body| match name {
            "gnntop sensors" => Err(no_thread()),
            _ => threads::spawn(name, body),
        });
        assert_eq!(told.len(), 1);
        assert!(told[0].starts_with("gnntop publishes without hardware readings"), "{told:?}");
        assert!(session.track("train", TrackRole::Training).is_recording());
    }
}
