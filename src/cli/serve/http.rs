//! As much of HTTP/1.1 (RFC 9112) as a scrape needs: the head of a request, the host names under which it is answered, and an
//! answer to it.

use std::net::{Ipv4Addr, Ipv6Addr};

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

/// Whether `host`, the value of that header, is a name to be answered under.
///
/// A web page can make its own name point to this machine once it is loaded (DNS rebinding), and then read figures that
/// are meant for the user alone. Its requests still have the page's name in `Host`; so only names that no stranger can
/// own are answered: addresses, `localhost`, and those that the user allows.
pub(super) fn is_known_host(host: &str, allowed: &[String]) -> bool {
    let name = without_port(host);
    let is_address = match name.strip_prefix('[').and_then(|name| name.strip_suffix(']')) {
        Some(name) => name.parse::<Ipv6Addr>().is_ok(),
        None => name.parse::<Ipv4Addr>().is_ok(),
    };
    let name = name.strip_suffix('.').unwrap_or(name);
    let is_allowed = || allowed.iter().any(|allowed| allowed.eq_ignore_ascii_case(name));
    is_address || name.eq_ignore_ascii_case("localhost") || is_allowed()
}

/// Checks the value of `--allow-host`.
pub(super) fn parse_host_name(text: &str) -> Result<String, String> {
    let is_name =
        !text.is_empty() && text.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'-' | b'_'));
    if is_name { Ok(text.to_owned()) } else { Err("give only a host name, such as node7.example.org".to_owned()) }
}

fn without_port(host: &str) -> &str {
    match host.rsplit_once(':') {
        Some((name, port)) if !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => host,
    }
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

    #[test]
    fn foreign_host_names_are_rejected() {
        let allowed = ["node7.example.org".to_owned()];
        for known in ["127.0.0.1", "127.0.0.1:9464", "[::1]:9464", "[::1]", "10.0.0.7:80", "localhost", "LOCALHOST:1"] {
            assert!(is_known_host(known, &[]), "{known}");
        }
        for known in ["node7.example.org", "Node7.Example.org:9464", "node7.example.org."] {
            assert!(is_known_host(known, &allowed), "{known}");
            assert!(!is_known_host(known, &[]), "{known}");
        }
        for strange in
            ["", "evil.example", "evil.example:9464", "localhost.evil.example", "127.0.0.1.evil.example", "::1"]
        {
            assert!(!is_known_host(strange, &allowed), "{strange}");
        }
    }

    #[test]
    fn allowed_host_with_port_or_scheme_is_refused() {
        assert!(parse_host_name("node7").is_ok());
        for wrong in ["", "http://node7", "node7:80", "a b"] {
            assert!(parse_host_name(wrong).is_err(), "{wrong}");
        }
    }
}
