//! Follows the session on its own thread, so that requests do not delay reading, and reading does not delay answers.

use std::io;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread;
use std::time::Duration;

use super::super::output;
use super::http::{HttpResponse, OPENMETRICS};
use crate::export::openmetrics;
use gnntop_analysis::catalogue::Catalogue;
use gnntop_analysis::findings::{Judgement, Watch};
use gnntop_analysis::ranks::Run;
use gnntop_analysis::source::{Source, SourceState};

/// Time between two looks at the session.
const POLL_INTERVAL: Duration = Duration::from_millis(20);
/// How long one look may take, and so how long a request may have to wait.
const POLL_BUDGET: Duration = Duration::from_millis(50);

/// A session that is being followed, and can be asked for its figures.
pub(super) struct SessionFollower {
    /// A request is the sender for its answer. The thread ends when this is dropped.
    asked: Sender<Sender<HttpResponse>>,
}

impl SessionFollower {
    /// Starts to follow.
    ///
    /// # Errors
    /// If the system cannot start a thread.
    pub(super) fn start(source: Box<dyn Source>) -> io::Result<Self> {
        let (asked, asking) = mpsc::channel();
        let session = ServedSession {
            source,
            run: Run::default(),
            watch: Watch::new(),
            judgement: Judgement::default(),
            has_ended: false,
        };
        thread::Builder::new().name("gnntop follower".to_owned()).spawn(move || session.follow(&asking))?;
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

/// A session and its history.
struct ServedSession {
    source: Box<dyn Source>,
    run: Run,
    watch: Watch,
    judgement: Judgement,
    has_ended: bool,
}

impl ServedSession {
    fn follow(mut self, asking: &Receiver<Sender<HttpResponse>>) {
        loop {
            let has_more = self.poll();
            match asking.recv_timeout(if has_more { Duration::ZERO } else { POLL_INTERVAL }) {
                Ok(first) => {
                    let body = self.figures();
                    for answer in std::iter::once(first).chain(asking.try_iter()) {
                        // The client may have left.
                        let _ = answer.send(HttpResponse {
                            status: "200 OK",
                            content_type: OPENMETRICS,
                            body: body.clone(),
                        });
                    }
                }
                Err(RecvTimeoutError::Timeout) => (),
                Err(RecvTimeoutError::Disconnected) => return,
            }
        }
    }

    /// Takes what has arrived; returns whether there is more.
    fn poll(&mut self) -> bool {
        let progress = self.source.poll(&mut self.run, POLL_BUDGET);
        if let SourceState::Ended(why) = self.source.status().state
            && !std::mem::replace(&mut self.has_ended, true)
        {
            output::print_note(&format!("{why}; the last figures stay until Ctrl-C"));
        }
        progress.more
    }

    fn figures(&mut self) -> String {
        if let Some(judgement) = self.watch.update(&self.run) {
            self.judgement = judgement;
        }
        openmetrics::write(&Catalogue::new(self.run.store()).with_judgement(self.judgement.clone()))
    }
}
