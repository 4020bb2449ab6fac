//! Files with holes: a segment of a terabyte may take no room at all, and reading its zeros would take minutes.

use std::fs::File;
use std::io::{self, Seek, SeekFrom};

use gnntop_wire::StreamReader;

/// After this many zeros no frame that has begun can still be whole: it is more than the longest one.
const ENOUGH: u64 = 2 << 20;

/// Finds holes in a file that is read from its beginning to its end.
#[derive(Default)]
pub(super) struct Holes {
    /// Zeros at the end of what was read.
    zeros: u64,
}

impl Holes {
    /// After these bytes were read and given to `reader`: passes over the hole that follows, if there is one, and counts it down
    /// from the bytes that are left to be read. `u64::MAX` is no limit.
    pub(super) fn skip(
        &mut self,
        file: &mut File,
        read: &[u8],
        left: &mut u64,
        reader: &mut StreamReader,
    ) -> io::Result<()> {
        let is_zero = !read.is_empty() && read.iter().all(|byte| *byte == 0);
        self.zeros = if is_zero { self.zeros + read.len() as u64 } else { 0 };
        if self.zeros < ENOUGH {
            return Ok(());
        }
        let at = file.stream_position()?;
        let next = data_after(file, at)?.min(at.saturating_add(*left));
        if next > at {
            file.seek(SeekFrom::Start(next))?;
            reader.skip(next - at);
            *left = if *left == u64::MAX { *left } else { *left - (next - at) };
        }
        Ok(())
    }
}

/// Where the next data in a file is, or its end. Where the file system has no holes, that is here.
#[cfg(target_os = "linux")]
fn data_after(file: &mut File, at: u64) -> io::Result<u64> {
    match rustix::fs::seek(&*file, rustix::fs::SeekFrom::Data(at)) {
        Ok(next) => Ok(next.max(at)),
        Err(rustix::io::Errno::NXIO) => Ok(file.metadata()?.len().max(at)),
        Err(_) => Ok(at),
    }
}

#[cfg(not(target_os = "linux"))]
fn data_after(_file: &mut File, at: u64) -> io::Result<u64> {
    Ok(at)
}
