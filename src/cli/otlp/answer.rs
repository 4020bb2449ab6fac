//! What a collector answers: as much of HTTP/1.1 as that takes, and what the protocol says of parts that were rejected.

use std::io;
use std::time::{Duration, SystemTime};

use gnntop_wire::text;
use serde_json::Value;

/// Bytes of an answer that are looked at.
pub(super) const MOST: usize = 64 * 1024;
/// Letters of a collector's message that are shown.
const LONGEST_MESSAGE: usize = 200;
/// Digits of a number that are shown: those of the largest that the protocol has.
const LONGEST_COUNT: usize = 20;

/// An answer to a request.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Answer {
    pub(super) status: u16,
    /// How long it asks to wait.
    pub(super) retry_after: Option<Duration>,
    body: String,
}

impl Answer {
    /// Reads an answer.
    ///
    /// # Errors
    /// If it is none.
    pub(super) fn parse(bytes: &[u8]) -> io::Result<Self> {
        let head_len = head_len(bytes).unwrap_or(bytes.len());
        let head = String::from_utf8_lossy(&bytes[..head_len]);
        let status = head.strip_prefix("HTTP/").and_then(|rest| rest.split_whitespace().nth(1)?.parse().ok());
        let status = status.ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "it does not speak HTTP"))?;
        let body = String::from_utf8_lossy(&bytes[head_len..]).into_owned();
        Ok(Self { status, retry_after: header(&head, "retry-after").and_then(parse_wait), body })
    }

    /// Whether the request was taken.
    pub(super) fn is_success(&self) -> bool {
        (200..300).contains(&self.status)
    }

    /// Whether the specification lets the same request be sent again.
    pub(super) fn is_retryable(&self) -> bool {
        matches!(self.status, 429 | 502 | 503 | 504)
    }

    /// Whether it says that values were rejected.
    pub(super) fn has_rejected(&self) -> bool {
        self.body().is_some_and(|body| rejected(&body) != "0")
    }

    fn body(&self) -> Option<Value> {
        // What is around it belongs to HTTP: lengths of chunks.
        let (begin, end) = (self.body.find('{')?, self.body.rfind('}')?);
        serde_json::from_str(self.body.get(begin..=end)?).ok()
    }

    /// What the collector says in words: of a failure, or of values that it has rejected.
    pub(super) fn message(&self) -> Option<String> {
        let body = self.body()?;
        let (partial, rejected) = (&body["partialSuccess"], rejected(&body));
        let said = partial["errorMessage"].as_str().or(body["message"].as_str()).unwrap_or_default();
        let said: String = text::clean(said.as_bytes()).chars().take(LONGEST_MESSAGE).collect();
        match (rejected.as_str(), said.as_str()) {
            ("0", "") => None,
            ("0", _) => Some(said),
            (_, "") => Some(format!("{rejected} values were rejected")),
            _ => Some(format!("{rejected} values were rejected: {said}")),
        }
    }
}

/// How many values were rejected, as it was said.
fn rejected(body: &Value) -> String {
    let count = match &body["partialSuccess"]["rejectedDataPoints"] {
        Value::String(count) => text::clean(count.as_bytes()),
        Value::Number(count) => count.to_string(),
        _ => String::new(),
    };
    if count.is_empty() { "0".to_owned() } else { count.chars().take(LONGEST_COUNT).collect() }
}

/// Whether everything has arrived, as far as the head says how much that is.
pub(super) fn is_whole(bytes: &[u8]) -> bool {
    let Some(head_len) = head_len(bytes) else { return false };
    let head = String::from_utf8_lossy(&bytes[..head_len]);
    let len = header(&head, "content-length").and_then(|text| text.parse::<usize>().ok());
    len.is_some_and(|len| bytes.len() - head_len >= len)
}

fn head_len(bytes: &[u8]) -> Option<usize> {
    bytes.windows(4).position(|end| end == b"\r\n\r\n").map(|at| at + 4)
}

