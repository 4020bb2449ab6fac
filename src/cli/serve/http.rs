//! As much of HTTP/1.1 (RFC 9112) as a scrape needs: one request a connection, its head read and its answer written
//! within a deadline, so that a slow or silent client costs little.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

/// A client that takes longer is left alone.
const DEADLINE: Duration = Duration::from_secs(1);
/// Bytes of a request's head.
const MAX_HEAD: usize = 8 * 1024;

/// What a client asks for.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Request {
    pub method: String,
    /// Without the query.
    pub path: String,
}

/// An answer with everything but its length.
pub(super) struct Answer {
    pub status: &'static str,
    pub content_type: &'static str,
    pub body: String,
}

/// Reads a request and writes what `answer` makes of it.
///
/// # Errors
/// When the client went away, took too long or did not send HTTP: no reason to end the server.
pub(super) fn serve(mut stream: TcpStream, answer: impl FnOnce(&Request) -> Answer) -> io::Result<()> {
    let deadline = Instant::now() + DEADLINE;
    stream.set_nonblocking(false)?;
    let head = read_head(&mut stream, deadline)?;
    let request = parse(&head).ok_or(io::ErrorKind::InvalidData)?;
    let Answer { status, content_type, body } = answer(&request);
    let len = body.len();
    let mut out = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {content_type}\r\nContent-Length: {len}\r\nAllow: GET, HEAD\r\n\
         Connection: close\r\n\r\n"
    );
    if request.method != "HEAD" {
        out += &body;
    }
    write_all(&mut stream, out.as_bytes(), deadline)
}

/// What is left until the deadline; nothing left is an error.
fn left(deadline: Instant) -> io::Result<Duration> {
    let left = deadline.saturating_duration_since(Instant::now());
    if left.is_zero() { Err(io::ErrorKind::TimedOut.into()) } else { Ok(left) }
}

/// Reads up to the empty line.
fn read_head(stream: &mut TcpStream, deadline: Instant) -> io::Result<Vec<u8>> {
    let mut head = Vec::new();
    let mut chunk = [0; 1024];
    while !head.windows(4).any(|end| end == b"\r\n\r\n") {
        stream.set_read_timeout(Some(left(deadline)?))?;
        match stream.read(&mut chunk) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(len) => head.extend_from_slice(&chunk[..len]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => (),
            Err(error) => return Err(error),
        }
        if head.len() > MAX_HEAD {
            return Err(io::ErrorKind::InvalidData.into());
        }
    }
    Ok(head)
}

fn parse(head: &[u8]) -> Option<Request> {
    let line = head.split(|byte| *byte == b'\r').next()?;
    let mut words = std::str::from_utf8(line).ok()?.split(' ');
    let (method, target, version) = (words.next()?, words.next()?, words.next()?);
    let path = target.split('?').next().unwrap_or_default();
    let is_http = version.starts_with("HTTP/1.") && words.next().is_none();
    is_http.then(|| Request { method: method.to_owned(), path: path.to_owned() })
}

fn write_all(stream: &mut TcpStream, mut bytes: &[u8], deadline: Instant) -> io::Result<()> {
    while !bytes.is_empty() {
        stream.set_write_timeout(Some(left(deadline)?))?;
        match stream.write(bytes) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(len) => bytes = &bytes[len..],
            Err(error) if error.kind() == io::ErrorKind::Interrupted => (),
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_line_has_three_words() {
        let parsed = |text: &str| parse(text.as_bytes()).map(|request| (request.method, request.path));
        let request = parsed("GET /metrics?name[]=a HTTP/1.1\r\nHost: a\r\n\r\n");
        assert_eq!(request, Some(("GET".to_owned(), "/metrics".to_owned())));
        for wrong in ["", "GET", "GET /", "GET / HTTP/2", "GET / HTTP/1.1 more", "\u{16}\u{3}\u{1}"] {
            assert_eq!(parsed(&format!("{wrong}\r\n\r\n")), None, "{wrong}");
        }
    }
}
