//! The frames of a thread, innermost first, with file and line, and their text for people.

use super::layout::Layout;
use crate::memory::{Address, MemoryCopy, Process};

/// Most frames that are followed; of a deeper stack the outermost ones are unknown.
const MAX_DEPTH: usize = 4096;
/// Longest name of a function that is read, longest end of a file's path, and longest text that can be one, in bytes.
const MAX_NAME: usize = 128;
const MAX_FILE: usize = 1024;
const MAX_TEXT: usize = 1 << 24;
/// Number of innermost frames reported; of a deeper stack, the outermost are reported too, and how many are in between.
const INNERMOST: usize = 24;
const OUTERMOST: usize = 8;
/// How often a chain that changes meanwhile is read.
const TRIES: usize = 3;
/// Owners from this value on are C's: such a frame has no line of Python.
const OF_C: u8 = 3;

/// A line of the program that is running, or waiting for its callee.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Frame {
    /// The function, including its class.
    pub(crate) name: String,
    /// Its file, as Python reports it.
    pub(crate) file: String,
    pub(crate) line: i32,
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
pub(super) struct PythonProcess {
    pub(super) layout: Layout,
    pub(super) process: Process,
}

/// A frame in memory: its code, and its current instruction.
pub(super) type Raw = (Address, Address);

/// The frames of a thread in memory, innermost first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Chain {
    pub(super) frames: Vec<Raw>,
    /// Whether the last one is the outermost: not in a stack that is too deep to be followed.
    pub(super) is_whole: bool,
}

impl Chain {
    /// The code of its last frame.
    pub(super) fn outermost(&self) -> Option<Address> {
        self.frames.last().map(|raw| raw.0)
    }

    /// The frames to report: all, or of a deeper stack this many innermost ones, and after them the outermost ones.
    pub(super) fn ends(&self, innermost: usize, outermost: usize) -> (&[Raw], &[Raw]) {
        let (outermost, len) = (if self.is_whole { outermost } else { 0 }, self.frames.len());
        if self.is_whole && len <= innermost + outermost {
            return (&self.frames, &[]);
        }
        (&self.frames[..innermost.min(len)], &self.frames[len.saturating_sub(outermost)..])
    }
}

/// The frames of the thread with this state.
///
/// # Errors
/// Why none can be read.
pub(super) fn read_stack(python: &PythonProcess, thread: Address) -> Result<Stack, &'static str> {
    let mut chain = Err(CHANGES);
    for _ in 0..TRIES {
        let first = innermost(python, thread).ok_or(UNREADABLE)?;
        let read = follow(python, first).0;
        // If the innermost frame is still the same, the thread has most likely not left what was read.
        if innermost(python, thread) == Some(first) {
            chain = Ok(read);
            break;
        }
    }
    let chain = chain?;
    let (inner, outer) = chain.ends(INNERMOST, OUTERMOST);
    let decoded = |range: &[Raw]| -> Vec<Frame> {
        range.iter().zip(codes(python, range)).filter_map(|(raw, code)| decode(python, *raw, code?)).collect()
    };
    let mut frames = decoded(inner);
    let left_out = chain.frames.len() - inner.len() - outer.len();
    let left_out = (left_out > 0).then_some((frames.len(), left_out));
    frames.extend(decoded(outer));
    if frames.is_empty() { Err(UNREADABLE) } else { Ok(Stack { frames, left_out }) }
}

/// Why a stack cannot be read.
pub(super) const UNREADABLE: &str = "the memory with its frames cannot be read";
const CHANGES: &str = "it changed each time it was read";

fn innermost(python: &PythonProcess, thread: Address) -> Option<Address> {
    let first = python.process.word(thread + python.layout.frame_of_thread)?;
    match python.layout.frame_of_c_frame {
        Some(offset) => python.process.word(first.checked_add(offset)?),
        None => Some(first),
    }
}

/// The frames of the thread with this state. If the thread keeps running, they may be from two moments, microseconds apart.
///
/// # Errors
/// Why they do not reach the outermost one, nor as far as frames are followed.
pub(super) fn read_running(python: &PythonProcess, thread: Address) -> Result<Chain, &'static str> {
    let first = innermost(python, thread).ok_or(UNREADABLE)?;
    let (chain, is_followed) = follow(python, first);
    if is_followed && !chain.frames.is_empty() { Ok(chain) } else { Err(UNREADABLE) }
}

