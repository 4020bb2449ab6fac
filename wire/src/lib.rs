//! The byte stream between a training run and everything that looks at it.
//!
//! What a program publishes, what lies in a recording, what a viewer follows live and what replay reads are
//! the same bytes, written and read here and nowhere else. This crate does no I/O and starts no thread.
//!
//! # Byte layout (format 1.0)
//!
//! A stream is a sequence of **segments**; a segment is a sequence of **frames** and can be read alone.
//! A recording is one or more segments in one file; segments of one session may simply be concatenated.
//!
//! ```text
//! frame   = A7 67 | kind u8 | flags u8 | payload length u24 LE | check u8 | CRC-32 of payload u32 LE | payload
//! check   = fold of kind, flags and length: acc = rotate_left(acc, 3) ^ byte, from 0x5A
//! kind    = 1 segment, 2 definitions, 3 anchor, 4 block, 5 end; others are skipped
//! flags   = bit 0: the block's body is LZ4 (block format, no size prefix)
//! ```
//!
//! Integers are LEB128 varints, signed ones zigzagged, unless a width is given. A *text* is its length in
//! bytes (at most 1024) and UTF-8. Times are nanoseconds of the publisher's `CLOCK_MONOTONIC`.
//!
//! ```text
//! segment     = "gnntop" | major | minor | session id u128 LE | pid | segment number | anchor
//!             | text name | text host | text command | text publisher | text boot id
//! definitions = { 1 | length | name id | kind u8 | text }            kind 0 text, 1 span, 2 phase, 3 counter
//!             | { 2 | length | track id | role u8 | thread id | text }   role 0 other, 1 training, 2 loader, 3 sensors
//!             | { 3 | length | signal id | unit u8 | kind u8 | text name | text source | text device }
//! anchor      = monotonic | wall (Unix) | boot time, in ns
//! end         = time | text reason
//! block       = track | first sequence number | count | dropped so far | base time | body length | body
//! body        = { event }; "dt" is the signed difference to the event before, the first to the base time
//!   span       0nnnnnns | [name] | dt of end | duration | [signed step difference]
//!              nnnnnn = name id + 1, or 0 and the name follows; s = the step differs from the event before
//!   sample     80 | signal | dt | signed difference to the signal's last value in this block (0 at first, and after its absence)
//!   others     tag C0..FF | length | payload, so that unknown ones are stepped over:
//!   C0 step      dt of end | duration | signed step difference | epoch | present u8 | fields | number loss
//!                present: bit 0 graphs, 1 nodes, 2 edges, 3 seeds, 4 minor, major faults, voluntary, involuntary switches
//!   C1 counter   name | dt | number           C2 mark  name | dt | number
//!   C3 open      name | dt | signed (since - t) | step
//!   C4 absent    reason | dt | signal          C5 allocation  phase | dt | signed bytes | live bytes
//!   C6 memory    phase | dt | allocated bytes, count | freed bytes, count | live bytes | peak bytes
//! number      = 0 none | 1 signed integer | 2 f32 LE | 3 f64 LE
//! ```
//!
//! A frame with a wrong checksum is skipped by looking for the next good one. Definitions and an anchor are
//! repeated at the start of each segment; an anchor comes every second.
//!
//! # Versions and promise
//!
//! | version | since | change |
//! |---|---|---|
//! | 1.0 | 0.1.0 | first |
//!
//! A reader reads every older major version for ever (`recordings/golden/` holds one recording of each, decoded by
//! a test). A minor version only adds frame kinds, event tags from C0 on, or fields at the end of a
//! length-carrying record; older readers step over them. A newer major version is refused with a clear word.

mod block;
mod event;
mod frame;
mod ids;
pub mod layout;
mod meta;
pub mod phase;
mod stream;
mod text;
mod units;
mod varint;

pub use block::{BlockEncoder, BlockInfo, Events, MAX_BLOCK_LEN};
pub use event::{
    Absent, Allocation, Anchor, BatchShape, Counter, Definition, End, Event, Mark, NameKind, Open, PhaseMemory, Sample,
    SessionInfo, Span, Step, ThreadUsage, TrackRole,
};
pub use frame::MAX_PAYLOAD_LEN;
pub use ids::{NameId, SignalId, StepId, TrackId};
pub use meta::{MAX_TEXT_LEN, put_anchor, put_definitions, put_end, put_segment};
pub use stream::{Damage, Item, StreamReader};
pub use units::{SignalKind, Unit};

/// Major version of the stream written by this crate, and the newest it reads.
pub const FORMAT_MAJOR: u16 = 1;
/// Minor version of the stream written by this crate.
pub const FORMAT_MINOR: u16 = 0;
