//! Sessions: one process publishing. Opened with a few settings, closed when dropped.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};
use std::thread::JoinHandle;
use std::time::Duration;

use gnntop_sensors::SensorOptions;
use gnntop_wire::{Definition, Place, TrackId, TrackRole, layout};
use quanta::Clock;

use crate::device::OpenedDevice;
use crate::drain::{self, Drain};
use crate::foreign::Ring;
use crate::ring::{self, Consumer};
use crate::sensing;
use crate::track::{self, Shared, Track};
use crate::warning::Warning;
use crate::{allocator, directory};

/// Tracks that a session takes; threads beyond record nothing.
const MAX_TRACKS: u32 = 1024;
/// The drain thread's own track.
pub(crate) const OWN_TRACK: TrackId = TrackId(0);

/// Sessions running in this process; recording is on while there is one.
static RUNNING: AtomicUsize = AtomicUsize::new(0);
/// The session that [`track`](crate::track) opens tracks on.
static LATEST: Mutex<Weak<Publisher>> = Mutex::new(Weak::new());

/// How a session is to be; made by [`Session::builder`].
pub struct SessionBuilder {
    pub(crate) name: String,
    pub(crate) sessions_dir: Option<PathBuf>,
    pub(crate) recording: Option<PathBuf>,
    pub(crate) max_bytes: u64,
    pub(crate) drain_interval: Duration,
    pub(crate) sensors: Option<SensorOptions>,
    pub(crate) sensor_interval: Duration,
    allocation_event_bytes: Option<usize>,
    pub(crate) place: Option<Place>,
    pub(crate) on_warning: Box<dyn FnMut(&Warning) + Send>,
}

impl SessionBuilder {
    /// Publishes under `dir` instead of `$GNNTOP_DIR` and its fallbacks.
    #[must_use]
    pub fn directory(mut self, dir: impl Into<PathBuf>) -> Self {
        self.sessions_dir = Some(dir.into());
        self
    }

    /// Writes everything straight into one new recording instead of a live session.
    #[must_use]
    pub fn record_to(mut self, file: impl Into<PathBuf>) -> Self {
        self.recording = Some(file.into());
        self
    }

    /// Bounds what a live session keeps on disk, 64 MiB by default; the oldest segments go first.
    #[must_use]
    pub fn max_bytes(mut self, bytes: u64) -> Self {
        self.max_bytes = bytes;
        self
    }

    /// How often rings are emptied, 20 ms by default. What a ring holds bounds the events between two drains.
    #[must_use]
    pub fn drain_interval(mut self, interval: Duration) -> Self {
        self.drain_interval = interval;
        self
    }

    /// Which hardware is sampled; `None` for none. By default this process and the machine, GPUs included.
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

    /// This session is one rank of a run of several: where it stands among them.
    #[must_use]
    pub fn place(mut self, place: Place) -> Self {
        self.place = Some(place);
        self
    }

    /// Who is told when publishing is not possible; by default a line goes to stderr. Called at most once, from
    /// the drain thread.
    #[must_use]
    pub fn on_warning(mut self, tell: impl FnMut(&Warning) + Send + 'static) -> Self {
        self.on_warning = Box::new(tell);
        self
    }

    /// Starts publishing. Never fails and never waits: where publishing turns out to be impossible the program
    /// is warned once and goes on unobserved. With `GNNTOP=0` in the environment nothing at all is started.
    pub fn start(self) -> Session {
        if std::env::var_os("GNNTOP").is_some_and(|value| value == "0") {
            return Session { running: None };
        }
        if let Some(bytes) = self.allocation_event_bytes {
            allocator::set_event_bytes(bytes);
        }
        Session { running: Running::start(self) }
    }
}

/// What a session's threads share.
pub(crate) struct Publisher {
    pub(crate) id: u128,
    pub(crate) clock: Clock,
    next_track: AtomicU32,
    /// Tracks opened since the drain thread last looked.
    opened: Mutex<Vec<OpenedTrack>>,
    /// Devices attached since then.
    opened_devices: Mutex<Vec<OpenedDevice>>,
    /// Rings of workers since then.
    foreign: Mutex<Vec<Ring>>,
    /// What is known of the program, since then.
    facts: Mutex<Vec<Definition>>,
    /// Definitions of signals, once the sensors are open.
    pub(crate) signals: Mutex<Vec<Definition>>,
    /// Segments begun so far: tells the sensor thread when to repeat every value.
    pub(crate) segments: AtomicUsize,
    pub(crate) stopping: AtomicBool,
}

