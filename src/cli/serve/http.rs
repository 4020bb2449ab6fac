//! As much of HTTP/1.1 (RFC 9112) as a scrape needs: the head of a request, and an answer to it.

/// The type of the figures.
pub(super) const OPENMETRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
/// The type of plain text.
pub(super) const TEXT: &str = "text/plain; charset=utf-8";

/// Bytes of a request's head.
const MAX_HEAD: usize = 8 * 1024;

/// What a client asks for.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct HttpRequest {
    pub method: String,
    /// Without the query.
    pub path: String,
    /// The name that the client knows us by; only HTTP/1.0 may leave it out.
    pub host: Option<String>,
}

/// The part of a request that has arrived.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum HttpHead {
    /// More is needed.
    Incomplete,
    /// It is whole.
    Whole(HttpRequest),
    /// It cannot be answered except with this status.
    Bad(&'static str),
}

/// An answer with everything but its length.
#[derive(Debug)]
pub(super) struct HttpResponse {
    pub status: &'static str,
    pub content_type: &'static str,
    pub body: String,
}

impl HttpResponse {
    /// As it is sent; without its body if only the head was asked for.
    pub(super) fn to_bytes(&self, head_only: bool) -> Vec<u8> {
        let Self { status, content_type, body } = self;
        let mut out = format!(
            "HTTP/1.1 {status}\r\nContent-Type: {content_type}\r\nContent-Length: {}\r\nAllow: GET, HEAD\r\n\
             Connection: close\r\n\r\n",
            body.len()
        );
        if !head_only {
            out += body;
        }
        out.into_bytes()
    }
}

/// Looks at what a client has sent so far.
pub(super) fn parse_head(bytes: &[u8]) -> HttpHead {
    match bytes.windows(4).position(|end| end == b"\r\n\r\n") {
        Some(end) if end <= MAX_HEAD => parse_request(&bytes[..end]).map_or_else(HttpHead::Bad, HttpHead::Whole),
        None if bytes.len() <= MAX_HEAD => HttpHead::Incomplete,
        _ => HttpHead::Bad("431 Request Header Fields Too Large"),
    }
}

fn parse_request(head: &[u8]) -> Result<HttpRequest, &'static str> {
    const BAD: &str = "400 Bad Request";
    let mut lines = std::str::from_utf8(head).map_err(|_| BAD)?.split("\r\n");
    let mut words = lines.next().unwrap_or_default().split(' ');
    let (Some(method), Some(target), Some(version), None) = (words.next(), words.next(), words.next(), words.next())
    else {
        return Err(BAD);
    };
    if !version.starts_with("HTTP/1.") {
        return Err(BAD);
    }
    let fields = lines.filter_map(|line| line.split_once(':'));
    let mut hosts =
        fields.filter(|(name, _)| name.eq_ignore_ascii_case("host")).map(|(_, host)| host.trim().to_owned());
    let host = hosts.next();
    // With two names, one could be checked and the other one used.
    if hosts.next().is_some() || host.is_none() && version != "HTTP/1.0" {
        return Err(BAD);
    }
    let path = target.split('?').next().unwrap_or_default();
    Ok(HttpRequest { method: method.to_owned(), path: path.to_owned(), host })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn request_needs_three_words_and_one_host() {
        let whole = parse_head(b"GET /metrics?name[]=a HTTP/1.1\r\nAccept: */*\r\nhost:  a:1 \r\n\r\nrest");
        let (method, path, host) = ("GET".to_owned(), "/metrics".to_owned(), Some("a:1".to_owned()));
        assert_eq!(whole, HttpHead::Whole(HttpRequest { method, path, host }));
        assert!(matches!(parse_head(b"GET / HTTP/1.0\r\n\r\n"), HttpHead::Whole(HttpRequest { host: None, .. })));
        let wrong = ["", "GET", "GET /", "GET / HTTP/2", "GET / HTTP/1.1 more", "\u{16}\u{3}\u{1}", "GET / HTTP/1.1"];
        for wrong in wrong.into_iter().chain(["GET / HTTP/1.1\r\nHost: a\r\nHost: b"]) {
            assert_eq!(parse_head(format!("{wrong}\r\n\r\n").as_bytes()), HttpHead::Bad("400 Bad Request"), "{wrong}");
        }
    }

    #[test]
    fn incomplete_head_is_awaited_up_to_a_limit() {
        assert_eq!(parse_head(b""), HttpHead::Incomplete);
        assert_eq!(parse_head(b"GET / HTTP/1.1\r\nHost: a\r\n"), HttpHead::Incomplete);
        assert!(matches!(parse_head(&[b'a'; MAX_HEAD + 1]), HttpHead::Bad(_)));
    }
}
