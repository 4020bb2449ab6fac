//! One POST without encryption, over TCP. Whatever the other side does, it takes no longer than its time; only the system's look-up
//! of a host's name may.

use std::io::{self, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::time::{Duration, Instant};

use super::answer::{self, Answer};
use super::endpoint::Endpoint;

/// What is sent.
pub(super) struct Request<'r> {
    pub(super) endpoint: &'r Endpoint,
    pub(super) headers: &'r [(String, String)],
    pub(super) body: &'r [u8],
    /// Whether the body is gzip.
    pub(super) is_compressed: bool,
}

impl Request<'_> {
    /// All headers but those of the connection.
    pub(super) fn headers(&self) -> impl Iterator<Item = (&str, &str)> {
        let agent = concat!("gnntop/", env!("CARGO_PKG_VERSION"));
        let own = [("Content-Type", "application/json"), ("User-Agent", agent)];
        let encoding = self.is_compressed.then_some(("Content-Encoding", "gzip"));
        let given = self.headers.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        own.into_iter().chain(encoding).chain(given)
    }

    fn to_bytes(&self) -> Vec<u8> {
        let Endpoint { path, .. } = self.endpoint;
        let mut head = format!("POST {path} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n", self.endpoint.authority());
        head += &format!("Content-Length: {}\r\n", self.body.len());
        self.headers().for_each(|(name, value)| head += &format!("{name}: {value}\r\n"));
        head += "\r\n";
        [head.as_bytes(), self.body].concat()
    }
}

/// Sends a request and reads the answer until `deadline`.
///
/// # Errors
/// If there is no whole answer by then.
pub(super) fn post(request: &Request<'_>, deadline: Instant) -> io::Result<Answer> {
    let mut stream = connect(request.endpoint, deadline)?;
    let bytes = request.to_bytes();
    let mut rest = bytes.as_slice();
    while !rest.is_empty() {
        stream.set_write_timeout(Some(left(deadline)?))?;
        match stream.write(rest) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(len) => rest = &rest[len..],
            Err(error) if error.kind() == io::ErrorKind::Interrupted => (),
            Err(error) => return Err(error),
        }
    }
    let mut read = Vec::new();
    let mut chunk = [0; 4096];
    while !answer::is_whole(&read) && read.len() < answer::MOST {
        stream.set_read_timeout(Some(left(deadline)?))?;
        match stream.read(&mut chunk) {
            Ok(0) if read.is_empty() => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(0) => break,
            Ok(len) => read.extend_from_slice(&chunk[..len]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => (),
            Err(error) => return Err(error),
        }
    }
    Answer::parse(&read)
}

/// Connects to the first of the host's addresses that answers.
fn connect(endpoint: &Endpoint, deadline: Instant) -> io::Result<TcpStream> {
    let host = endpoint.host.trim_start_matches('[').trim_end_matches(']');
    let mut failure = io::Error::new(io::ErrorKind::NotFound, "the host has no address");
    for address in (host, endpoint.port).to_socket_addrs()? {
        match TcpStream::connect_timeout(&address, left(deadline)?) {
            Ok(stream) => return Ok(stream),
            Err(error) => failure = error,
        }
    }
    Err(failure)
}

/// The time until then.
fn left(deadline: Instant) -> io::Result<Duration> {
    let left = deadline.saturating_duration_since(Instant::now());
    if left.is_zero() { Err(io::Error::new(io::ErrorKind::TimedOut, "it has not answered in time")) } else { Ok(left) }
}
