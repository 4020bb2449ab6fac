//! The frames of a thread, innermost first, with file and line.

use super::layout::Layout;
use super::memory::{Address, Copied, Process};

/// Most frames that are followed.
const MAX_DEPTH: usize = 4096;
/// Number of innermost frames reported; of a deeper stack, the outermost are reported too, and how many are in between.
const INNERMOST: usize = 24;
const OUTERMOST: usize = 8;
/// How often a chain that changes meanwhile is read.
const TRIES: usize = 3;
/// Owners from this value on are C's: such a frame has no line of Python.
const OF_C: u8 = 3;

/// A line of the program that is running, or waiting for its callee.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Frame {
    /// The function, including its class.
    pub(super) name: String,
    /// Its file, as Python reports it.
    pub(super) file: String,
    pub(super) line: i32,
}

/// A thread's frames.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Stack {
    /// Innermost first.
    pub(super) frames: Vec<Frame>,
    /// Number of frames left out between the innermost and the outermost, and their position in `frames`.
    pub(super) left_out: Option<(usize, usize)>,
}

/// A Python: where it keeps what is read, and its process. A loader worker has its parent's layout.
#[derive(Clone, Debug)]
pub(super) struct Python {
    pub(super) layout: Layout,
    pub(super) process: Process,
}

/// A frame in memory: its code, and its current instruction.
pub(super) type Raw = (Address, Address);

/// The frames of the thread with this state.
pub(super) fn stack(python: &Python, thread: Address) -> Option<Stack> {
    let chain = (0..TRIES).find_map(|_| {
        let first = innermost(python, thread)?;
        let chain = chain(python, first);
        // If the innermost frame is still the same, the thread has most likely not left what was read.
        (innermost(python, thread) == Some(first)).then_some(chain)
    })?;
    let middle = (INNERMOST, chain.len().saturating_sub(OUTERMOST));
    let told = |range: &[Raw]| {
        range.iter().filter_map(|raw| decode(python, *raw, *codes(python, &[*raw])?.first()?)).collect::<Vec<_>>()
    };
    if middle.0 >= middle.1 {
        return Some(Stack { frames: told(&chain), left_out: None });
    }
    let mut frames = told(&chain[..middle.0]);
    let left_out = Some((frames.len(), middle.1 - middle.0));
    frames.extend(told(&chain[middle.1..]));
    Some(Stack { frames, left_out })
}

fn innermost(python: &Python, thread: Address) -> Option<Address> {
    let first = python.process.word(thread + python.layout.frame_of_thread)?;
    match python.layout.frame_of_c_frame {
        Some(offset) => python.process.word(first.checked_add(offset)?),
        None => Some(first),
    }
}

/// The frames of the thread with this state, innermost first; `None` if the outermost one is not reached. If the thread
/// keeps running, they may be from two moments, microseconds apart.
pub(super) fn passing(python: &Python, thread: Address) -> Option<Vec<Raw>> {
    let (chain, rest) = follow(python, innermost(python, thread)?);
    (rest == 0 && !chain.is_empty()).then_some(chain)
}

/// The frames from `first` outwards, as far as they can be read.
fn chain(python: &Python, first: Address) -> Vec<Raw> {
    follow(python, first).0
}

/// The same, and the address of the next frame: 0 after the outermost.
fn follow(python: &Python, first: Address) -> (Vec<Raw>, Address) {
    let len = python.layout.frame_len();
    let (mut chain, mut frame, mut page) = (Vec::new(), first, Copied::EMPTY);
    for _ in 0..MAX_DEPTH {
        // Frames that call one another are mostly in the same page, each after its caller.
        if page.at(frame, len).is_none() {
            page = python.process.page(frame, len).unwrap_or(Copied::EMPTY);
        }
        let Some(read) = page.at(frame, len) else { break };
        let (Some(code), Some(instruction), Some(previous), Some(owner)) = (
            read.word(python.layout.executable),
            read.word(python.layout.instruction),
            read.word(python.layout.previous),
            read.byte(python.layout.owner),
        ) else {
            break;
        };
        if owner < OF_C {
            // From 3.14 on, the lowest bits say how the reference is counted.
            chain.push((code & !0b11, instruction));
        }
        frame = previous;
        if frame == 0 {
            break;
        }
    }
    (chain, frame)
}

/// What a code object refers to: distinguishes two that were at the same address at different times.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Code {
    filename: Address,
    name: Address,
    table: Address,
    first_line: i32,
}

