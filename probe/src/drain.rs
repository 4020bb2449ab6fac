//! The drain thread: empties the rings, turns ticks into time, and writes the stream.
//!
//! ```text
//! every 20 ms   rings -> one block per track, open records; what devices have reached; for a second after one of the first
//!               tracks was opened every 2 ms, and at once to the output: a program may end any moment
//! every 40 ms   names and tracks defined since -> blocks -> output
//! every 500 ms  sensor blocks
//! every second  clock anchor, memory by phase; into a recording all blocks. The session ends if only our threads are left
//! ```

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use gnntop_wire::{
    BlockEncoder, Definition, End, Event, PhaseMemory, SessionInfo, TrackRole, put_anchor, put_compressed_definitions,
    put_definitions, put_end, put_segment,
};

use rustix::time::ClockId;

use crate::clock::{self, ClockMap, ClockReading};
use crate::outage::Outages;
use crate::output::Output;
use crate::publisher::{OWN_TRACK, Publisher};
use crate::requests::Requests;
use crate::settings::Settings;
use crate::source::Source;
use crate::timer::{FirstSeconds, Timer};
use crate::warning::Warning;
use crate::{accounts, names, switch, threads};

/// How often blocks are written: the longest lag of a viewer, and long enough for a block to be worth its header.
const FLUSH_INTERVAL: Duration = Duration::from_millis(40);
/// How often sensor readings are written.
const SLOW_FLUSH_INTERVAL: Duration = Duration::from_millis(500);
/// How often clock anchors and memory totals are written.
const ANCHOR_INTERVAL: Duration = Duration::from_secs(1);

/// If nothing could be written, the first retry comes after this long. The pause then doubles...
const FIRST_PAUSE: Duration = Duration::from_secs(1);
/// ...up to this.
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

/// The drain thread's state.
pub(crate) struct Drain {
    publisher: Arc<Publisher>,
    settings: Settings,
    dir: Option<PathBuf>,
    info: SessionInfo,
    map: ClockMap,
    sources: Vec<Box<dyn Source>>,
    requests: Option<Requests>,
    own_block: BlockEncoder,
    /// All definitions so far, repeated at the start of each segment.
    definitions: Vec<Definition>,
    written_names: usize,
    written_signals: usize,
    /// Phases with a memory account: the account and the totals last written.
    accounts: Vec<(usize, PhaseMemory)>,
    /// Definitions since the last flush, written before `out`. Both buffers are reused.
    defined: Vec<Definition>,
    out: Vec<u8>,
    /// Whether anything was written since the last failure.
    has_written: bool,
    /// Whether the first that could be written was not the first that was recorded.
    is_late: bool,
    outages: Outages,
    first: FirstSeconds,
}

impl Drain {
    pub(crate) fn new(publisher: Arc<Publisher>, mut settings: Settings, dir: Option<PathBuf>) -> Self {
        let start = clock::read(&publisher.clock);
        Self {
            map: ClockMap::new(clock::quoted_rate(&publisher.clock), start),
            info: SessionInfo { start: start.anchor, ..SessionInfo::default() },
            own_block: publisher.encoder(OWN_TRACK),
            definitions: vec![own_track()],
            accounts: vec![(0, PhaseMemory::default())],
            requests: dir.as_deref().zip(settings.on_request.take()).map(|(dir, pass_on)| Requests::new(dir, pass_on)),
            publisher,
            settings,
            dir,
            sources: Vec::new(),
            written_names: 0,
            written_signals: 0,
            defined: Vec::new(),
            out: Vec::new(),
            has_written: false,
            is_late: false,
            outages: Outages::default(),
            first: FirstSeconds::new(Instant::now()),
        }
    }

