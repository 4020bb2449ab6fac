//! The frames of a thread, innermost first, with file and line.

use super::layout::Layout;
use super::memory::{self, Address, Copied};

/// Frames that are followed, at most.
const MAX_DEPTH: usize = 4096;
/// Frames that are told from the innermost on; of a deeper stack the outermost are told too, and how many lie between.
const INNERMOST: usize = 24;
const OUTERMOST: usize = 8;
/// How often a chain is read that changes meanwhile.
const TRIES: usize = 3;
/// Owners from this one on are C's: such a frame stands for no line of Python.
const OF_C: u8 = 3;

/// A line of the program that runs, or waits for what it has called.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Frame {
    /// The function, with its class.
    pub(super) name: String,
    /// Its file, as Python has it.
    pub(super) file: String,
    pub(super) line: i32,
}

/// A thread's frames.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Stack {
    /// Innermost first.
    pub(super) frames: Vec<Frame>,
    /// Frames between the innermost and the outermost ones that are left out, and where in `frames`.
    pub(super) left_out: Option<(usize, usize)>,
}

/// A frame in memory: its code, and the instruction that runs.
pub(super) type Raw = (Address, Address);

/// The frames of the thread with this state.
pub(super) fn stack(layout: &Layout, thread: Address) -> Option<Stack> {
    let chain = (0..TRIES).find_map(|_| {
        let first = innermost(layout, thread)?;
        let chain = chain(layout, first);
        // Where the innermost frame is still the same, the thread has most likely not left what was read.
        (innermost(layout, thread) == Some(first)).then_some(chain)
    })?;
    let middle = (INNERMOST, chain.len().saturating_sub(OUTERMOST));
    let told = |range: &[Raw]| {
        range.iter().filter_map(|raw| decode(layout, *raw, *codes(layout, &[*raw])?.first()?)).collect::<Vec<_>>()
    };
    if middle.0 >= middle.1 {
        return Some(Stack { frames: told(&chain), left_out: None });
    }
    let mut frames = told(&chain[..middle.0]);
    let left_out = Some((frames.len(), middle.1 - middle.0));
    frames.extend(told(&chain[middle.1..]));
    Some(Stack { frames, left_out })
}

fn innermost(layout: &Layout, thread: Address) -> Option<Address> {
    let first = memory::word(thread + layout.frame_of_thread)?;
    match layout.frame_of_c_frame {
        Some(offset) => memory::word(first.checked_add(offset)?),
        None => Some(first),
    }
}

/// The frames of the thread with this state, innermost first; `None` where the outermost one is not reached. Of a thread that runs on
/// meanwhile they may be those of two moments, microseconds apart.
pub(super) fn passing(layout: &Layout, thread: Address) -> Option<Vec<Raw>> {
    let (chain, rest) = follow(layout, innermost(layout, thread)?);
    (rest == 0 && !chain.is_empty()).then_some(chain)
}

/// The frames from `first` outwards, as far as they can be read.
fn chain(layout: &Layout, first: Address) -> Vec<Raw> {
    follow(layout, first).0
}

/// The same, and where the next one would be: 0 after the outermost.
fn follow(layout: &Layout, first: Address) -> (Vec<Raw>, Address) {
    let len = layout.frame_len();
    let (mut chain, mut frame, mut page) = (Vec::new(), first, Copied::EMPTY);
    for _ in 0..MAX_DEPTH {
        // Frames that call one another mostly lie in the same page, each behind its caller.
        if page.at(frame, len).is_none() {
            page = Copied::page(frame, len).unwrap_or(Copied::EMPTY);
        }
        let Some(read) = page.at(frame, len) else { break };
        let (Some(code), Some(instruction), Some(previous), Some(owner)) = (
            read.word(layout.executable),
            read.word(layout.instruction),
            read.word(layout.previous),
            read.byte(layout.owner),
        ) else {
            break;
        };
        if owner < OF_C {
            // From 3.14 on the lowest bits say how the reference is counted.
            chain.push((code & !0b11, instruction));
        }
        frame = previous;
        if frame == 0 {
            break;
        }
    }
    (chain, frame)
}

/// What a code object refers to: it tells two apart that lie at the same address one after the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Code {
    filename: Address,
    name: Address,
    table: Address,
    first_line: i32,
}

/// What lies now where the codes of these frames are; `None` where one is not there.
pub(super) fn codes(layout: &Layout, chain: &[Raw]) -> Option<Vec<Code>> {
    let addresses: Vec<Address> = chain.iter().map(|(code, _)| *code).collect();
    memory::structures(&addresses, layout.code_len(), |read| {
        Some(Code {
            filename: read.word(layout.filename)?,
            name: read.word(layout.name)?,
            table: read.word(layout.linetable)?,
            first_line: read.int(layout.first_line)?,
        })
    })
}

/// The frame of this code, at this instruction.
pub(super) fn decode(layout: &Layout, (address, instruction): Raw, code: Code) -> Option<Frame> {
    let Code { filename, name, table, first_line } = code;
    let len = memory::word(table.checked_add(layout.bytes_len)?)?;
    let table = memory::bytes(table.checked_add(layout.bytes)?, len)?;
    let offset = instruction.wrapping_sub(address.wrapping_add(layout.bytecode));
    Some(Frame { name: text(layout, name)?, file: text(layout, filename)?, line: line(&table, first_line, offset) })
}

/// A text of ASCII; `?` for any other, which Python keeps in another place.
fn text(layout: &Layout, object: Address) -> Option<String> {
    let len = memory::word(object.checked_add(layout.text_len)?).filter(|len| *len < 4096)?;
    let bytes = memory::bytes(object.checked_add(layout.text)?, len)?;
    let is_plain = bytes.iter().all(|byte| (b' '..=b'~').contains(byte));
    Some(if is_plain { String::from_utf8(bytes).unwrap_or_default() } else { "?".to_owned() })
}

/// The line of the instruction that is so many bytes from the first one, by the table of 3.11 and newer (CPython's
/// `Objects/locations.md`); the function's first line for an instruction that the table does not have.
fn line(table: &[u8], first_line: i32, offset: usize) -> i32 {
    let (mut line, mut address, mut at) = (first_line, 0_usize, 0);
    while let Some(head) = table.get(at).copied() {
        at += 1;
        // Entries begin with a set bit; whatever else belongs to the one before.
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
            // An instruction without a line, such as those that the compiler adds, stands on the one before.
            return line;
        }
    }
    first_line
}

/// A number in pieces of six bits, of which the lowest bit is the sign.
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