/// The code objects now at these frames' addresses; `None` if one cannot be read.
pub(super) fn codes(python: &Python, chain: &[Raw]) -> Option<Vec<Code>> {
    let addresses: Vec<Address> = chain.iter().map(|(code, _)| *code).collect();
    python.process.structures(&addresses, python.layout.code_len(), |read| {
        Some(Code {
            filename: read.word(python.layout.filename)?,
            name: read.word(python.layout.name)?,
            table: read.word(python.layout.linetable)?,
            first_line: read.int(python.layout.first_line)?,
        })
    })
}

/// The frame of this code at this instruction.
pub(super) fn decode(python: &Python, (address, instruction): Raw, code: Code) -> Option<Frame> {
    let Code { filename, name, table, first_line } = code;
    let len = python.process.word(table.checked_add(python.layout.bytes_len)?)?;
    let table = python.process.bytes(table.checked_add(python.layout.bytes)?, len)?;
    let offset = instruction.wrapping_sub(address.wrapping_add(python.layout.bytecode));
    Some(Frame { name: text(python, name)?, file: text(python, filename)?, line: line(&table, first_line, offset) })
}

/// An ASCII text; `?` for any other, which Python stores differently.
fn text(python: &Python, object: Address) -> Option<String> {
    let len = python.process.word(object.checked_add(python.layout.text_len)?).filter(|len| *len < 4096)?;
    let bytes = python.process.bytes(object.checked_add(python.layout.text)?, len)?;
    let is_plain = bytes.iter().all(|byte| (b' '..=b'~').contains(byte));
    Some(if is_plain { String::from_utf8(bytes).unwrap_or_default() } else { "?".to_owned() })
}

/// The line of the instruction at this byte offset, by the table of 3.11 and newer (CPython's `Objects/locations.md`); the
/// function's first line for an instruction outside the table.
fn line(table: &[u8], first_line: i32, offset: usize) -> i32 {
    let (mut line, mut address, mut at) = (first_line, 0_usize, 0);
    while let Some(head) = table.get(at).copied() {
        at += 1;
        // Entries begin with a byte whose highest bit is set; other bytes belong to the previous entry.
        if head & 0x80 == 0 {
            continue;
        }
        let code = (head >> 3) & 15;
        let delta = match code {
            13 | 14 => signed(table, at),
            10..=12 => i32::from(code) - 10,
            _ => 0,
        };
        line = line.saturating_add(delta);
        address += (usize::from(head & 7) + 1) * 2;
        if offset < address {
            // An instruction without a line, such as one added by the compiler, counts as the previous one's.
            return line;
        }
    }
    first_line
}

/// A number in groups of six bits, whose lowest bit is the sign.
fn signed(table: &[u8], at: usize) -> i32 {
    let mut value = 0_u32;
    for (piece, byte) in table[at..].iter().take(5).enumerate() {
        value |= u32::from(byte & 0x3F) << (6 * piece as u32);
        if byte & 0x40 == 0 {
            break;
        }
    }
    let size = (value >> 1) as i32;
    if value & 1 == 1 { -size } else { size }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `co_firstlineno` and `co_linetable` of Python 3.11:
    ///
    /// ```python
    /// def f(x):      # line 1
    ///     y = x + 1  # line 2
    ///
    ///     return y   # line 4
    /// ```
    const TABLE: [u8; 16] =
        [0x80, 0x00, 0xD8, 0x08, 0x09, 0x88, 0x41, 0x89, 0x05, 0x80, 0x41, 0xE0, 0x0B, 0x0C, 0x80, 0x48];

    #[test]
    fn lines_are_those_of_the_table() {
        assert_eq!(line(&TABLE, 1, 0), 1, "the first instruction is RESUME");
        assert_eq!([2, 6, 10, 12, 14].map(|offset| line(&TABLE, 1, offset)), [2, 2, 2, 4, 4]);
        assert_eq!(line(&TABLE, 1, 1 << 20), 1, "an instruction of another code");
        assert_eq!(line(&[], 7, 0), 7);
    }

    #[test]
    fn signed_numbers_are_read() {
        assert_eq!([signed(&[0x04], 0), signed(&[0x03], 0), signed(&[0x40, 0x01], 0)], [2, -1, 32]);
        assert_eq!(signed(&[], 0), 0);
    }
}
