//! Reads a pipe without ever making the caller wait: a thread reads ahead, by a bounded amount.

use std::io::{self, Read};
use std::sync::mpsc::{Receiver, RecvError, TryRecvError, sync_channel};
use std::thread;

/// Bytes that are read at a time.
const CHUNK_LEN: usize = 64 * 1024;
/// Chunks that are read ahead.
const CHUNKS_AHEAD: usize = 16;

/// The reading end of a pipe.
pub(super) struct Pipe {
    chunks: Receiver<io::Result<Vec<u8>>>,
}

/// What a pipe has to give.
pub(super) enum Piped {
    /// These bytes came.
    Chunk(Vec<u8>),
    /// Nothing is there now.
    Nothing,
    /// The other end closed it.
    End,
}

impl Pipe {
    /// Starts reading `input` on a thread of its own.
    ///
    /// The thread may outlive this value by one read: nothing can call a read of standard input back.
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
        thread::Builder::new().name("gnntop pipe".to_owned()).spawn(read_all)?;
        Ok(Self { chunks })
    }

    /// What is there now.
    pub(super) fn take(&self) -> io::Result<Piped> {
        match self.chunks.try_recv() {
            Ok(chunk) => chunk.map(Piped::Chunk),
            Err(TryRecvError::Empty) => Ok(Piped::Nothing),
            Err(TryRecvError::Disconnected) => Ok(Piped::End),
        }
    }

    /// The next bytes, however long they take to come; `None` at the end.
    pub(super) fn wait(&self) -> io::Result<Option<Vec<u8>>> {
        match self.chunks.recv() {
            Ok(chunk) => chunk.map(Some),
            Err(RecvError) => Ok(None),
        }
    }
}
