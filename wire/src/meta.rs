//! Everything in a stream except blocks of events: the publisher, the meaning of ids, clocks, the end.

use crate::block::Allowance;
use crate::event::{Definition, TrackRole};
use crate::fact::{Fact, FactFields};
use crate::frame::{self, FLAG_LZ4, FrameKind, RawFrame};
use crate::ids::{NameId, SignalId, TrackId};
use crate::name::NameKind;
use crate::quantity::{AnyMetric, Quantity};
use crate::session::{Anchor, ClockOffset, End, Engine, Origin, Place, RankKind, SessionInfo};
use crate::signal::{SignalKind, SignalSource, Unit};
use crate::text::clean;
use crate::varint::{Cursor, Malformed, put_text, put_u64};

/// Major version of the format. A reader rejects segments of a newer one.
pub const FORMAT_MAJOR: u16 = 1;
/// Minor version of the format: readers skip what a newer one adds.
pub const FORMAT_MINOR: u16 = 0;
/// Longest text in a stream, in bytes; longer ones are truncated when written.
pub const MAX_TEXT_LEN: usize = 1024;
/// Opens the payload of every segment frame.
const MAGIC: &[u8; 6] = b"gnntop";
/// A definitions frame is closed beyond this many bytes.
const DEFINITIONS_FRAME_LEN: usize = 64 * 1024;
/// A definitions frame beyond this was not written by this crate and is rejected: a definition with an empty text takes
/// twenty times its length in memory.
const MAX_DEFINITIONS_LEN: usize = 2 * DEFINITIONS_FRAME_LEN;

/// An engine whose name follows.
const OTHER_ENGINE: u8 = 255;

const DEFINE_NAME: u8 = 1;
const DEFINE_TRACK: u8 = 2;
const DEFINE_SIGNAL: u8 = 3;
const DEFINE_FACT: u8 = 4;
/// The number, in place of a quantity's, of a signal that is known only by its name.
const NOT_IN_TABLE: u64 = 0;

/// Appends the frame that opens a segment. A file starts with one.
pub fn put_segment(out: &mut Vec<u8>, info: &SessionInfo) {
    frame::put(out, FrameKind::SEGMENT, 0, |out| {
        out.extend_from_slice(MAGIC);
        put_u64(out, u64::from(FORMAT_MAJOR));
        put_u64(out, u64::from(FORMAT_MINOR));
        out.extend_from_slice(&info.session_id.to_le_bytes());
        put_u64(out, u64::from(info.pid));
        put_u64(out, info.segment);
        put_anchor_fields(out, &info.start);
        for text in [&info.name, &info.host, &info.command, &info.publisher, &info.boot_id] {
            put_text(out, text, MAX_TEXT_LEN);
        }
        out.push(info.origin as u8);
        put_place(out, info.place.as_deref());
    });
}

/// Appends a flag, and the place if there is one.
fn put_place(out: &mut Vec<u8>, place: Option<&Place>) {
    out.push(u8::from(place.is_some()));
    let Some(place) = place else { return };
    let Place { rank, ranks, stage, stages, copy, copies, threads, host_ranks, host_cores, .. } = *place;
    for number in [rank, ranks, stage, stages, copy, copies, threads, host_ranks, host_cores] {
        put_u64(out, u64::from(number));
    }
    for text in [&place.run, &place.device] {
        put_text(out, text, MAX_TEXT_LEN);
    }
    out.push(place.kind as u8);
    put_engine(out, &place.engine);
    out.push(u8::from(place.clock.is_some()));
    if let Some(clock) = place.clock {
        out.extend_from_slice(&clock.offset_ns.to_le_bytes());
        put_u64(out, clock.error_ns);
    }
    out.push(u8::from(place.attempt.is_some()));
    place.attempt.iter().for_each(|attempt| put_u64(out, *attempt));
}

fn put_engine(out: &mut Vec<u8>, engine: &Engine) {
    match engine {
        Engine::Unknown => out.push(0),
        Engine::Threads => out.push(1),
        Engine::Mpi => out.push(2),
        Engine::Nccl => out.push(3),
        Engine::Gloo => out.push(4),
        Engine::Other(name) => {
            out.push(OTHER_ENGINE);
            put_text(out, name, MAX_TEXT_LEN);
        }
    }
}

/// Appends definitions, in as many frames as they need.
pub fn put_definitions<'a>(out: &mut Vec<u8>, definitions: impl IntoIterator<Item = &'a Definition>) {
    each_definitions_frame(definitions, |entries| {
        frame::put(out, FrameKind::DEFINITIONS, 0, |out| out.extend_from_slice(entries));
    });
}

/// Like [`put_definitions`], but compressed if there is more than one, for recordings.
pub fn put_compressed_definitions<'a>(out: &mut Vec<u8>, definitions: impl IntoIterator<Item = &'a Definition>) {
    each_definitions_frame(definitions, |entries| {
        let compressed = lz4_flex::block::compress(entries);
        if compressed.len() + 3 < entries.len() {
            frame::put(out, FrameKind::DEFINITIONS, FLAG_LZ4, |out| {
                put_u64(out, entries.len() as u64);
                out.extend_from_slice(&compressed);
            });
        } else {
            frame::put(out, FrameKind::DEFINITIONS, 0, |out| out.extend_from_slice(entries));
        }
    });
}