    /// Publishes until the session ends, pausing while there is no room.
    pub(crate) fn run(mut self) {
        let (mut output, mut pause, mut is_told, mut is_last) = (None, FIRST_PAUSE, false, false);
        while let Err(warning) = self.publish(&mut output) {
            // The next segment begins with all definitions.
            self.defined.clear();
            if std::mem::take(&mut self.has_written) {
                // The file may have reached its size limit: a new file may accept what this one did not.
                pause = FIRST_PAUSE;
                continue;
            }
            self.is_late |= self.info.segment == 0;
            self.discard_blocks();
            switch::stop_recording();
            let stopped = self.outages.begin(&warning);
            if let Some(output) = &output {
                output.report(Some(stopped));
            }
            if !std::mem::replace(&mut is_told, true) {
                self.settings.on_warning.notify(&warning);
            }
            if is_last || matches!(warning, Warning::RecordingExists { .. }) {
                return;
            }
            // At the session's end there may be room again: for what is missing, and for the end itself.
            is_last = !self.wait_and_discard(pause);
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }

    /// Discards what is collected. No later block may continue one of these.
    fn discard_blocks(&mut self) {
        for source in &mut self.sources {
            source.finish(&mut self.out);
            source.begin_again();
        }
        self.own_block.finish(0, &mut self.out);
        self.own_block.begin_again();
        self.out.clear();
    }

    /// Discards what arrives meanwhile; returns whether the session continues.
    fn wait_and_discard(&mut self, pause: Duration) -> bool {
        let (mut over, mut anchor) = (Timer::new(pause), Timer::new(ANCHOR_INTERVAL));
        while !over.is_due() {
            if self.publisher.is_stopping() {
                return false;
            }
            self.drain();
            if anchor.is_due() {
                self.anchor();
            }
            self.discard_blocks();
            self.sources.retain(|source| !source.is_over());
            self.defined.clear();
            std::thread::park_timeout(self.settings.drain_interval);
        }
        true
    }

    fn publish(&mut self, output: &mut Option<Output>) -> Result<(), Warning> {
        let output = match output {
            Some(output) => output,
            None => output.insert(self.open()?),
        };
        let now = clock::read(&self.publisher.clock);
        self.begin_segment(output, now)?;
        output.report(None);
        if let Some(fact) = self.outages.end() {
            self.redefine(Definition::Fact(fact));
        }
        if std::mem::take(&mut self.is_late) {
            self.sources.iter_mut().for_each(|source| source.begin_late());
        }
        switch::resume_recording();
        // No viewer waits for a recording, and longer blocks are smaller: there, all blocks are written with the
        // anchors.
        let is_live = self.settings.recording.is_none();
        let [mut flush, mut slow, mut anchor] = [FLUSH_INTERVAL, SLOW_FLUSH_INTERVAL, ANCHOR_INTERVAL].map(Timer::new);
        loop {
            let stopping = self.publisher.is_stopping();
            let asked = self.publisher.requested_flushes();
            let is_asked = !self.publisher.is_flushed(asked);
            self.drain();
            if stopping {
                let now_ns = self.map.ns(self.publisher.clock.raw());
                self.sources.iter_mut().for_each(|source| source.end(now_ns));
            }
            let anchor_due = anchor.is_due() || stopping;
            let slow_due = stopping || is_asked || if is_live { slow.is_due() } else { anchor_due };
            let is_first = is_live && self.first.contain(Instant::now());
            if anchor_due || slow_due || is_live && (flush.is_due() || is_first) {
                self.flush(output, slow_due, anchor_due)?;
            }
            if is_asked {
                self.publisher.note_flushed(asked);
            }
            if let Some(requests) = &mut self.requests {
                requests.poll();
            }
            if stopping {
                return self.end(output);
            }
            let interval = self.settings.drain_interval;
            std::thread::park_timeout(if is_first { interval.min(FirstSeconds::INTERVAL) } else { interval });
        }
    }

    fn open(&mut self) -> Result<Output, Warning> {
        let start = self.info.start;
        self.info = self.settings.session_info(self.publisher.id);
        self.info.start = start;
        if let Some(path) = &self.settings.recording {
            return Output::recording(path);
        }
        let dir = self.dir.clone().unwrap_or_default();
        let (sessions, name) = (dir.parent().unwrap_or(&dir), dir.file_name().unwrap_or_default());
        Output::session(sessions, &name.to_string_lossy(), self.settings.max_bytes)
    }

    fn begin_segment(&mut self, output: &mut Output, now: ClockReading) -> Result<(), Warning> {
        let mut preamble = Vec::new();
        put_segment(&mut preamble, &self.info);
        self.put_definitions(&mut preamble, &self.definitions);
        put_anchor(&mut preamble, &now.anchor);
        output.begin_segment()?;
        output.write(&preamble)?;
        self.info.segment += 1;
        self.publisher.count_segment();
        Ok(())
    }

    fn put_definitions(&self, out: &mut Vec<u8>, definitions: &[Definition]) {
        match self.settings.recording {
            Some(_) => put_compressed_definitions(out, definitions),
            None => put_definitions(out, definitions),
        }
    }

    /// Empties every ring into its track's block.
    fn drain(&mut self) {
        let opened = self.publisher.take_opened();
        self.first.extend(opened.len(), Instant::now());
        self.sources.extend(opened);
        let mut defined = Vec::new();
        for source in &mut self.sources {
            source.drain(&self.map, &self.publisher.clock, &mut self.out);
            defined.extend(source.take_definitions());
        }
        defined.into_iter().for_each(|definition| self.redefine(definition));
    }

    fn out_definition(&mut self, definition: Definition) {
        self.defined.push(definition.clone());
        self.definitions.push(definition);
    }

    /// Replaces the text of a definition that may already exist.
    fn redefine(&mut self, definition: Definition) {
        self.defined.push(definition.clone());
        let known = self.definitions.iter_mut().find(|known| match (known, &definition) {
            (Definition::Track { id: known, .. }, Definition::Track { id, .. }) => known == id,
            (Definition::Fact(known), Definition::Fact(fact)) => known.key() == fact.key(),
            _ => false,
        });
        match known {
            Some(known) => *known = definition,
            None => self.definitions.push(definition),
        }
    }

    /// Once a second.
    fn anchor(&mut self) {
        if threads::are_alone() {
            self.publisher.stop();
        }
        let now = clock::read(&self.publisher.clock);
        self.map.correct(now, ANCHOR_INTERVAL.as_nanos() as u64);
        put_anchor(&mut self.out, &now.anchor);
    }

    /// Writes what has been collected. Names come before the blocks that use them: a name is registered before its first
    /// event is pushed, and this reads the registry after the rings.
    fn flush(&mut self, output: &mut Output, slow: bool, anchor: bool) -> Result<(), Warning> {
        self.define_new_names();
        if anchor {
            self.anchor();
            self.push_memory();
        }
        for source in self.sources.iter_mut().filter(|source| slow || !source.is_slow()) {
            source.finish(&mut self.out);
        }
        self.own_block.finish(0, &mut self.out);
        self.sources.retain(|source| !source.is_over());
        if output.is_segment_full() {
            self.begin_segment(output, clock::read(&self.publisher.clock))?;
        }
        let mut defined = Vec::new();
        self.put_definitions(&mut defined, &self.defined);
        output.write(&defined).and_then(|()| output.write(&self.out))?;
        self.has_written |= !self.out.is_empty();
        self.defined.clear();
        self.out.clear();
        Ok(())
    }

    fn define_new_names(&mut self) {
        for name in names::registered_after(self.written_names) {
            self.written_names += 1;
            if name.account != 0 {
                let memory = PhaseMemory { phase: name.id, ..PhaseMemory::default() };
                self.accounts.push((usize::from(name.account), memory));
            }
            self.out_definition(Definition::Name { id: name.id, kind: name.kind, text: name.text.into() });
        }
        let signals = self.publisher.signals_after(self.written_signals);
        self.written_signals += signals.len();
        signals.into_iter().for_each(|signal| self.out_definition(signal));
        self.publisher.take_facts().into_iter().for_each(|fact| self.redefine(Definition::Fact(fact)));
    }

    /// Writes the totals of every phase whose memory has changed.
    fn push_memory(&mut self) {
        if !accounts::is_counted() {
            return;
        }
        let t_ns = self.map.ns(self.publisher.clock.raw());
        for (account, last) in &mut self.accounts {
            let now = accounts::totals(*account);
            if (now.allocated_count, now.freed_count) == (last.allocated_count, last.freed_count) {
                continue;
            }
            *last = PhaseMemory {
                phase: last.phase,
                t_ns,
                allocated_bytes: now.allocated_bytes,
                allocated_count: now.allocated_count,
                freed_bytes: now.freed_bytes,
                freed_count: now.freed_count,
                live_bytes: accounts::live_bytes(),
                peak_bytes: now.peak_bytes,
            };
            self.own_block.push(&Event::PhaseMemory(*last));
        }
    }

    fn end(&mut self, output: &mut Output) -> Result<(), Warning> {
        let t_ns = clock::system_ns(ClockId::Monotonic);
        put_end(&mut self.out, &End { t_ns, reason: String::new() });
        output.write(&self.out)
    }
}

fn own_track() -> Definition {
    Definition::Track { id: OWN_TRACK, role: TrackRole::Other, thread_id: 0, text: "gnntop".to_owned() }
}
