//! Reads a pipe without blocking the caller: a thread reads ahead, up to a limit, into memory or a file.

use std::io::{self, Read};
use std::sync::mpsc::{Receiver, RecvError, TryRecvError, sync_channel};
use std::thread;

use super::pipe_file::{CHUNK_LEN, PipeFile, PipeFileRead, PipeFileReader};

/// Name of the thread that reads.
const THREAD: &str = "gnntop pipe";
/// Most chunks read ahead.
const CHUNKS_AHEAD: usize = 16;

/// The reading end of a pipe.
pub(super) struct Pipe {
    /// What was put into a file; it comes before the chunks.
    file: Option<PipeFileReader>,
    chunks: Receiver<io::Result<Vec<u8>>>,
}

/// Result of reading from a pipe.
pub(super) enum PipeRead {
    /// These bytes arrived.
    Chunk(Vec<u8>),
    /// Nothing is available now.
    Nothing,
    /// The other end closed it.
    End,
}

impl Pipe {
    /// Starts reading `input` on a separate thread.
    ///
    /// The thread may outlive this value by one read: a read of standard input cannot be cancelled.
    pub(super) fn read_ahead(mut input: impl Read + Send + 'static) -> io::Result<Self> {
        let (sender, chunks) = sync_channel(CHUNKS_AHEAD);
        let read_all = move || {
            loop {
                let mut chunk = vec![0; CHUNK_LEN];
                let result = match input.read(&mut chunk) {
                    Ok(0) => return,
                    Ok(len) => {
                        chunk.truncate(len);
                        Ok(chunk)
                    }
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                    Err(error) => Err(error),
                };
                let failed = result.is_err();
                if sender.send(result).is_err() || failed {
                    return;
                }
            }
        };
        thread::Builder::new().name(THREAD.to_owned()).spawn(read_all)?;
        Ok(Self { file: None, chunks })
    }

    /// The same, keeping up to `most_bytes` bytes of the input in a file.
    ///
    /// # Errors
    /// If there is no room for temporary files.
    pub(super) fn with_file(input: impl Read + Send + 'static, most_bytes: u64) -> io::Result<(Self, PipeFile)> {
        let (sender, chunks) = sync_channel(CHUNKS_AHEAD);
        let (spool, kept, filler) = PipeFile::create()?;
        let read_all = move || filler.fill(input, most_bytes, &sender);
        thread::Builder::new().name(THREAD.to_owned()).spawn(read_all)?;
        Ok((Self { file: Some(kept), chunks }, spool))
    }

    /// What is available now.
    pub(super) fn try_read(&mut self) -> io::Result<PipeRead> {
        match self.file.as_mut().map(PipeFileReader::try_read).transpose()? {
            Some(PipeFileRead::Chunk(chunk)) => return Ok(PipeRead::Chunk(chunk)),
            Some(PipeFileRead::Nothing) => return Ok(PipeRead::Nothing),
            Some(PipeFileRead::End) => return Ok(PipeRead::End),
            Some(PipeFileRead::Elsewhere) | None => (),
        }
        match self.chunks.try_recv() {
            Ok(chunk) => chunk.map(PipeRead::Chunk),
            Err(TryRecvError::Empty) => Ok(PipeRead::Nothing),
            Err(TryRecvError::Disconnected) => Ok(PipeRead::End),
        }
    }

    /// The next bytes, waiting for them if necessary; `None` at the end.
    pub(super) fn read(&mut self) -> io::Result<Option<Vec<u8>>> {
        match self.file.as_mut().map(PipeFileReader::read).transpose()? {
            Some(PipeFileRead::Chunk(chunk)) => return Ok(Some(chunk)),
            Some(PipeFileRead::End | PipeFileRead::Nothing) => return Ok(None),
            Some(PipeFileRead::Elsewhere) | None => (),
        }
        match self.chunks.recv() {
            Ok(chunk) => chunk.map(Some),
            Err(RecvError) => Ok(None),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    /// Everything that comes through a pipe, of which this much is kept.
    fn read(bytes: &[u8], most_bytes: u64) -> (Vec<u8>, PipeFile) {
        let (reading, mut writing) = io::pipe().unwrap();
        let (mut pipe, spool) = Pipe::with_file(reading, most_bytes).unwrap();
        let mut all = Vec::new();
        thread::scope(|scope| {
            scope.spawn(move || bytes.chunks(100_000).for_each(|piece| writing.write_all(piece).unwrap()));
            while let Some(chunk) = pipe.read().unwrap() {
                all.extend(chunk);
            }
        });
        assert!(matches!(pipe.try_read(), Ok(PipeRead::End)));
        (all, spool)
    }

    #[test]
    fn pipe_file_contains_all_input() {
        let bytes: Vec<u8> = (0..500_000_u32).map(|n| n as u8).collect();
        let (all, spool) = read(&bytes, 1 << 20);
        assert!(all == bytes && spool.is_complete() && !spool.is_full());
        spool.wait_briefly();
        let path = spool.path().to_owned();
        assert!(std::fs::read(&path).unwrap() == bytes);
        drop(spool);
        assert!(!path.exists(), "nothing is left behind");
    }

    #[test]
    fn pipe_beyond_limit_is_read_from_memory() {
        let bytes: Vec<u8> = (0..3_000_000_u32).map(|n| (n / 7) as u8).collect();
        let (all, spool) = read(&bytes, 200_000);
        assert!(all == bytes, "in order and whole");
        assert!(spool.is_full() && !spool.is_complete());
        assert!(spool.path().metadata().unwrap().len() <= 200_000);
    }

    #[test]
    fn slow_pipe_is_not_waited_for() {
        let (reading, mut writing) = io::pipe().unwrap();
        let (mut pipe, spool) = Pipe::with_file(reading, 1 << 20).unwrap();
        assert!(matches!(pipe.try_read(), Ok(PipeRead::Nothing)));
        writing.write_all(b"now").unwrap();
        assert_eq!(pipe.read().unwrap().as_deref(), Some(&b"now"[..]));
        spool.wait_briefly();
        assert!(!spool.is_complete());
        drop(writing);
        spool.wait_briefly();
        assert!(spool.is_complete());
        assert_eq!(pipe.read().unwrap(), None);
    }
}
