//! Talks to all clients at once, on one thread: a slow or silent client does not keep others waiting. The time of each
//! and their number are limited.

use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, TryRecvError};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::http::{self, HttpHead, HttpRequest, HttpResponse, TEXT};

/// A client whose request is not complete by then is dropped.
const ASKING: Duration = Duration::from_secs(1);
/// The time that one client gets.
const WHOLE: Duration = Duration::from_secs(10);
/// Clients at a time. For one more, the one that has been silent for longest is dropped.
const MAX_CLIENTS: usize = 256;
/// Time between two looks at whether the server shall end.
const TURN: Duration = Duration::from_millis(100);
/// The same while the figures for an answer are being prepared.
const SHORT_TURN: Duration = Duration::from_millis(5);
/// Bytes read at a time.
const CHUNK: usize = 1024;

/// How a request is answered.
pub(super) enum Reply {
    /// This is the answer.
    Now(HttpResponse),
    /// The answer follows.
    Later(Receiver<HttpResponse>),
}

/// The connected clients, the oldest first.
pub(super) struct Connections {
    listener: TcpListener,
    clients: Vec<Client>,
    /// How long one may be silent.
    asking: Duration,
}

struct Client {
    stream: TcpStream,
    came: Instant,
    state: ClientState,
}

enum ClientState {
    /// The part of its request that has arrived.
    Asking(Vec<u8>),
    Waiting {
        answer: Receiver<HttpResponse>,
        head_only: bool,
    },
    /// From `at` on this is still to be written.
    Answered {
        bytes: Vec<u8>,
        at: usize,
    },
    Done,
}

impl Connections {
    /// For all clients of this address.
    pub(super) fn new(listener: TcpListener) -> io::Result<Self> {
        listener.set_nonblocking(true)?;
        Ok(Self { listener, clients: Vec::new(), asking: ASKING })
    }

    /// Waits a little for something to do, and does it.
    ///
    /// # Errors
    /// If no more clients can be accepted.
    pub(super) fn poll(&mut self, reply: &mut dyn FnMut(&HttpRequest) -> Reply) -> io::Result<()> {
        self.wait()?;
        self.accept()?;
        let now = Instant::now();
        for client in &mut self.clients {
            // A client that fails is its own affair, and it knows.
            if client.is_late(now, self.asking) || client.advance(reply).is_err() {
                client.state = ClientState::Done;
            }
        }
        self.clients.retain(|client| !matches!(client.state, ClientState::Done));
        Ok(())
    }