/// Calls `put` with definitions in pieces that fit into a frame.
fn each_definitions_frame<'a>(definitions: impl IntoIterator<Item = &'a Definition>, mut put: impl FnMut(&[u8])) {
    let (mut entries, mut entry) = (Vec::new(), Vec::new());
    for definition in definitions {
        entry.clear();
        let tag = put_definition(&mut entry, definition);
        entries.push(tag);
        put_u64(&mut entries, entry.len() as u64);
        entries.extend_from_slice(&entry);
        if entries.len() >= DEFINITIONS_FRAME_LEN {
            put(&entries);
            entries.clear();
        }
    }
    if !entries.is_empty() {
        put(&entries);
    }
}

fn put_definition(out: &mut Vec<u8>, definition: &Definition) -> u8 {
    match definition {
        Definition::Name { id, kind, text } => {
            put_u64(out, u64::from(id.0));
            put_text(out, text, MAX_TEXT_LEN);
            put_u64(out, kind.bits());
            DEFINE_NAME
        }
        Definition::Track { id, role, thread_id, text } => {
            put_u64(out, u64::from(id.0));
            out.push(*role as u8);
            put_u64(out, *thread_id);
            put_text(out, text, MAX_TEXT_LEN);
            DEFINE_TRACK
        }
        Definition::Signal { id, metric, source, device } => {
            put_u64(out, u64::from(id.0));
            out.push(metric.unit().code());
            out.push(metric.kind().code());
            let (source, source_name) = source.code();
            for text in [&metric.to_string(), source_name, device] {
                put_text(out, text, MAX_TEXT_LEN);
            }
            put_u64(out, metric.metric().map_or(NOT_IN_TABLE, |metric| metric.quantity().code()));
            put_u64(out, metric.metric().map_or(0, |metric| u64::from(metric.instance())));
            put_u64(out, source);
            DEFINE_SIGNAL
        }
        Definition::Fact(fact) => {
            let FactFields { kind, about, text, number } = fact.fields();
            out.push(kind);
            put_text(out, about, MAX_TEXT_LEN);
            put_text(out, text, MAX_TEXT_LEN);
            put_u64(out, number);
            DEFINE_FACT
        }
    }
}

/// Appends a clock anchor.
pub fn put_anchor(out: &mut Vec<u8>, anchor: &Anchor) {
    frame::put(out, FrameKind::ANCHOR, 0, |out| put_anchor_fields(out, anchor));
}

fn put_anchor_fields(out: &mut Vec<u8>, anchor: &Anchor) {
    for value in [anchor.monotonic_ns, anchor.wall_ns, anchor.boot_ns] {
        put_u64(out, value);
    }
}

/// Appends the frame of a session that ended normally.
pub fn put_end(out: &mut Vec<u8>, end: &End) {
    frame::put(out, FrameKind::END, 0, |out| {
        put_u64(out, end.t_ns);
        put_text(out, &end.reason, MAX_TEXT_LEN);
    });
}

/// The content of a segment frame.
pub(crate) enum Segment {
    /// A format that this version reads.
    Readable(SessionInfo),
    /// A format that it does not read.
    Newer { major: u64 },
}

pub(crate) fn parse_segment(payload: &[u8]) -> Result<Segment, Malformed> {
    let mut p = Cursor::new(payload);
    if p.array::<6>()? != *MAGIC {
        return Err(Malformed);
    }
    let (major, _minor) = (p.u64()?, p.u64()?);
    if major > u64::from(FORMAT_MAJOR) {
        return Ok(Segment::Newer { major });
    }
    if major == 0 {
        return Err(Malformed);
    }
    let session_id = u128::from_le_bytes(p.array()?);
    let pid = p.u32()?;
    let segment = p.u64()?;
    let start = parse_anchor_fields(&mut p)?;
    let mut next = || parse_text(&mut p);
    let (name, host, command, publisher, boot_id) = (next()?, next()?, next()?, next()?, next()?);
    let origin = Origin::from_code(p.u8()?);
    let place = parse_place(&mut p)?.map(Box::new);
    let info = SessionInfo { session_id, name, pid, host, command, publisher, origin, boot_id, start, segment, place };
    Ok(Segment::Readable(info))
}

