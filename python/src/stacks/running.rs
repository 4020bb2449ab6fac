//! The stack of a thread that keeps running while it is read, again and again: the text of a frame is read once.

use std::collections::HashMap;

use super::frames::{self, Chain, Code, PythonProcess, Raw, format_frame, is_ours};
use crate::memory::Address;

/// Frames reported of a stack; of a deeper one, the outermost and the innermost.
const OUTERMOST: usize = 16;
const INNERMOST: usize = 48;
const LEFT_OUT: &str = "(frames left out)";
/// Most frames whose text is cached; beyond this, the cache is cleared.
const MAX_TEXTS: usize = 4096;
/// How often a stack that changes meanwhile is read.
const TRIES: usize = 4;

/// A frame, which stands for its text; `None` for those that are left out of a deep stack.
pub(super) type ReadFrame = Option<KnownFrame>;
type KnownFrame = (Raw, Code);

/// A thread whose stack is read many times.
pub(super) struct RunningThread {
    pub(super) python: PythonProcess,
    /// Its state in Python.
    pub(super) state: Address,
    /// Text of each frame; `None` for ours.
    texts: HashMap<KnownFrame, Option<Box<str>>>,
    /// Code of the outermost frame, which hardly ever changes: a stack with another one is most likely truncated.
    outermost: Option<Address>,
}

impl RunningThread {
    pub(super) fn new(python: PythonProcess, state: Address) -> Self {
        Self { python, state, texts: HashMap::new(), outermost: None }
    }

    /// Its frames, innermost first. If `is_over` meanwhile, those that were read before, if any: the others would belong to something
    /// else. Its process has been prepared.
    ///
    /// # Errors
    /// Why they cannot be read.
    pub(super) fn read(&mut self, is_over: impl Fn() -> bool) -> Result<Vec<ReadFrame>, &'static str> {
        if self.texts.len() >= MAX_TEXTS {
            self.texts.clear();
        }
        let mut found: Result<(Chain, Vec<ReadFrame>), _> = Err(frames::UNREADABLE);
        for _ in 0..TRIES {
            let chain = frames::read_running(&self.python, self.state);
            if is_over() {
                return Ok(found.map(|(_, frames)| frames).unwrap_or_default());
            }
            let read = chain.and_then(|chain| self.identify(&chain).map(|frames| (chain, frames)));
            found = match (read, found) {
                // Of a stack that changed meanwhile fewer frames can be read.
                (Ok(read), Ok(earlier)) if read.1.len() < earlier.1.len() => Ok(earlier),
                (Err(_), Ok(earlier)) => Ok(earlier),
                (read, _) => read,
            };
            if found.as_ref().is_ok_and(|(chain, _)| !chain.is_whole || chain.outermost() == self.outermost) {
                break;
            }
        }
        let (chain, frames) = found?;
        if chain.is_whole {
            self.outermost = chain.outermost();
        }
        Ok(frames)
    }

    /// The texts of frames that were just read, outermost first, without ours.
    pub(super) fn texts(&self, frames: &[ReadFrame]) -> Vec<&str> {
        let text = |frame: &ReadFrame| match frame {
            Some(frame) => self.texts.get(frame)?.as_deref(),
            None => Some(LEFT_OUT),
        };
        frames.iter().rev().filter_map(text).collect()
    }

    /// The frames to report, with their code. One that cannot be read is missing.
    ///
    /// # Errors
    /// None of them can be read.
    fn identify(&mut self, chain: &Chain) -> Result<Vec<ReadFrame>, &'static str> {
        let (inner, outer) = chain.ends(INNERMOST, OUTERMOST);
        let mut frames = self.identify_frames(inner);
        if chain.frames.len() > inner.len() + outer.len() {
            frames.push(None);
        }
        frames.extend(self.identify_frames(outer));
        if frames.iter().all(Option::is_none) { Err(frames::UNREADABLE) } else { Ok(frames) }
    }

    fn identify_frames(&mut self, chain: &[Raw]) -> Vec<ReadFrame> {
        let mut frames = Vec::new();
        for (raw, code) in chain.iter().zip(frames::codes(&self.python, chain)) {
            let Some(code) = code else { continue };
            let frame = (*raw, code);
            if !self.texts.contains_key(&frame) {
                let Some(decoded) = frames::decode(&self.python, *raw, code) else { continue };
                self.texts.insert(frame, (!is_ours(&decoded)).then(|| format_frame(&decoded).into()));
            }
            frames.push(Some(frame));
        }
        frames
    }
}

#[cfg(test)]
mod tests {
    use super::super::layout;
    use super::*;
    use crate::memory::Process;

    #[test]
    fn identify_fails_where_no_frame_can_be_read() {
        let python = PythonProcess { layout: layout::V3_11, process: Process::own().unwrap() };
        let mut thread = RunningThread::new(python, 0);
        for len in [1, 500] {
            let chain = Chain { frames: vec![(4096, 0); len], is_whole: true };
            assert_eq!(thread.identify(&chain), Err(frames::UNREADABLE), "{len}");
        }
    }
}
