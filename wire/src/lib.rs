//! The byte stream between a training run and its viewers.
//!
//! Publishing programs, recordings, live viewers and replay share one format, which only this crate writes and reads. This
//! crate does no I/O and starts no thread.
//!
//! # Byte layout (format 1.0)
//!
//! A stream is a sequence of **segments**; a segment is a sequence of **frames** and can be read alone.
//! A recording is one or more segments in one file; segments of one session may simply be concatenated.
//! The events are in **blocks**, each of one track and of one of two kinds. Live sessions write *rows*: a block every half
//! second costs the program little. A recorder merges a second's blocks and *packs* them, at half the size. Both are read
//! alike wherever they stand.
//!
//! No meaning depends on how a name, a track or a fact is spelt: a number beside its text says what it is. Only one vocabulary
//! is texts, which a program chooses: the names of the standard phases ([`phase`]).
//!
//! ```text
//! frame   = A7 67 | check u8 | CRC-32 u32 LE | kind u8 | flags u8 | payload length u24 LE | payload
//! check   = fold of kind, flags and length: acc = rotate_left(acc, 3) ^ byte, from 0x5A
//! CRC-32  = of all that follows it: kind, flags, length and payload (the polynomial of gzip)
//! kind    = 1 segment, 2 definitions, 3 anchor, 4 block, 5 end, 6 past, 7 summary, 8 end of a chunk;
//!           others are skipped
//! flags   = bit 0: LZ4 (block format, no size prefix), of the body of a block of rows, of the past or of definitions, whose
//!           length then comes first; bit 1: the block is packed; bit 2: it continues another; others are ignored
//! ```
//!
//! Integers are LEB128 varints, signed ones zigzagged, unless a width is given. A *text* is its length in
//! bytes (at most 1024) followed by UTF-8. Times are nanoseconds of the publisher's `CLOCK_MONOTONIC`.
//!
//! ```text
//! segment     = "gnntop" | major | minor | session id u128 LE | pid | segment number | anchor
//!             | text name | text host | text command | text publisher | text boot id | origin u8 | place
//!               origin 0 probe, 1 Python, 2 table, 3 trace, 4 from outside
//! place       = 0 | 1 | rank | ranks | stage | stages | copy | copies | threads | ranks and cores of the host
//!             | text run | text device | ranks are 0 processes, 1 threads | engine u8
//!             | clock: 0, or 1 | offset i64 LE | error | attempt: 0, or 1 | number
//!               engine 0 unknown, 1 threads, 2 MPI, 3 NCCL, 4 Gloo, 255 | text
//! definitions = { 1 | length | name id | text | kind }
//!                 kind = 0 text, 1 span, 2 phase, 3 counter, 4 path + 256 x name id of its caller, 5 sampling + 256 x figure,
//!                        6 reported + 256 x what + 65536 x its number or the name id of its phase ([`Reported`])
//!                 figure 0 samples taken, 1 not read, 2 their cost in microseconds, 3 samples a second, 4 those that wait for
//!                        the interpreter lock
//!             | { 2 | length | track id | role u8 | thread id | text }
//!                 role 0 other, 1 training, 2 loader, 3 sensors, 4 device, 5 device waited for in each phase, 6 stacks,
//!                      7 samples, 8 communicator, 9 stream, 10 operators
//!             | { 3 | length | signal id | unit u8 | kind u8 | text name | text source | text device | quantity | instance
//!                 | source }
//!                 of quantity 0, or one unknown to the reader, unit, kind and name are all that is known
//!                 source 0 a sensor, 1 a column of a table, 2 the kernels of a trace
//!             | { 4 | length | kind u8 | text about | text | n }          a fact; of several about the same the newest counts
//!                 kind 0 the program's own, as are all unknown ones; 1 framework: name, version, n: 1 PyTorch, 2 Python,
//!                      0 another; 2 inferred phase: its name, how; 3 resumed after n steps; 4 not recorded: what, how much;
//!                      5 the program died: cause, paragraph; 6 no stacks: "", why; 7 a note of gnntop: about, text;
//!                      8 mode, n: 1 inference; 9 it computes with n threads; 10 each loader has n workers
//! anchor      = monotonic | wall (Unix) | boot time, in ns
//! end         = time | text reason
//! block       = track | first sequence number | count | dropped so far | base time | body length | body
//! body        = { event }; "dt" is the signed difference of the event's time (its end, if it has one) from
//!               the previous event's, or for the first one from the base time
//!   span       0nnnnnn0 | [name] | start - time of the event before | duration
//!              0nnnnnn1 | [name] | dt | duration                   if it began before that time
//!              nnnnnn = name id + 1, or 0 and the name follows
//!   81         signed step difference; not an event: the spans from here on belong to that step (0 at first)
//!   sample     80 | signal | dt | signed difference to the signal's last value in this block
//!              (0 at first and after its absence, always 0 for signals from 1024 on)
//!   82 .. BF   malformed
//!   others     tag C0 .. FF | length | payload, so that unknown ones can be skipped; those leave time and
//!              step unchanged
//!   C0 step      dt | duration | signed step difference | epoch | present u8 | fields | number loss
//!                present: bit 0 graphs, 1 nodes, 2 edges, 3 seeds, 4 minor, major faults, voluntary, involuntary switches;
//!                bit 5: a deep trace slowed it down
//!   C1 counter   name | dt | number           C2 mark  name | dt | number | 0, or 1 | ns that what ended took
//!   C3 open      name | dt | signed (since - t) | step
//!   C4 absent    reason | dt | signal          C5 allocation  phase | dt | signed bytes | live bytes
//!   C6 memory    phase | dt | allocated bytes, count | freed bytes, count | live bytes | peak bytes
//!   C7 device    name | dt | duration | signed (issued start - start) | issued duration | error | signed step difference
//!                from the step of the spans; leaves time and step unchanged
//!   C8 frame     name | dt | depth | thread u8: 0 training, 1 loader worker
//!   C9 sample    path | dt | count | 1 if it is only repeated, else 0
//!   CA rival     name | dt | number of cores | 0, or 1 | pid
//! past        = body length | body: { tag u8 | length | entry }; others are skipped
//!   1 whole     2 durations     3 slice     4 slow step; their fields in the order of [`past`]'s types, as `past/put.rs`
//!               writes them: numbers as varints, f64 LE, lists with their length, options after a byte
//! summary     = a part of a stream of segments, definitions, anchors and the past, each byte inverted
//! chunk end   = 8 numbers, u64 LE, as in [`chunk::ChunkEnd`]
//! number      = 0 none | 1 signed integer | 2 f32 LE | 3 f64 LE
//! ```
//!
//! # Packed blocks
//!
//! A recorder's blocks hold a second of a track or more, in which most things repeat. Each event and each of its numbers is
//! predicted from the previous events of the track, and the difference is written, in bits, starting with the lowest bit of
//! a byte. LZ4 and zstd save next to nothing on such a body (docs/performance.md), so it is not compressed.
//!
//! A block starts fresh, or it continues the track's block before it, with all that this has taught, and names it by its
//! checksum. A reader that has not just read that block of the track, all of it, reports this one as damage: so a lost block
//! costs those that continue it, at most fifteen as this crate writes them, and never makes one wrong. Only blocks of tracks
//! with ids below 16 continue, so that a reader needs little memory. The first blocks of a chunk start fresh, as do those after
//! another session's.
//!
//! ```text
//! packed  = track | first sequence number | count | dropped so far | base time | { event } as bits, zeros up to a whole byte
//!         | track | first sequence number | count | dropped so far | CRC-32 of the frame that it continues, u32 LE
//!           | signed (base time - time of the last event there) | { event } as bits, if it continues
//! event   = symbol | its kind's numbers
//! symbol  = 1                                         the one that followed the last two symbols when these came last;
//!                                                     the block's first one if they never came
//!         | 01 | number                               this many after that one, in the order of first appearance
//!         | 00 | 1, or 0 | kind (4 bits) | form (7 bits) | number
//!                                                     a new one: 1 if kind and form are the last new one's, 0 at first;
//!                                                     its name's or signal's id, which is expected to be one more than the
//!                                                     last new one's of this kind. Beyond 1024 it replaces the last one
//! any     = its bits less one (6 bits) | its bits
//! number  = the difference from what the column (each symbol's numbers are columns of its own) expects, zigzagged:
//!           at first any; then with k = floor(log2(max(1, S / 4))), 40 at most: difference >> k zeros, a one, and the k lowest
//!           bits; if that is 8 zeros or more, eight zeros and any.
//!           A column expects 0 at first, then the first value, then half of the difference d, rounded down, beyond what it
//!           expected. S is a quarter of the first difference; then S - S / 4 + d, where d is zigzagged
//! steady  = a number whose column expects the last value
//! group   = 1: all numbers are what their columns expect | 0 | steady, for each
//!
//! kind      form                                       numbers; "dt" is the difference from the time of the event before
//! 0 span    1 began before t, 2 next step, 4 other     [step difference, where 4] | dt of the start | duration
//!           step than that of the event before           with form 1: dt of the end | difference of the start from that of the
//!                                                      span as many spans ago as began within the last one of this symbol,
//!                                                      as far as 255 back and 8 looks for each span before suffice
//! 1 sample  unit (3 bits) of its values, of 1, 512,    dt | reading
//!           1000, 1024, 4096, 10^6, 2^20, 10^7;
//!           8 its dt is in microseconds
//! 2 step    present (5 bits, as above), loss (2 bits   dt of the end | difference of the start from that of the first span since
//!           as for a number above)                     the last step, or from t | group step difference, epoch, graphs,
//!                                                      nodes, edges, seeds | group of the usage, where present | loss
//! 3 counter as for a number above                      dt | value
//! 4 mark    as for a number above; 4 what ended took   dt | value | ns, where 4
//!           some time
//! 5 open               dt | since - t | step difference     6 absent      dt | steady reason
//! 7 allocation         dt | bytes | live bytes less those after the event before and these
//! 8 memory             dt | allocated bytes, count | freed bytes, count less those | live bytes less those before | peak bytes
//! 9 device             dt | start - end | issued start - start | issued duration | error | step difference
//! 10 step, slowed down by a deep trace: as 2
//! 11 frame  thread                                     dt | depth
//! 12 sample 1 if it is only repeated                   dt | count
//! 13 rival  as for a number above; 4 with a pid        dt | value | steady pid, where 4
//! 14, 15    any        bytes | that many bytes, not aligned to whole bytes: unknown kinds, skipped
//! reading = a number, whose column expects what was closer recently: half of the difference beyond what it expected, or the last
//!           value and the trend of the differences (`block/packed/layout.rs`)
//! value   = a number: an integer, or the bits of an f32 or f64
//! ```
//!
//! "The first", "the last" and "so far" are of the blocks since one started fresh; time, step and live bytes continue, too.
//!
//! # Chunks
//!
//! A recorder ends a chunk after a number of events or MiB: it writes all events that it holds, then a summary of
//! everything so far, then a chunk end, which says how far back the previous one is. So a reader can begin a long recording
//! at the end of any chunk, as it can a session whose first segments were dropped. However the recorder was stopped, the
//! chain of chunks leads from the last one to the first. A segment follows each chunk end.
//!
//! ```text
//! recording = chunk .. chunk | frames
//! chunk     = frames | summary .. (everything so far) | summary .. (seconds) | summary .. (minutes) | chunk end
//! ```
//!
//! # Order and trust
//!
//! Spans come in the order of their ends. So a nested span follows its sibling and starts nanoseconds after the sibling's
//! end; an enclosing span ends just after the last span inside it. Either way the first number is short. A span of a
//! layered model takes about six bytes.
//!
//! Nothing in a stream is trusted. A payload is at most 256 KiB ([`MAX_PAYLOAD_LEN`]), one of definitions 128 KiB; a body
//! is at most 64 KiB ([`MAX_BLOCK_LEN`]) after decompression, one of the past 128 KiB. A length beyond that is damage, and
//! so are more events than bytes. So is a block that takes far more work than its bytes are worth: decoded data grows at
//! most eight times as fast as what is read, and a packed block holds at most four events per byte. After a frame with a
//! wrong check or checksum, the reader looks for the next good one. Control characters are removed from texts. Definitions
//! and an anchor are repeated at the start of each segment; an anchor comes every second.
//!
//! # Use
//!
//! ```
//! use gnntop_wire::{BlockEncoder, Event, Item, NameId, Span, StepId, StreamReader, TrackId};
//!
//! let mut stream = Vec::new();
//! let mut encoder = BlockEncoder::new(TrackId(1));
//! let span = Span { name: NameId(1), start_ns: 1_000, end_ns: 1_900, step: StepId(1) };
//! encoder.push(&Event::Span(span));
//! encoder.finish(0, &mut stream);
//!
//! let mut reader = StreamReader::new();
//! reader.fill(&stream);
//! reader.finish();
//! while let Some(item) = reader.next() {
//!     match item {
//!         Item::Block(info, events) => {
//!             assert_eq!(info.track, TrackId(1));
//!             assert_eq!(events.collect::<Vec<_>>(), [Event::Span(span)]);
//!         }
//!         other => panic!("only a block was written, not {other:?}"),
//!     }
//! }
//! ```
//!
//! # Versions
//!
//! The format is version 1.0. A later minor version only adds frame kinds, event tags, or fields at the end of a
//! length-carrying record or of a segment, anchor or end; older readers skip them. Segments of a newer major version are
//! skipped and reported as [`Item::Newer`]. `recordings/golden/` has a recording of each kind of block, decoded by a test.