    fn wait(&self) -> io::Result<()> {
        let is_working = self.clients.iter().any(|client| matches!(client.state, ClientState::Waiting { .. }));
        let time = if is_working { SHORT_TURN } else { TURN };
        let time = Timespec { tv_sec: 0, tv_nsec: time.subsec_nanos().into() };
        let mut interests = vec![PollFd::new(&self.listener, PollFlags::IN)];
        interests.extend(self.clients.iter().filter_map(Client::interest));
        match poll(&mut interests, Some(&time)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Accepts all clients that wait.
    fn accept(&mut self) -> io::Result<()> {
        loop {
            match self.listener.accept() {
                Ok((stream, _)) => {
                    if stream.set_nonblocking(true).is_ok() {
                        self.make_room();
                        self.clients.push(Client {
                            stream,
                            came: Instant::now(),
                            state: ClientState::Asking(Vec::new()),
                        });
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                // Those a client causes by leaving, and a signal: accept(2).
                Err(error) if matches!(error.kind(), io::ErrorKind::ConnectionAborted | io::ErrorKind::Interrupted) => {
                }
                // Where the system has no more to give, others must go first.
                Err(error) if !self.clients.is_empty() && is_shortage(&error) => drop(self.clients.remove(0)),
                Err(error) => return Err(error),
            }
        }
    }

    fn make_room(&mut self) {
        if self.clients.len() >= MAX_CLIENTS {
            let silent = self.clients.iter().position(|client| matches!(client.state, ClientState::Asking(_)));
            self.clients.remove(silent.unwrap_or(0));
        }
    }
}

fn is_shortage(error: &io::Error) -> bool {
    let code = error.raw_os_error().map(rustix::io::Errno::from_raw_os_error);
    matches!(code, Some(rustix::io::Errno::MFILE | rustix::io::Errno::NFILE | rustix::io::Errno::NOMEM))
}

impl Client {
    fn interest(&self) -> Option<PollFd<'_>> {
        match self.state {
            ClientState::Asking(_) => Some(PollFd::new(&self.stream, PollFlags::IN)),
            ClientState::Answered { .. } => Some(PollFd::new(&self.stream, PollFlags::OUT)),
            ClientState::Waiting { .. } | ClientState::Done => None,
        }
    }

    fn is_late(&self, now: Instant, asking: Duration) -> bool {
        let limit = if matches!(self.state, ClientState::Asking(_)) { asking } else { WHOLE };
        now.duration_since(self.came) > limit
    }

    /// Proceeds as far as possible without waiting.
    fn advance(&mut self, reply: &mut dyn FnMut(&HttpRequest) -> Reply) -> io::Result<()> {
        loop {
            let next = match &mut self.state {
                ClientState::Asking(head) => match read_head(&mut self.stream, head)? {
                    HttpHead::Incomplete => return Ok(()),
                    HttpHead::Bad(status) => {
                        answered(&HttpResponse { status, content_type: TEXT, body: String::new() }, false)
                    }
                    HttpHead::Whole(request) => {
                        let head_only = request.method == "HEAD";
                        match reply(&request) {
                            Reply::Now(answer) => answered(&answer, head_only),
                            Reply::Later(answer) => ClientState::Waiting { answer, head_only },
                        }
                    }
                },
                ClientState::Waiting { answer, head_only } => match answer.try_recv() {
                    Ok(answer) => answered(&answer, *head_only),
                    Err(TryRecvError::Empty) => return Ok(()),
                    Err(TryRecvError::Disconnected) => return Err(io::ErrorKind::BrokenPipe.into()),
                },
                ClientState::Answered { bytes, at } => {
                    while *at < bytes.len() {
                        match self.stream.write(&bytes[*at..]) {
                            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                            Ok(len) => *at += len,
                            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                            Err(error) if error.kind() == io::ErrorKind::Interrupted => (),
                            Err(error) => return Err(error),
                        }
                    }
                    ClientState::Done
                }
                ClientState::Done => return Ok(()),
            };
            self.state = next;
        }
    }
}

fn answered(answer: &HttpResponse, head_only: bool) -> ClientState {
    ClientState::Answered { bytes: answer.to_bytes(head_only), at: 0 }
}

/// Takes in what has arrived.
fn read_head(stream: &mut TcpStream, head: &mut Vec<u8>) -> io::Result<HttpHead> {
    let mut chunk = [0; CHUNK];
    loop {
        match http::parse_head(head) {
            HttpHead::Incomplete => (),
            read => return Ok(read),
        }
        match stream.read(&mut chunk) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(len) => head.extend_from_slice(&chunk[..len]),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(HttpHead::Incomplete),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => (),
            Err(error) => return Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reply(_: &HttpRequest) -> Reply {
        Reply::Now(HttpResponse { status: "200 OK", content_type: TEXT, body: "here\n".to_owned() })
    }

    fn listening() -> (Connections, std::net::SocketAddr) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        // Long enough for the slowest machine.
        (Connections { asking: Duration::from_secs(3600), ..Connections::new(listener).unwrap() }, address)
    }

    /// Turns until this client is answered in full.
    fn answer(
        connections: &mut Connections,
        mut client: &TcpStream,
        reply: &mut dyn FnMut(&HttpRequest) -> Reply,
    ) -> String {
        client.set_nonblocking(true).unwrap();
        let mut text = Vec::new();
        loop {
            connections.poll(reply).unwrap();
            match client.read_to_end(&mut text) {
                Ok(_) => return String::from_utf8(text).unwrap(),
                Err(error) => assert_eq!(error.kind(), io::ErrorKind::WouldBlock),
            }
        }
    }

    #[test]
    fn silent_clients_beyond_the_limit_block_nobody() {
        let (mut connections, address) = listening();
        let mut silent = Vec::new();
        for _ in 0..MAX_CLIENTS + 20 {
            silent.push(TcpStream::connect(address).unwrap());
            connections.poll(&mut reply).unwrap();
        }
        assert_eq!(connections.clients.len(), MAX_CLIENTS);
        let mut client = TcpStream::connect(address).unwrap();
        client.write_all(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n").unwrap();
        let text = answer(&mut connections, &client, &mut reply);
        assert!(text.starts_with("HTTP/1.1 200 OK\r\n") && text.ends_with("\r\n\r\nhere\n"), "{text}");
        assert!(connections.clients.len() >= MAX_CLIENTS - 1, "and none of the others was heard or waited for");
    }

    #[test]
    fn slow_client_is_closed_at_time_limit() {
        let (mut connections, address) = listening();
        let _silent = TcpStream::connect(address).unwrap();
        while connections.clients.is_empty() {
            connections.poll(&mut reply).unwrap();
        }
        let client = &connections.clients[0];
        assert!(!client.is_late(client.came + ASKING, ASKING) && client.is_late(client.came + ASKING * 2, ASKING));
        let answered = ClientState::Answered { bytes: Vec::new(), at: 0 };
        let slow = Client { stream: TcpStream::connect(address).unwrap(), came: client.came, state: answered };
        assert!(!slow.is_late(slow.came + ASKING * 2, ASKING) && slow.is_late(slow.came + WHOLE * 2, ASKING));
        connections.asking = Duration::ZERO;
        connections.poll(&mut reply).unwrap();
        assert!(connections.clients.is_empty());
    }

    #[test]
    fn reply_can_be_deferred() {
        let (mut connections, address) = listening();
        let mut client = TcpStream::connect(address).unwrap();
        client.write_all(b"HEAD / HTTP/1.0\r\n\r\n").unwrap();
        let (give, answer_of) = std::sync::mpsc::channel();
        let (mut waiting, mut give) = (Some(answer_of), Some(give));
        let mut later = |_: &HttpRequest| Reply::Later(waiting.take().unwrap());
        while !connections.clients.iter().any(|client| matches!(client.state, ClientState::Waiting { .. })) {
            connections.poll(&mut later).unwrap();
        }
        let whole = HttpResponse { status: "200 OK", content_type: TEXT, body: "figures".to_owned() };
        give.take().unwrap().send(whole).unwrap();
        let text = answer(&mut connections, &client, &mut later);
        assert!(text.contains("Content-Length: 7\r\n") && !text.contains("figures"), "{text}");
    }
}
