//! Input from the console, whose records termina's own reader turns into events.

use std::io;
use std::time::Duration;

use termina::{Event, EventReader, PlatformTerminal, Terminal};

/// The console that keys come from: it is as before when this is dropped.
pub struct Keyboard {
    /// It restores the console's modes when it is dropped.
    _console: PlatformTerminal,
    reader: EventReader,
    is_gone: bool,
}

impl Keyboard {
    /// The keyboard of this process.
    ///
    /// # Errors
    /// If there is no console to read keys from.
    pub fn open() -> io::Result<Self> {
        let mut console = PlatformTerminal::new()?;
        console.enter_raw_mode()?;
        Ok(Self { reader: console.event_reader(), _console: console, is_gone: false })
    }

    /// Waits for input for at most `wait`, and takes all there is.
    ///
    /// # Errors
    /// Never: a console that cannot be read is gone.
    pub fn read(&mut self, mut wait: Duration) -> io::Result<Vec<Event>> {
        let mut events = Vec::new();
        while !self.is_gone {
            match self
                .reader
                .poll(Some(wait), |_| true)
                .and_then(|is_any| if is_any { self.reader.read(|_| true).map(Some) } else { Ok(None) })
            {
                Ok(Some(event)) => events.push(event),
                Ok(None) => break,
                Err(_) => self.is_gone = true,
            }
            wait = Duration::ZERO;
        }
        Ok(events)
    }

    /// Whether the console was closed when it was last read.
    pub fn is_gone(&self) -> bool {
        self.is_gone
    }

    /// Whether the console is closed at this moment.
    pub fn is_closed_by_now(&mut self) -> bool {
        self.is_gone || self.reader.poll(Some(Duration::ZERO), |_| true).is_err()
    }
}
