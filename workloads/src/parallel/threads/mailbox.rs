//! Values on their way from one rank to another.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use crate::parallel::CollectiveError;

/// Used buffers that are kept for later values.
const SPARE: usize = 16;

/// A queue from one rank to one other.
#[derive(Debug, Default)]
pub(super) struct Mailbox {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    waiting: VecDeque<Vec<f32>>,
    spare: Vec<Vec<f32>>,
    gone: Option<CollectiveError>,
}

impl Mailbox {
    pub(super) fn put(&self, values: &[f32]) -> Result<(), CollectiveError> {
        let mut buffer = {
            let mut state = self.lock();
            if let Some(error) = &state.gone {
                return Err(error.clone());
            }
            state.spare.pop().unwrap_or_default()
        };
        buffer.clear();
        buffer.extend_from_slice(values);
        self.lock().waiting.push_back(buffer);
        self.changed.notify_one();
        Ok(())
    }

    /// Values sent before a rank left are still received.
    pub(super) fn take(&self, values: &mut Vec<f32>) -> Result<(), CollectiveError> {
        let mut state = self.lock();
        loop {
            if let Some(sent) = state.waiting.pop_front() {
                let used = std::mem::replace(values, sent);
                if state.spare.len() < SPARE {
                    state.spare.push(used);
                }
                return Ok(());
            }
            if let Some(error) = &state.gone {
                return Err(error.clone());
            }
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    pub(super) fn break_off(&self, error: CollectiveError) {
        self.lock().gone.get_or_insert(error);
        self.changed.notify_all();
    }

    /// Locks even after a panic: queues are changed by whole buffers.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
