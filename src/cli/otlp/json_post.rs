//! One POST of JSON with a token to another service than a collector, on the same ways.

use std::io;
use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Instant;

use super::endpoint::Endpoint;
use super::post::Request;
use super::settings::TlsFiles;
use super::{encrypted, post};

/// A service that takes JSON.
#[derive(Clone, Debug)]
pub(in super::super) struct JsonService {
    endpoint: Endpoint,
    tls: TlsFiles,
}

impl JsonService {
    /// The service at this address, whose certificate this authority has signed.
    ///
    /// # Errors
    /// If it is no address, or one to which a token would go as it is over a network.
    pub(in super::super) fn new(address: &str, authority: Option<PathBuf>) -> Result<Self, String> {
        let endpoint = Endpoint::parse(address)?;
        let host = endpoint.host.trim_start_matches('[').trim_end_matches(']');
        let is_here = host == "localhost" || host.parse().is_ok_and(|address: IpAddr| address.is_loopback());
        if !endpoint.is_encrypted && !is_here {
            return Err("without https everybody on the way would see the token".to_owned());
        }
        Ok(Self { endpoint, tls: TlsFiles { authority, ..TlsFiles::default() } })
    }

    /// Sends a body with a token; it takes no longer than until `deadline`.
    ///
    /// # Errors
    /// If there is no answer by then, or it is no success.
    pub(in super::super) fn post(&self, body: &[u8], token: &str, deadline: Instant) -> io::Result<()> {
        let headers = [("Authorization".to_owned(), format!("Bearer {token}"))];
        let request = Request { endpoint: &self.endpoint, headers: &headers, body, is_compressed: false };
        let answer = match self.endpoint.is_encrypted {
            true => encrypted::post(&request, &self.tls, deadline),
            false => post::post(&request, deadline),
        }?;
        if answer.is_success() {
            return Ok(());
        }
        let said = answer.message().map_or_else(String::new, |said| format!(": {said}"));
        Err(io::Error::other(format!("it answers with status {}{said}", answer.status)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn token_leaves_this_machine_only_encrypted() {
        let is_taken = |address| JsonService::new(address, None).is_ok();
        let here = ["http://127.0.0.1:1/a", "http://[::1]:1/", "http://localhost:1"].map(is_taken);
        assert_eq!((here, is_taken("https://controller:8082/apis")), ([true; 3], true));
        let error = JsonService::new("http://controller:8082/apis", None).unwrap_err();
        assert!(error.contains("https"), "{error}");
    }
}