mod block;
pub mod chunk;
mod device_memory;
mod device_span;
mod event;
mod fact;
mod fields;
mod frame;
mod goal;
mod ids;
mod meta;
mod name;
pub mod past;
pub mod phase;
mod quantity;
mod reported;
mod session;
mod signal;
mod stream;
pub mod text;
mod varint;
mod waiting_call;

pub use block::{BlockEncoder, BlockInfo, EventSink, Events, MAX_BLOCK_LEN};
pub use device_memory::{DeviceMemory, Purpose};
pub use device_span::DeviceSpan;
pub use event::{
    Absent, Allocation, BatchShape, Counter, Definition, Event, Mark, Open, PhaseMemory, Rival, Sample, Span,
    StackFrame, StackSample, StackThread, Step, ThreadUsage, TrackRole,
};
pub use fact::{Fact, FactKey, Framework, FrameworkName, Mode};
pub use frame::{HEADER_LEN, MAX_PAYLOAD_LEN, peek};
pub use goal::{Goal, GoalUnit};
pub use ids::{NameId, SignalId, StepId, TrackId};
pub use meta::{
    FORMAT_MAJOR, FORMAT_MINOR, MAX_TEXT_LEN, put_anchor, put_compressed_definitions, put_definitions, put_end,
    put_segment,
};
pub use name::{NameKind, Sampling};
pub use quantity::{AnyMetric, Metric, Quantity, Scope, UnknownMetric};
pub use reported::Reported;
pub use session::{Anchor, ClockOffset, End, Engine, Origin, Place, RankKind, SessionInfo};
pub use signal::{SignalKind, SignalSource, Unit};
pub use stream::{Damage, Item, StreamReader};
pub use waiting_call::WaitingCall;