/// A track as it comes to the drain thread.
pub(crate) struct OpenedTrack {
    pub(crate) id: TrackId,
    pub(crate) definition: Definition,
    pub(crate) consumer: Consumer,
    pub(crate) shared: Arc<Shared>,
}

impl Publisher {
    fn new(clock: Clock) -> Self {
        Self {
            id: drain::random_id(&clock),
            clock,
            next_track: AtomicU32::new(OWN_TRACK.0 + 1),
            opened: Mutex::default(),
            opened_devices: Mutex::default(),
            foreign: Mutex::default(),
            facts: Mutex::default(),
            signals: Mutex::default(),
            segments: AtomicUsize::new(0),
            stopping: AtomicBool::new(false),
        }
    }

    pub(crate) fn track(self: &Arc<Self>, name: &str, role: TrackRole) -> Track {
        let Some(id) = self.next_track_id() else { return Track::inert() };
        let (producer, consumer) = ring::ring();
        let shared = Arc::new(Shared::default());
        let definition = Definition::Track { id, role, thread_id: thread_id(), text: name.to_owned() };
        let opened = OpenedTrack { id, definition, consumer, shared: Arc::clone(&shared) };
        lock(&self.opened).push(opened);
        Track::open(producer, self.clock.clone(), shared, Arc::downgrade(self))
    }

    /// The id of a track that is about to be opened; `None` where it cannot be recorded.
    pub(crate) fn next_track_id(&self) -> Option<TrackId> {
        let id = self.next_track.fetch_add(1, Ordering::Relaxed);
        let is_possible = track::is_recording() && id <= MAX_TRACKS && !self.stopping.load(Ordering::Relaxed);
        is_possible.then_some(TrackId(id))
    }

    pub(crate) fn open_device(&self, opened: OpenedDevice) {
        lock(&self.opened_devices).push(opened);
    }

    pub(crate) fn take_opened_devices(&self) -> Vec<OpenedDevice> {
        std::mem::take(&mut *lock(&self.opened_devices))
    }

    pub(crate) fn take_foreign(&self) -> Vec<Ring> {
        std::mem::take(&mut *lock(&self.foreign))
    }

    pub(crate) fn take_facts(&self) -> Vec<Definition> {
        std::mem::take(&mut *lock(&self.facts))
    }

    pub(crate) fn take_opened(&self) -> Vec<OpenedTrack> {
        std::mem::take(&mut *lock(&self.opened))
    }
}

/// A lock whose holder never leaves it half-changed, so that a panic elsewhere does not matter.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// One process publishing, from [`SessionBuilder::start`] until it is dropped.
#[must_use = "publishing ends when this is dropped"]
pub struct Session {
    running: Option<Running>,
}

struct Running {
    publisher: Arc<Publisher>,
    threads: Vec<JoinHandle<()>>,
    pid: u32,
    dir: Option<PathBuf>,
}

impl Session {
    /// Settings for a session called `name`, such as the model's name.
    pub fn builder(name: impl Into<String>) -> SessionBuilder {
        SessionBuilder {
            name: name.into(),
            sessions_dir: None,
            recording: None,
            max_bytes: 64 << 20,
            drain_interval: Duration::from_millis(20),
            sensors: Some(SensorOptions::default()),
            sensor_interval: Duration::from_millis(100),
            allocation_event_bytes: None,
            place: None,
            on_warning: Box::new(warn_on_stderr),
        }
    }

    /// Opens a track for the calling thread, which records on it until the result is dropped. The thread that
    /// runs the training loop takes [`TrackRole::Training`].
    pub fn track(&self, name: &str, role: TrackRole) -> Track {
        match &self.running {
            Some(running) => running.publisher.track(name, role),
            None => Track::inert(),
        }
    }

    /// Takes the ring of a worker process, which becomes a track of this session once the worker has attached.
    pub fn worker(&self, ring: &Ring) {
        if let Some(running) = &self.running {
            lock(&running.publisher.foreign).push(ring.share());
        }
    }

    /// Says something of the program that is worth knowing with its figures, such as the framework it uses. The same key
    /// again changes what was said.
    pub fn fact(&self, key: &str, text: &str) {
        if let Some(running) = &self.running {
            let fact = Definition::Fact { key: key.to_owned(), text: text.to_owned() };
            lock(&running.publisher.facts).push(fact);
        }
    }