fn parse_place(p: &mut Cursor<'_>) -> Result<Option<Place>, Malformed> {
    if p.u8()? == 0 {
        return Ok(None);
    }
    let (rank, ranks, stage, stages, copy, copies) = (p.u32()?, p.u32()?, p.u32()?, p.u32()?, p.u32()?, p.u32()?);
    let (threads, host_ranks, host_cores) = (p.u32()?, p.u32()?, p.u32()?);
    let (run, device) = (parse_text(p)?, parse_text(p)?);
    let kind = if p.u8()? == RankKind::Thread as u8 { RankKind::Thread } else { RankKind::Process };
    let engine = parse_engine(p)?;
    let clock = match p.u8()? {
        0 => None,
        _ => Some(ClockOffset { offset_ns: i64::from_le_bytes(p.array()?), error_ns: p.u64()? }),
    };
    let attempt = if p.u8()? == 0 { None } else { Some(p.u64()?) };
    Ok(Some(Place {
        run,
        rank,
        ranks,
        stage,
        stages,
        copy,
        copies,
        engine,
        kind,
        device,
        threads,
        host_ranks,
        host_cores,
        clock,
        attempt,
    }))
}

fn parse_engine(p: &mut Cursor<'_>) -> Result<Engine, Malformed> {
    Ok(match p.u8()? {
        1 => Engine::Threads,
        2 => Engine::Mpi,
        3 => Engine::Nccl,
        4 => Engine::Gloo,
        OTHER_ENGINE => Engine::Other(parse_text(p)?),
        _ => Engine::Unknown,
    })
}

/// The definitions of a frame, without entries of unknown kinds. Decompression is paid from the allowance.
pub(crate) fn parse_definitions(frame: RawFrame<'_>, allowance: &mut Allowance) -> Result<Vec<Definition>, Malformed> {
    if frame.flags & FLAG_LZ4 == 0 {
        return parse_entries(frame.payload);
    }
    let mut p = Cursor::new(frame.payload);
    let len = p.u32()? as usize;
    if len > MAX_DEFINITIONS_LEN {
        return Err(Malformed);
    }
    allowance.spend(0, len).ok_or(Malformed)?;
    let unpacked = lz4_flex::block::decompress(p.rest(), len).map_err(|_| Malformed)?;
    if unpacked.len() == len { parse_entries(&unpacked) } else { Err(Malformed) }
}

fn parse_entries(payload: &[u8]) -> Result<Vec<Definition>, Malformed> {
    if payload.len() > MAX_DEFINITIONS_LEN {
        return Err(Malformed);
    }
    let mut p = Cursor::new(payload);
    let mut all = Vec::new();
    while !p.is_empty() {
        let tag = p.u8()?;
        let len = p.u64()?;
        all.extend(parse_definition(tag, Cursor::new(p.take(len)?))?);
    }
    Ok(all)
}

fn parse_definition(tag: u8, mut p: Cursor<'_>) -> Result<Option<Definition>, Malformed> {
    Ok(Some(match tag {
        DEFINE_NAME => {
            Definition::Name { id: NameId(p.u32()?), text: parse_text(&mut p)?, kind: NameKind::from_bits(p.u64()?) }
        }
        DEFINE_TRACK => Definition::Track {
            id: TrackId(p.u32()?),
            role: TrackRole::from_code(p.u8()?),
            thread_id: p.u64()?,
            text: parse_text(&mut p)?,
        },
        DEFINE_SIGNAL => parse_signal(&mut p)?,
        DEFINE_FACT => Definition::Fact(Fact::from(FactFields {
            kind: p.u8()?,
            about: parse_text(&mut p)?,
            text: parse_text(&mut p)?,
            number: p.u64()?,
        })),
        _ => return Ok(None),
    }))
}

fn parse_signal(p: &mut Cursor<'_>) -> Result<Definition, Malformed> {
    let id = SignalId(p.u32()?);
    let (unit, kind) = (Unit::from_code(p.u8()?), SignalKind::from_code(p.u8()?));
    let (name, source, device) = (parse_text(p)?, parse_text(p)?, parse_text(p)?);
    let (quantity, instance) = (Quantity::from_code(p.u64()?), p.u32()?);
    let metric =
        quantity.map_or(AnyMetric::Other { name, unit, kind }, |quantity| quantity.with_instance(instance).into());
    Ok(Definition::Signal { id, metric, source: SignalSource::from_code(p.u64()?, source), device })
}

pub(crate) fn parse_anchor(payload: &[u8]) -> Result<Anchor, Malformed> {
    parse_anchor_fields(&mut Cursor::new(payload))
}

pub(crate) fn parse_end(payload: &[u8]) -> Result<End, Malformed> {
    let mut p = Cursor::new(payload);
    Ok(End { t_ns: p.u64()?, reason: parse_text(&mut p)? })
}

fn parse_anchor_fields(p: &mut Cursor<'_>) -> Result<Anchor, Malformed> {
    Ok(Anchor { monotonic_ns: p.u64()?, wall_ns: p.u64()?, boot_ns: p.u64()? })
}

/// A text, cleaned. One longer than [`MAX_TEXT_LEN`] was not written by this crate and is rejected.
fn parse_text(p: &mut Cursor<'_>) -> Result<String, Malformed> {
    let len = p.u64()?;
    if len > MAX_TEXT_LEN as u64 {
        return Err(Malformed);
    }
    Ok(clean(p.take(len)?))
}