/// The frames from `first` outwards, and whether they were followed as far as they are at all.
fn follow(python: &PythonProcess, first: Address) -> (Chain, bool) {
    let len = python.layout.frame_len();
    let (mut chain, mut frame, mut page, mut followed) = (Vec::new(), first, MemoryCopy::EMPTY, 0);
    while frame != 0 && followed < MAX_DEPTH {
        followed += 1;
        // Frames that call one another are mostly in the same page, each after its caller.
        if page.at(frame, len).is_none() {
            page = python.process.page(frame, len).unwrap_or(MemoryCopy::EMPTY);
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
    }
    let is_whole = frame == 0;
    (Chain { frames: chain, is_whole }, is_whole || followed == MAX_DEPTH)
}

/// What a code object refers to: distinguishes two that were at the same address at different times.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Code {
    filename: Address,
    name: Address,
    table: Address,
    first_line: i32,
}

/// The code objects now at these frames' addresses; `None` for one that cannot be read.
pub(super) fn codes(python: &PythonProcess, chain: &[Raw]) -> Vec<Option<Code>> {
    let addresses: Vec<Address> = chain.iter().map(|(code, _)| *code).collect();
    let read = |addresses: &[Address]| {
        python.process.structures(addresses, python.layout.code_len(), |read| {
            Some(Code {
                filename: read.word(python.layout.filename)?,
                name: read.word(python.layout.name)?,
                table: read.word(python.layout.linetable)?,
                first_line: read.int(python.layout.first_line)?,
            })
        })
    };
    match read(&addresses) {
        Some(codes) => codes.into_iter().map(Some).collect(),
        None => addresses.iter().map(|address| read(&[*address])?.pop()).collect(),
    }
}

/// The frame of this code at this instruction; `None` if it has no name that can be read.
pub(super) fn decode(python: &PythonProcess, (address, instruction): Raw, code: Code) -> Option<Frame> {
    let Code { filename, name, table, first_line } = code;
    let name = beginning(python, name)?;
    let file = end(python, filename).unwrap_or_else(|| "?".to_owned());
    let table = line_table(python, table).unwrap_or_default();
    let offset = instruction.wrapping_sub(address.wrapping_add(python.layout.bytecode));
    Some(Frame { name, file, line: line(&table, first_line, offset) })
}

fn line_table(python: &PythonProcess, table: Address) -> Option<Vec<u8>> {
    let len = python.process.word(table.checked_add(python.layout.bytes_len)?)?;
    python.process.bytes(table.checked_add(python.layout.bytes)?, len)
}

/// A text, or the beginning of a long one.
fn beginning(python: &PythonProcess, object: Address) -> Option<String> {
    let (at, len) = text(python, object)?;
    let read = ascii(python, at, len.min(MAX_NAME))?;
    Some(if len > MAX_NAME { format!("{read}...") } else { read })
}

/// A text, or the end of a long one.
fn end(python: &PythonProcess, object: Address) -> Option<String> {
    let (at, len) = text(python, object)?;
    let read = len.min(MAX_FILE);
    ascii(python, at.checked_add(len - read)?, read)
}

/// Where the characters of a text are, and how many.
fn text(python: &PythonProcess, object: Address) -> Option<(Address, usize)> {
    let len = python.process.word(object.checked_add(python.layout.text_len)?).filter(|len| *len <= MAX_TEXT)?;
    Some((object.checked_add(python.layout.text)?, len))
}