fn header<'h>(head: &'h str, wanted: &str) -> Option<&'h str> {
    let mut fields = head.lines().filter_map(|line| line.split_once(':'));
    fields.find(|(name, _)| name.eq_ignore_ascii_case(wanted)).map(|(_, value)| value.trim())
}

/// Seconds, or a time.
fn parse_wait(text: &str) -> Option<Duration> {
    if let Ok(seconds) = text.parse::<u32>() {
        return Some(Duration::from_secs(seconds.into()));
    }
    let at = jiff::fmt::rfc2822::parse(text).ok()?.timestamp();
    let at = SystemTime::UNIX_EPOCH + Duration::from_secs(at.as_second().try_into().ok()?);
    Some(at.duration_since(SystemTime::now()).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(text: &str) -> Answer {
        Answer::parse(text.as_bytes()).unwrap()
    }

    #[test]
    fn answer_has_status_wait_and_message() {
        let busy = answer("HTTP/1.1 503 Service Unavailable\r\nretry-After: 7\r\n\r\n{\"message\":\"full\"}");
        assert_eq!((busy.status, busy.retry_after), (503, Some(Duration::from_secs(7))));
        assert!(busy.is_retryable() && !busy.is_success() && busy.message().as_deref() == Some("full"));
        let fine = answer("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}");
        assert!(fine.is_success() && fine.message().is_none());
        assert!(Answer::parse(b"SSH-2.0-OpenSSH_9.2\r\n").is_err() && Answer::parse(b"").is_err());
    }

    #[test]
    fn retry_after_may_be_a_time() {
        let past = answer("HTTP/1.1 429 Too Many\r\nRetry-After: Wed, 21 Oct 2015 07:28:00 GMT\r\n\r\n");
        assert_eq!(past.retry_after, Some(Duration::ZERO));
        let later = answer("HTTP/1.1 429 Too Many\r\nRetry-After: Wed, 21 Oct 2150 07:28:00 GMT\r\n\r\n");
        assert!(later.retry_after.unwrap() > Duration::from_secs(3600));
        assert_eq!(answer("HTTP/1.1 429 Too Many\r\nRetry-After: soon\r\n\r\n").retry_after, None);
    }

    #[test]
    fn rejected_values_are_known_without_control_characters() {
        let body = r#"{"partialSuccess":{"rejectedDataPoints":"3","errorMessage":"too \u001b[2J old"}}"#;
        let message = answer(&format!("HTTP/1.1 200 OK\r\n\r\n4a\r\n{body}\r\n0\r\n")).message().unwrap();
        assert!(message.starts_with("3 values were rejected: too ") && !message.contains('\u{1b}'), "{message}");
        let number = answer("HTTP/1.1 200 OK\r\n\r\n{\"partialSuccess\":{\"rejectedDataPoints\":1}}");
        assert_eq!((number.message().as_deref(), number.has_rejected()), (Some("1 values were rejected"), true));
        let warning = answer("HTTP/1.1 200 OK\r\n\r\n{\"partialSuccess\":{\"errorMessage\":\"old\"}}");
        assert_eq!((warning.message().as_deref(), warning.has_rejected()), (Some("old"), false));
        let hostile = answer("HTTP/1.1 200 OK\r\n\r\n{\"partialSuccess\":{\"rejectedDataPoints\":\"\\u001b\"}}");
        assert_eq!(hostile.message().as_deref(), Some("\u{fffd} values were rejected"));
    }

    #[test]
    fn only_four_failures_may_be_repeated() {
        let repeated = (100..600).filter(|status| answer(&format!("HTTP/1.1 {status} X\r\n\r\n")).is_retryable());
        assert_eq!(repeated.collect::<Vec<_>>(), [429, 502, 503, 504]);
    }

    #[test]
    fn whole_answer_has_its_length() {
        let text = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}";
        assert!(is_whole(text) && !is_whole(&text[..text.len() - 1]) && !is_whole(b"HTTP/1.1 200 OK\r\n\r\n{}"));
    }
}