    /// The session's directory, which `gnntop attach` takes; `None` where nothing is published, or to a recording.
    pub fn dir(&self) -> Option<&std::path::Path> {
        self.running.as_ref()?.dir.as_deref()
    }
}

/// Opens tracks on one session from any thread: hand one to the threads that a rank starts. See [`opener`].
#[derive(Clone)]
pub struct Opener {
    publisher: Weak<Publisher>,
}

impl Opener {
    /// Opens a track for the calling thread, as [`Session::track`] does: on this session, or once that is over on the
    /// one started last. Records nothing when there is none.
    pub fn track(&self, name: &str, role: TrackRole) -> Track {
        let publisher = self.publisher.upgrade().or_else(|| lock(&LATEST).upgrade());
        publisher.map_or_else(Track::inert, |publisher| publisher.track(name, role))
    }
}

impl std::fmt::Debug for Opener {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Opener").field("is_publishing", &(self.publisher.strong_count() > 0)).finish()
    }
}

/// What opens tracks on the session that the calling thread records to, or without one on the session that was
/// started last when a track is opened.
pub fn opener() -> Opener {
    Opener { publisher: track::current_publisher().unwrap_or_default() }
}

/// Opens a track on the session that [`opener`] finds: for libraries and worker threads that nobody hands a
/// [`Session`]. Records nothing when there is none.
pub fn track(name: &str, role: TrackRole) -> Track {
    opener().track(name, role)
}

impl Running {
    fn start(mut builder: SessionBuilder) -> Option<Self> {
        stop_recording_in_forked_children();
        let publisher = Arc::new(Publisher::new(Clock::new()));
        let pid = std::process::id();
        let dir_name = layout::session_dir_name(&builder.name, pid, publisher.id);
        let sessions = builder.sessions_dir.take().unwrap_or_else(directory::sessions_dir);
        let dir = builder.recording.is_none().then(|| sessions.join(dir_name));
        let sensors = builder.sensors.take().map(|options| (options, builder.sensor_interval));

        RUNNING.fetch_add(1, Ordering::SeqCst);
        track::set_recording(true);
        *lock(&LATEST) = Arc::downgrade(&publisher);
        let mut running = Self { publisher, threads: Vec::new(), pid, dir: dir.clone() };
        let drain = Drain::new(Arc::clone(&running.publisher), builder, dir);
        running.spawn("gnntop drain", move || drain.run());
        if let Some((options, interval)) = sensors {
            let publisher = Arc::clone(&running.publisher);
            running.spawn("gnntop sensors", move || sensing::run(&publisher, &options, interval));
        }
        Some(running)
    }

    fn spawn(&mut self, name: &str, body: impl FnOnce() + Send + 'static) {
        // A program that cannot start one more thread has other worries: it goes on, unobserved.
        if let Ok(thread) = std::thread::Builder::new().name(name.to_owned()).spawn(body) {
            self.threads.push(thread);
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if std::process::id() != self.pid {
            // A forked child has neither the threads nor the right to the files.
            std::mem::forget(std::mem::take(&mut self.threads));
            return;
        }
        self.publisher.stopping.store(true, Ordering::SeqCst);
        for thread in self.threads.drain(..).rev() {
            thread.thread().unpark();
            // A panic there was reported by the panic hook and must not become the program's.
            let _ = thread.join();
        }
        if RUNNING.fetch_sub(1, Ordering::SeqCst) == 1 {
            track::set_recording(false);
        }
    }
}

fn warn_on_stderr(warning: &Warning) {
    use std::io::Write;
    // Nobody to tell when stderr is closed.
    let _ = writeln!(std::io::stderr(), "warning: {warning}");
}

/// In a forked child no drain thread runs: what it records would only fill its copy of the rings.
fn stop_recording_in_forked_children() {
    extern "C" fn in_child() {
        track::set_recording(false);
    }
    static ONCE: OnceLock<()> = OnceLock::new();
    ONCE.get_or_init(|| {
        // SAFETY: the handler only stores to an atomic, which is allowed between fork and exec.
        unsafe { libc::pthread_atfork(None, None, Some(in_child)) };
    });
}

fn thread_id() -> u64 {
    #[cfg(target_os = "linux")]
    // SAFETY: gettid has no preconditions and cannot fail.
    return unsafe { libc::gettid() } as u64;
    #[cfg(not(target_os = "linux"))]
    return 0;
}
