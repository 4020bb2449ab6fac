//! Reads a pipe without blocking the caller: a thread reads ahead, up to a limit, into memory or a file.

use std::io::{self, Read};
use std::sync::mpsc::{Receiver, RecvError, TryRecvError, sync_channel};
use std::thread;

use super::spool::{CHUNK_LEN, Given, Kept, Spool};

/// Name of the thread that reads.
const THREAD: &str = "gnntop pipe";
/// Most chunks read ahead.
const CHUNKS_AHEAD: usize = 16;

/// The reading end of a pipe.
pub(super) struct Pipe {
    /// What was put into a file; it comes before the chunks.
    kept: Option<Kept>,
    chunks: Receiver<io::Result<Vec<u8>>>,
}

/// Result of reading from a pipe.
pub(super) enum Piped {
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
        Ok(Self { kept: None, chunks })
    }

    /// The same, keeping up to `most_bytes` bytes of the input in a file.
    ///
    /// # Errors
    /// If there is no room for temporary files.
    pub(super) fn keep(input: impl Read + Send + 'static, most_bytes: u64) -> io::Result<(Self, Spool)> {
        let (sender, chunks) = sync_channel(CHUNKS_AHEAD);
        let (spool, kept, filler) = Spool::create()?;
        let read_all = move || filler.fill(input, most_bytes, &sender);
        thread::Builder::new().name(THREAD.to_owned()).spawn(read_all)?;
        Ok((Self { kept: Some(kept), chunks }, spool))
    }

    /// What is available now.
    pub(super) fn take(&mut self) -> io::Result<Piped> {
        match self.kept.as_mut().map(Kept::take).transpose()? {
            Some(Given::Chunk(chunk)) => return Ok(Piped::Chunk(chunk)),
            Some(Given::Nothing) => return Ok(Piped::Nothing),
            Some(Given::End) => return Ok(Piped::End),
            Some(Given::Elsewhere) | None => (),
        }
        match self.chunks.try_recv() {
            Ok(chunk) => chunk.map(Piped::Chunk),
            Err(TryRecvError::Empty) => Ok(Piped::Nothing),
            Err(TryRecvError::Disconnected) => Ok(Piped::End),
        }
    }

    /// The next bytes, waiting for them if necessary; `None` at the end.
    pub(super) fn wait(&mut self) -> io::Result<Option<Vec<u8>>> {
        match self.kept.as_mut().map(Kept::wait).transpose()? {
            Some(Given::Chunk(chunk)) => return Ok(Some(chunk)),
            Some(Given::End | Given::Nothing) => return Ok(None),
            Some(Given::Elsewhere) | None => (),
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
    fn read(bytes: &[u8], most_bytes: u64) -> (Vec<u8>, Spool) {
        let (reading, mut writing) = io::pipe().unwrap();
        let (mut pipe, spool) = Pipe::keep(reading, most_bytes).unwrap();
        let mut all = Vec::new();
        thread::scope(|scope| {
            scope.spawn(move || bytes.chunks(100_000).for_each(|piece| writing.write_all(piece).unwrap()));
            while let Some(chunk) = pipe.wait().unwrap() {
                all.extend(chunk);
            }
        });
        assert!(matches!(pipe.take(), Ok(Piped::End)));
        (all, spool)
    }

    #[test]
    fn what_is_kept_is_all_in_the_file() {
        let bytes: Vec<u8> = (0..500_000_u32).map(|n| n as u8).collect();
        let (all, spool) = read(&bytes, 1 << 20);
        assert!(all == bytes && spool.is_whole() && !spool.is_full());
        spool.settle();
        let path = spool.path().to_owned();
        assert!(std::fs::read(&path).unwrap() == bytes);
        drop(spool);
        assert!(!path.exists(), "nothing is left behind");
    }

    #[test]
    fn behind_the_bound_it_is_a_pipe_like_any_other() {
        let bytes: Vec<u8> = (0..3_000_000_u32).map(|n| (n / 7) as u8).collect();
        let (all, spool) = read(&bytes, 200_000);
        assert!(all == bytes, "in order and whole");
        assert!(spool.is_full() && !spool.is_whole());
        assert!(spool.path().metadata().unwrap().len() <= 200_000);
    }

    #[test]
    fn a_pipe_that_is_written_as_things_happen_is_not_waited_for() {
        let (reading, mut writing) = io::pipe().unwrap();
        let (mut pipe, spool) = Pipe::keep(reading, 1 << 20).unwrap();
        assert!(matches!(pipe.take(), Ok(Piped::Nothing)));
        writing.write_all(b"now").unwrap();
        assert_eq!(pipe.wait().unwrap().as_deref(), Some(&b"now"[..]));
        spool.settle();
        assert!(!spool.is_whole());
        drop(writing);
        spool.settle();
        assert!(spool.is_whole());
        assert_eq!(pipe.wait().unwrap(), None);
    }
}
