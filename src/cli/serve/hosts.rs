//! The host names under which the server answers.
//!
//! A web page can make its own name point to this machine once it is loaded (DNS rebinding), and then read figures that
//! are meant for the user alone. Its requests still have the page's name in `Host`; so only names that no stranger can
//! own are answered: addresses, `localhost`, and those that the user allows.

use std::net::{Ipv4Addr, Ipv6Addr};

/// Whether `host`, the value of that header, is a name to be answered under.
pub(super) fn is_known(host: &str, allowed: &[String]) -> bool {
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
    fn foreign_host_names_are_rejected() {
        let allowed = ["node7.example.org".to_owned()];
        for known in ["127.0.0.1", "127.0.0.1:9464", "[::1]:9464", "[::1]", "10.0.0.7:80", "localhost", "LOCALHOST:1"] {
            assert!(is_known(known, &[]), "{known}");
        }
        for known in ["node7.example.org", "Node7.Example.org:9464", "node7.example.org."] {
            assert!(is_known(known, &allowed), "{known}");
            assert!(!is_known(known, &[]), "{known}");
        }
        for strange in
            ["", "evil.example", "evil.example:9464", "localhost.evil.example", "127.0.0.1.evil.example", "::1"]
        {
            assert!(!is_known(strange, &allowed), "{strange}");
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
