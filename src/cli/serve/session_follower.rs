//! Follows what is served on its own thread, so that requests do not delay reading, and reading does not delay answers.

use std::io;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread;
use std::time::Duration;

use super::followed_run::Served;
use super::http::{HttpResponse, OPENMETRICS};
use crate::export::openmetrics;

/// Time between two looks at what is served.
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// One or several sessions that are being followed, and can be asked for their figures.
pub(super) struct SessionFollower {
    /// A request is the sender for its answer. The thread ends when this is dropped.
    asked: Sender<Sender<HttpResponse>>,
}

impl SessionFollower {
    /// Starts to follow.
    ///
    /// # Errors
    /// If the system cannot start a thread.
    pub(super) fn start(served: Served) -> io::Result<Self> {
        let (asked, asking) = mpsc::channel();
        thread::Builder::new().name("gnntop follower".to_owned()).spawn(move || serve(served, &asking))?;
        Ok(Self { asked })
    }

    /// The figures, as soon as the thread answers.
    pub(super) fn figures(&self) -> Receiver<HttpResponse> {
        let (answer, answered) = mpsc::channel();
        // If the thread is gone, the receiver notices.
        let _ = self.asked.send(answer);
        answered
    }
}

fn serve(mut served: Served, asking: &Receiver<Sender<HttpResponse>>) {
    loop {
        let has_more = served.poll();
        match asking.recv_timeout(if has_more { Duration::ZERO } else { POLL_INTERVAL }) {
            Ok(first) => {
                let body = openmetrics::write(&served.sessions());
                for answer in std::iter::once(first).chain(asking.try_iter()) {
                    // The client may have left.
                    let _ =
                        answer.send(HttpResponse { status: "200 OK", content_type: OPENMETRICS, body: body.clone() });
                }
            }
            Err(RecvTimeoutError::Timeout) => (),
            Err(RecvTimeoutError::Disconnected) => return,
        }
    }
}
