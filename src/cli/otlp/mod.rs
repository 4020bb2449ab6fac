//! Sends the figures of a run to an OpenTelemetry collector, or to what reads its protocol, such as Prometheus.
//!
//! ```text
//! settings.rs  the address on the command line and the variables of the specification; endpoint.rs: an address
//!      ▼
//! pusher.rs    a run, every few seconds as a request (crate::export::otlp), and what is said of failures
//!      ▼
//! delivery.rs  one request until it is accepted, with the retries of the specification, within its time
//!      ▼
//! post.rs      one POST over TCP; encrypted.rs: the same by curl; answer.rs: what comes back; json_post.rs: both, for another service
//! ```
//!
//! Only the keeper of a run and `gnntop push` do this: the program that is observed never waits for a network.

mod answer;
mod delivery;
mod encrypted;
mod endpoint;
mod json_post;
mod post;
mod pusher;
mod settings;

pub(super) use json_post::JsonService;
pub(super) use pusher::{Pusher, push_until};
pub(super) use settings::{OtlpArguments, OtlpSettings, decoded, parse_address};
