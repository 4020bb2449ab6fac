//! Stacks of a thread sampled continuously, many times a second, and how a stream encodes them: with marks and names only.
//!
//! ```text
//! track   its text ends in ", sampled"; its marks are the samples
//! name    of kind text: the id of the caller's path in 16 hexadecimal digits, ">", the frame. The id of a path is a hash of that
//!         text, so a name gives the whole stack, from the phase at the root down to its innermost frame
//! mark    a path's name, and as its number how many samples ended there since the session began, this one included; below zero
//!         if there was no sample and the number, apart from its sign, is only repeated
//! ```
//!
//! So each stack is written once, and a sample takes a few bytes. All paths are repeated in turn, so the newest part of a
//! stream has the counts of the whole session, even if its beginning was dropped. Names whose text is one of
//! [`Figure::ALL`] count other things in the same way.

/// Suffix of the text of a track of samples.
pub const TRACK_END: &str = ", sampled";
/// The path that calls the first frames.
pub const ROOT: u64 = 0;
/// The frame for stacks beyond the limit on paths.
pub const OTHER: &str = "(other)";
/// Most samples a second.
pub const MOST_A_SECOND: u32 = 200;

/// A figure about the sampling itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Figure {
    /// Samples taken.
    Taken,
    /// Samples that could not be read.
    Unread,
    /// CPU time spent on taking samples, in microseconds.
    CostUs,
    /// Samples taken a second.
    ASecond,
}

impl Figure {
    /// All figures, each with the text of its name.
    pub const ALL: [(&'static str, Self); 4] = [
        ("stacks sampled", Self::Taken),
        ("stacks not read", Self::Unread),
        ("stacks' processor time (us)", Self::CostUs),
        ("stacks a second", Self::ASecond),
    ];
}

/// The text of the name of the path that continues `caller` with this frame.
pub fn path_text(caller: u64, frame: &str) -> String {
    format!("{caller:016x}>{frame}")
}

/// The id of the path whose name has this text: FNV-1a, and never [`ROOT`].
pub fn path_id(text: &str) -> u64 {
    let hash = text
        .bytes()
        .fold(0xCBF2_9CE4_8422_2325, |hash: u64, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01B3));
    hash.max(ROOT + 1)
}

/// The caller's path and the frame in the text of a path's name; `None` for any other name.
pub fn path(text: &str) -> Option<(u64, &str)> {
    let (caller, frame) = text.split_once('>')?;
    let is_id = caller.len() == 16 && caller.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    Some((u64::from_str_radix(caller, 16).ok().filter(|_| is_id)?, frame))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_read_as_it_was_written() {
        let outer = path_text(ROOT, "forward");
        let inner = path_text(path_id(&outer), "<lambda> (a>b.py:3)");
        assert_eq!(path(&outer), Some((ROOT, "forward")));
        assert_eq!(path(&inner), Some((path_id(&outer), "<lambda> (a>b.py:3)")));
        assert_ne!(path_id(&outer), path_id(&inner));
    }

    #[test]
    fn other_names_are_no_paths() {
        let long = "00000000000000000>x";
        for text in ["", ">", "forward", "0>x", "+00000000000000f>x", "000000000000000G>x", "00000000000000AB>x", long]
        {
            assert_eq!(path(text), None, "{text}");
        }
        assert!(Figure::ALL.iter().all(|(text, _)| path(text).is_none()));
    }
}