/// ASCII characters; `?` for any others, which Python stores differently.
fn ascii(python: &PythonProcess, at: Address, len: usize) -> Option<String> {
    let bytes = python.process.bytes(at, len)?;
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

/// `collate (data.py:81)`. A library's file has its folders from the library on, and Python's own begins with `python/`.
pub(crate) fn format_frame(frame: &Frame) -> String {
    let Frame { name, file, line } = frame;
    if let Some((_, library)) = ["site-packages/", "dist-packages/"].iter().find_map(|of| file.split_once(of)) {
        return format!("{name} ({library}:{line})");
    }
    if let Some((_, library)) = file.split_once("/lib/python3").and_then(|(_, rest)| rest.split_once('/')) {
        return format!("{name} (python/{library}:{line})");
    }
    format!("{name} ({}:{line})", file.rsplit('/').next().unwrap_or(file))
}

/// Whether a frame belongs to our own hooks, which are between the program and what it calls.
pub(crate) fn is_ours(frame: &Frame) -> bool {
    let file = &frame.file;
    file.contains("/gnntop/hooks/") || file.ends_with("/gnntop/_native.py") || file.ends_with(" gnntop>")
}

/// Whether a frame is the program's own, and neither a library's nor ours.
pub(crate) fn is_own(frame: &Frame) -> bool {
    let is_library = ["site-packages/", "dist-packages/", "/lib/python3"].iter().any(|of| frame.file.contains(of));
    !is_library && !is_ours(frame) && !frame.file.starts_with('<')
}

/// Whether a loader worker with these frames waits for something to do.
pub(super) fn is_idle(frames: &[Frame]) -> bool {
    let is_in = |file: &str| frames.iter().any(|frame| frame.file.ends_with(file));
    is_in("/multiprocessing/queues.py") && !is_in("/torch/utils/data/_utils/fetch.py")
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
    fn line_numbers_follow_the_line_table() {
        assert_eq!(line(&TABLE, 1, 0), 1, "the first instruction is RESUME");
        assert_eq!([2, 6, 10, 12, 14].map(|offset| line(&TABLE, 1, offset)), [2, 2, 2, 4, 4]);
        assert_eq!(line(&TABLE, 1, 1 << 20), 1, "an instruction of another code");
        assert_eq!(line(&[], 7, 0), 7);
    }

    #[test]
    fn of_a_deep_stack_the_ends_are_reported() {
        let chain = |len: usize, is_whole| Chain { frames: (0..len).map(|at| (at, 0)).collect(), is_whole };
        let ends = |len, is_whole| {
            let chain = chain(len, is_whole);
            let (inner, outer) = chain.ends(48, 16);
            (inner.len(), outer.first().map(|raw| raw.0), outer.len())
        };
        assert_eq!([ends(1, true), ends(64, true)], [(1, None, 0), (64, None, 0)]);
        assert_eq!([ends(65, true), ends(4000, true)], [(48, Some(49), 16), (48, Some(3984), 16)]);
        assert_eq!([ends(9, false), ends(4096, false)], [(9, None, 0), (48, None, 0)], "its outermost are unknown");
    }

    #[test]
    fn signed_numbers_are_read() {
        assert_eq!([signed(&[0x04], 0), signed(&[0x03], 0), signed(&[0x40, 0x01], 0)], [2, -1, 32]);
        assert_eq!(signed(&[], 0), 0);
    }

    #[test]
    fn worker_waiting_for_indices_is_idle_and_fetching_worker_is_not() {
        let stack = |files: &[&str]| -> Vec<Frame> {
            files.iter().map(|file| Frame { name: "f".to_owned(), file: (*file).to_owned(), line: 1 }).collect()
        };
        let (queue, worker) = ("/lib/python3.11/multiprocessing/queues.py", "/torch/utils/data/_utils/worker.py");
        assert!(is_idle(&stack(&["/lib/python3.11/selectors.py", queue, worker, "/me/train.py"])));
        assert!(!is_idle(&stack(&[queue, "/me/data.py", "/torch/utils/data/_utils/fetch.py", worker])));
        assert!(!is_idle(&stack(&["/me/data.py", worker])));
    }

    #[test]
    fn format_frame_has_file_name_and_folders_of_a_library() {
        let at = |file: &str| format_frame(&Frame { name: "f".to_owned(), file: file.to_owned(), line: 3 });
        assert_eq!(at("/home/me/data.py"), "f (data.py:3)");
        assert_eq!(at("/env/lib/python3.11/site-packages/torch/nn/linear.py"), "f (torch/nn/linear.py:3)");
        assert_eq!(at("/usr/lib/python3.11/threading.py"), "f (python/threading.py:3)");
        assert_eq!(at("<string>"), "f (<string>:3)");
    }
}
