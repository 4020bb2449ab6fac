//! The address of a collector.

use std::fmt;

/// Where requests go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Endpoint {
    pub(super) is_encrypted: bool,
    /// A name or an address; IPv6 in brackets.
    pub(super) host: String,
    pub(super) port: u16,
    /// With the query, if there is one.
    pub(super) path: String,
}

/// The path of metrics below a collector's address.
const METRICS: &str = "/v1/metrics";

impl Endpoint {
    /// Reads an address.
    ///
    /// # Errors
    /// What is wrong with it, without its text, which may hold a password.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let (is_encrypted, rest) = match (text.strip_prefix("https://"), text.strip_prefix("http://")) {
            (Some(rest), _) => (true, rest),
            (None, Some(rest)) => (false, rest),
            (None, None) => return Err("give an address such as http://localhost:4318".to_owned()),
        };
        if rest.contains(|c: char| c.is_whitespace() || c.is_control()) {
            return Err("an address has no spaces".to_owned());
        }
        let rest = rest.split('#').next().unwrap_or_default();
        let (authority, path) = rest.find(['/', '?']).map_or((rest, ""), |at| rest.split_at(at));
        if authority.contains('@') {
            let instead = "put a password into OTEL_EXPORTER_OTLP_HEADERS, such as Authorization=Basic%20...";
            return Err(format!("everybody on this machine sees the command line: {instead}"));
        }
        let (host, port) = match authority.rsplit_once(':') {
            Some((host, port)) if !port.ends_with(']') => {
                (host, port.parse().map_err(|_| "a port is a number up to 65535".to_owned())?)
            }
            _ => (authority, if is_encrypted { 443 } else { 80 }),
        };
        if host.is_empty() {
            return Err("the address has no host".to_owned());
        }
        let path = if path.starts_with('/') { path.to_owned() } else { format!("/{path}") };
        Ok(Self { is_encrypted, host: host.to_owned(), port, path })
    }

    /// The place of metrics at a collector of this address, unless it names that already.
    pub(super) fn with_metrics_path(mut self) -> Self {
        let (path, query) =
            self.path.split_once('?').map_or((self.path.as_str(), None), |(path, query)| (path, Some(query)));
        let path = path.trim_end_matches('/');
        let path = if path.ends_with(METRICS) { path.to_owned() } else { format!("{path}{METRICS}") };
        self.path = query.map_or(path.clone(), |query| format!("{path}?{query}"));
        self
    }

    /// The address for people: its query may hold a password.
    pub(super) fn shown(&self) -> String {
        let whole = self.to_string();
        whole.split('?').next().unwrap_or_default().to_owned()
    }

    /// What its `Host` header says.
    pub(super) fn authority(&self) -> String {
        let usual = if self.is_encrypted { 443 } else { 80 };
        if self.port == usual { self.host.clone() } else { format!("{}:{}", self.host, self.port) }
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = if self.is_encrypted { "https" } else { "http" };
        write!(f, "{scheme}://{}{}", self.authority(), self.path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn metrics(text: &str) -> String {
        Endpoint::parse(text).unwrap().with_metrics_path().to_string()
    }

    #[test]
    fn metrics_have_their_path_below_the_address() {
        assert_eq!(metrics("http://localhost:4318"), "http://localhost:4318/v1/metrics");
        assert_eq!(metrics("http://a/"), "http://a/v1/metrics");
        assert_eq!(metrics("http://a:9090/api/v1/otlp"), "http://a:9090/api/v1/otlp/v1/metrics");
        assert_eq!(metrics("https://a/v1/metrics/"), "https://a/v1/metrics");
        assert_eq!(metrics("https://[::1]:4318?key=1"), "https://[::1]:4318/v1/metrics?key=1");
        assert_eq!(metrics("http://[::1]"), "http://[::1]/v1/metrics");
        assert_eq!(Endpoint::parse("https://a/b?key=secret").unwrap().shown(), "https://a/b");
    }

    #[test]
    fn what_is_no_address_is_refused_without_being_repeated() {
        for wrong in ["", "pna", "localhost:4318", "ftp://a", "http://", "http://a b", "http://a:99999", "http://:1/"] {
            assert!(Endpoint::parse(wrong).is_err(), "{wrong}");
        }
        let error = Endpoint::parse("http://me:secret@a").unwrap_err();
        assert!(error.contains("OTEL_EXPORTER_OTLP_HEADERS") && !error.contains("secret"), "{error}");
    }
}
