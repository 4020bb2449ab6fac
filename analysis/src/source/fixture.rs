//! Hand-written sessions and recordings for the tests of this module and its siblings.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};

use gnntop_sessions::{LiveLock, PrivateDir, layout};
use gnntop_wire::{
    Anchor, BlockEncoder, Definition, End, Event, Item, NameId, NameKind, SessionInfo, Span, Step, StepId, TrackId,
    TrackRole, put_anchor, put_definitions, put_end, put_segment,
};

use super::process::Process;
use crate::stream::Sink;

/// When every written session starts.
pub const START_NS: u64 = 1_000_000_000_000;
/// How long every step takes.
pub const STEP_NS: u64 = 10_000_000;
/// The only track.
pub const TRACK: TrackId = TrackId(1);
/// The name of the only phase.
pub const FORWARD: NameId = NameId(1);

/// A session's directory, filled by a test.
pub struct SessionDir(PathBuf);

impl SessionDir {
    pub fn create(sessions: &Path, name: &str, pid: u32) -> Self {
        let dir = sessions.join(layout::session_dir_name(name, pid, u128::from(pid) << 96));
        PrivateDir::create(&dir).unwrap();
        Self(dir)
    }

    pub fn path(&self) -> &Path {
        &self.0
    }

    pub fn write_segment(&self, number: u64, bytes: &[u8]) {
        fs::write(self.0.join(layout::segment_file_name(number)), bytes).unwrap();
    }

    pub fn append(&self, number: u64, bytes: &[u8]) {
        use std::io::Write;
        let path = self.0.join(layout::segment_file_name(number));
        fs::OpenOptions::new().append(true).open(path).unwrap().write_all(bytes).unwrap();
    }

    pub fn remove_segment(&self, number: u64) {
        fs::remove_file(self.0.join(layout::segment_file_name(number))).unwrap();
    }

    /// The lock of its publisher.
    pub fn lock(&self) -> LiveLock {
        LiveLock::create(&PrivateDir::open(&self.0).unwrap()).unwrap()
    }
}

pub fn anchor(t_ns: u64) -> Anchor {
    Anchor { monotonic_ns: t_ns, wall_ns: 1_700_000_000_000_000_000 + t_ns, boot_ns: t_ns }
}

/// The beginning of a segment: the publisher, definitions, an anchor at the start.
pub fn segment(name: &str, pid: u32, number: u64) -> Vec<u8> {
    let mut out = Vec::new();
    put_segment(&mut out, &info(name, pid, number));
    put_definitions(
        &mut out,
        &[
            Definition::Name { id: FORWARD, kind: NameKind::Phase, text: "forward".to_owned() },
            Definition::Track { id: TRACK, role: TrackRole::Training, thread_id: 1, text: "main".to_owned() },
        ],
    );
    put_anchor(&mut out, &anchor(START_NS));
    out
}

pub fn info(name: &str, pid: u32, number: u64) -> SessionInfo {
    SessionInfo {
        session_id: u128::from(pid) << 96 | 7,
        name: name.to_owned(),
        pid,
        host: "host".to_owned(),
        command: "train".to_owned(),
        publisher: "test".to_owned(),
        origin: gnntop_wire::Origin::Probe,
        boot_id: "boot".to_owned(),
        start: anchor(START_NS),
        segment: number,
        place: None,
    }
}

/// One block with a span and a step for each of the steps `range`, which are back to back from [`START_NS`].
pub fn steps(range: std::ops::Range<u64>) -> Vec<u8> {
    let mut block = BlockEncoder::new(TRACK);
    block.continue_from(range.start * 2);
    for ordinal in range {
        let start_ns = START_NS + ordinal * STEP_NS;
        let end_ns = start_ns + STEP_NS;
        let step = StepId(ordinal + 1);
        assert!(block.push(&Event::Span(Span { name: FORWARD, start_ns, end_ns, step })));
        assert!(block.push(&Event::Step(Step { step, start_ns, end_ns, ..Step::default() })));
    }
    let mut out = Vec::new();
    block.finish(0, &mut out);
    out
}

/// A whole recording of `count` steps, `in_block` steps per block, with an anchor after each block and an end.
pub fn recording(count: u64, in_block: u64) -> Vec<u8> {
    let mut out = segment("pna", 4711, 0);
    let mut from = 0;
    while from < count {
        let to = (from + in_block).min(count);
        out.extend(steps(from..to));
        put_anchor(&mut out, &anchor(START_NS + to * STEP_NS));
        from = to;
    }
    put_end(&mut out, &End { t_ns: START_NS + count * STEP_NS, reason: String::new() });
    out
}

/// Collects what a source passes on, as text that a test can compare.
#[derive(Default)]
pub struct CollectedItems {
    pub events: Vec<Event>,
    pub segments: Vec<SessionInfo>,
    pub definitions: Vec<Definition>,
    pub anchors: Vec<Anchor>,
    pub ends: Vec<End>,
    pub damages: u64,
    pub resets: u64,
    pub lost_segments: u64,
    /// Number of the next event of [`TRACK`], checked against each block.
    pub gaps: u64,
    next_seq: Option<u64>,
}

impl CollectedItems {
    /// Ordinals of the steps heard, in order.
    pub fn steps(&self) -> Vec<u64> {
        let step = |event: &Event| if let Event::Step(step) = event { Some(step.step.0) } else { None };
        self.events.iter().filter_map(step).collect()
    }
}

impl Sink for CollectedItems {
    fn apply(&mut self, item: Item<'_>) {
        match item {
            Item::Segment(info) => self.segments.push(info),
            Item::Definitions(definitions) => self.definitions.extend(definitions),
            Item::Anchor(anchor) => self.anchors.push(anchor),
            Item::End(end) => self.ends.push(end),
            Item::Damage(_) => self.damages += 1,
            Item::Block(info, events) => {
                if info.track == TRACK {
                    self.gaps += u64::from(self.next_seq.is_some_and(|next| next != info.first_seq));
                    self.next_seq = Some(info.first_seq + info.count);
                }
                self.events.extend(events);
            }
            _ => (),
        }
    }

    fn reset(&mut self) {
        *self = Self { resets: self.resets + 1, ..Self::default() };
    }

    fn add_lost_segments(&mut self, count: u64) {
        self.lost_segments += count;
    }
}

/// A process that sleeps for a long time, and which the system already knows by its own name.
pub fn sleeper() -> (Child, Process) {
    let child = Command::new("sleep").arg("1000").spawn().unwrap();
    let process = Process::find(child.id()).unwrap();
    // Spawning returns a moment before the new program's name and command line are in place.
    while process.name() != "sleep" || process.command() != "sleep 1000" {
        std::thread::yield_now();
    }
    (child, process)
}

/// Corrects the checksum of the first frame after its payload was changed.
pub fn mend_first_frame(bytes: &mut [u8]) {
    const HEADER_LEN: usize = 12;
    let len = u32::from_le_bytes([bytes[9], bytes[10], bytes[11], 0]) as usize;
    let crc = crc32(&bytes[7..HEADER_LEN + len]);
    bytes[3..7].copy_from_slice(&crc.to_le_bytes());
}

/// CRC-32 as in zlib, bit by bit.
fn crc32(bytes: &[u8]) -> u32 {
    let step = |crc: u32, _| if crc & 1 == 1 { crc >> 1 ^ 0xEDB8_8320 } else { crc >> 1 };
    !bytes.iter().fold(!0_u32, |crc, byte| (0..8).fold(crc ^ u32::from(*byte), step))
}
