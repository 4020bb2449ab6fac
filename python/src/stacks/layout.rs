//! Where CPython keeps what is read here. From 3.13 on it describes that itself, in `_Py_DebugOffsets` at the beginning of
//! `_PyRuntime`, for debuggers. For 3.11 and 3.12, whose layouts did not change within a minor version, the offsets are
//! from their headers (`Include/cpython/pystate.h`, `Include/cpython/code.h`, `Include/internal/pycore_frame.h`) on 64-bit
//! machines.

use std::ffi::CStr;

use crate::memory::{Address, Process};

/// Offsets within CPython's structures, in bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Layout {
    /// In a thread's state, of the pointer to its innermost frame...
    pub(super) frame_of_thread: usize,
    /// ...or in another structure in between, if there is one.
    pub(super) frame_of_c_frame: Option<usize>,
    pub(super) previous: usize,
    pub(super) executable: usize,
    pub(super) instruction: usize,
    pub(super) owner: usize,
    pub(super) filename: usize,
    pub(super) name: usize,
    pub(super) linetable: usize,
    pub(super) first_line: usize,
    pub(super) bytecode: usize,
    pub(super) text_len: usize,
    pub(super) text: usize,
    pub(super) bytes_len: usize,
    pub(super) bytes: usize,
}

pub(super) const V3_11: Layout = Layout {
    frame_of_thread: 56,
    frame_of_c_frame: Some(8),
    previous: 48,
    executable: 32,
    instruction: 56,
    owner: 69,
    filename: 112,
    name: 128,
    linetable: 136,
    first_line: 72,
    bytecode: 184,
    text_len: 16,
    text: 48,
    bytes_len: 16,
    bytes: 32,
};
const V3_12: Layout = Layout {
    frame_of_c_frame: Some(0),
    previous: 8,
    executable: 0,
    owner: 70,
    first_line: 68,
    bytecode: 192,
    text: 40,
    ..V3_11
};

/// Positions of the offsets in `_Py_DebugOffsets`.
struct OffsetTable {
    thread_frame: usize,
    /// Followed by `executable` and `instr_ptr`.
    previous: usize,
    owner: usize,
    /// Followed by `name`, `qualname`, `linetable` and `firstlineno`.
    filename: usize,
    bytecode: usize,
    /// `ob_size`, followed by `ob_sval`.
    bytes_len: usize,
    /// `length`, followed by `asciiobject_size`.
    text_len: usize,
}

const T3_13: OffsetTable = OffsetTable {
    thread_frame: 184,
    previous: 232,
    owner: 264,
    filename: 280,
    bytecode: 344,
    bytes_len: 520,
    text_len: 552,
};
const T3_14: OffsetTable = OffsetTable {
    thread_frame: 208,
    previous: 256,
    owner: 288,
    filename: 320,
    bytecode: 384,
    bytes_len: 600,
    text_len: 632,
};

/// Position of the flag `free_threaded`, after the table's cookie and version.
const FREE_THREADED: usize = 16;

impl Layout {
    /// Bytes of a frame up to the last field read.
    pub(super) fn frame_len(&self) -> usize {
        let words = self.previous.max(self.executable).max(self.instruction) + 8;
        words.max(self.owner + 1)
    }

    /// Bytes of a code object up to the last field read.
    pub(super) fn code_len(&self) -> usize {
        let words = self.filename.max(self.name).max(self.linetable) + 8;
        words.max(self.first_line + 4)
    }

    /// The layout of the Python in this process, or why it is not known.
    pub(super) fn read(own: &Process) -> Result<Self, &'static str> {
        const UNKNOWN: &str = "stacks can be read of Python 3.11 to 3.14, on 64-bit Linux";
        if !cfg!(all(target_os = "linux", target_pointer_width = "64")) {
            return Err(UNKNOWN);
        }
        // `const unsigned long Py_Version`, since 3.11.
        let version = symbol(c"Py_Version").and_then(|version| own.word(version)).ok_or(UNKNOWN)?;
        let table = match (version >> 24, (version >> 16) & 0xFF) {
            (3, 11) => return Ok(V3_11),
            (3, 12) => return Ok(V3_12),
            (3, 13) => &T3_13,
            (3, 14) => &T3_14,
            _ => return Err(UNKNOWN),
        };
        let runtime = symbol(c"_PyRuntime").ok_or(UNKNOWN)?;
        if own.word(runtime + FREE_THREADED) == Some(1) {
            // It keeps a copy of the bytecode for each thread, so that an instruction's address does not lead to its line.
            return Err("stacks cannot be read of a free-threaded Python");
        }
        Self::from_table(own, runtime, table).ok_or(UNKNOWN)
    }

    fn from_table(own: &Process, runtime: Address, table: &OffsetTable) -> Option<Self> {
        if own.bytes(runtime, 8)? != b"xdebugpy" {
            return None;
        }
        let at = |place: usize| own.word(runtime + place).filter(|offset| *offset < 1 << 16);
        Some(Self {
            frame_of_thread: at(table.thread_frame)?,
            frame_of_c_frame: None,
            previous: at(table.previous)?,
            executable: at(table.previous + 8)?,
            instruction: at(table.previous + 16)?,
            owner: at(table.owner)?,
            filename: at(table.filename)?,
            name: at(table.filename + 16)?,
            linetable: at(table.filename + 24)?,
            first_line: at(table.filename + 32)?,
            bytecode: at(table.bytecode)?,
            text_len: at(table.text_len)?,
            text: at(table.text_len + 8)?,
            bytes_len: at(table.bytes_len)?,
            bytes: at(table.bytes_len + 8)?,
        })
    }
}

/// The address of a symbol that the process exports; `None` if it does not exist.
pub(super) fn symbol(name: &CStr) -> Option<Address> {
    // SAFETY: the call only looks the name up in loaded libraries.
    let found = unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) } as usize;
    Some(found).filter(|address| *address != 0)
}
