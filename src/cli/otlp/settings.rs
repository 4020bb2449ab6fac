//! Where figures are sent and how: by the command line and by the variables of the specification
//! (<https://opentelemetry.io/docs/specs/otel/protocol/exporter/>).

use std::path::PathBuf;
use std::time::Duration;

use super::super::exit::UsageError;
use super::endpoint::Endpoint;
use crate::export::otlp::OtlpResource;

/// Time between two requests, and the time that one has with all its retries.
const INTERVAL: Duration = Duration::from_secs(15);
const TIMEOUT: Duration = Duration::from_secs(10);
/// A collector on this machine.
const DEFAULT: &str = "http://localhost:4318";

/// Whether and where figures are sent.
#[derive(Clone, Debug, Default, clap::Args)]
pub(in super::super) struct OtlpArguments {
    /// Send figures to an OpenTelemetry collector while the run lasts; without URL to the one in
    /// OTEL_EXPORTER_OTLP_ENDPOINT, else to http://localhost:4318
    #[arg(long, value_name = "URL", num_args = 0..=1, default_missing_value = "", value_parser = parse_address)]
    pub(in super::super) otlp: Option<String>,
}

/// Where and how.
#[derive(Clone, Debug)]
pub(in super::super) struct OtlpSettings {
    pub(super) endpoint: Endpoint,
    pub(super) headers: Vec<(String, String)>,
    pub(super) timeout: Duration,
    pub(super) interval: Duration,
    pub(super) is_compressed: bool,
    pub(super) tls: TlsFiles,
    pub(super) resource: OtlpResource,
}

/// Files for encrypted connections.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct TlsFiles {
    pub(super) authority: Option<PathBuf>,
    pub(super) certificate: Option<PathBuf>,
    pub(super) key: Option<PathBuf>,
}

/// Checks the value of `--otlp`; empty where none was given.
pub(in super::super) fn parse_address(text: &str) -> Result<String, String> {
    if !text.is_empty() {
        Endpoint::parse(text).map_err(|why| {
            format!("{why}; to take the address from the environment, let `--` or another option follow --otlp")
        })?;
    }
    Ok(text.to_owned())
}

impl OtlpSettings {
    /// What this address, if it is not empty, and the environment say.
    ///
    /// # Errors
    /// If a variable cannot be understood, or asks for what is not there; its value is not repeated, as it may be secret.
    pub(in super::super) fn new(address: &str) -> anyhow::Result<Self> {
        Self::read(address, &|name| std::env::var(name).ok())
    }

    fn read(address: &str, variable: &dyn Fn(&str) -> Option<String>) -> anyhow::Result<Self> {
        let variables = Variables(variable);
        if let Some(protocol) = variables.of_metrics("PROTOCOL").filter(|protocol| protocol != "http/json") {
            let name = variables.metrics_name("PROTOCOL");
            let text = format!("{name} asks for {protocol}: gnntop speaks only http/json");
            return Err(UsageError::with_message(text));
        }
        if let Some(wanted) = variables.of_name("OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE")
            && !wanted.eq_ignore_ascii_case("cumulative")
        {
            let name = "OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE";
            return Err(UsageError::with_message(format!("{name}: gnntop sends only cumulative sums")));
        }
        let compression = variables.of_metrics("COMPRESSION");
        if compression.as_ref().is_some_and(|compression| !["gzip", "none"].contains(&compression.as_str())) {
            let name = variables.metrics_name("COMPRESSION");
            return Err(UsageError::with_message(format!("{name} must be gzip or none")));
        }
        let file = |name| variables.of_metrics(name).map(PathBuf::from);
        Ok(Self {
            endpoint: variables.endpoint(address)?,
            headers: variables.headers()?,
            timeout: variables.milliseconds(variables.metrics_name("TIMEOUT"))?.unwrap_or(TIMEOUT),
            interval: variables.milliseconds("OTEL_METRIC_EXPORT_INTERVAL".to_owned())?.unwrap_or(INTERVAL),
            is_compressed: compression.is_some_and(|compression| compression == "gzip"),
            tls: TlsFiles {
                authority: file("CERTIFICATE"),
                certificate: file("CLIENT_CERTIFICATE"),
                key: file("CLIENT_KEY"),
            },
            resource: OtlpResource {
                service_name: variables.of_name("OTEL_SERVICE_NAME"),
                attributes: variables.pairs("OTEL_RESOURCE_ATTRIBUTES")?,
                host: None,
            },
        })
    }

    /// Only for ranks on this host, so that several senders of a run send none of them twice.
    pub(in super::super) fn for_host(mut self, host: String) -> Self {
        self.resource.host = Some(host);
        self
    }

    /// Where figures go, for people.
    pub(in super::super) fn address(&self) -> String {
        self.endpoint.shown()
    }

    /// Time between two requests.
    pub(in super::super) fn interval(&self) -> Duration {
        self.interval
    }

    /// The time that a request has, with all its retries.
    pub(in super::super) fn timeout(&self) -> Duration {
        self.timeout
    }
}

/// The environment, in which an empty variable is none.
struct Variables<'v>(&'v dyn Fn(&str) -> Option<String>);

impl Variables<'_> {
    fn of_name(&self, name: &str) -> Option<String> {
        (self.0)(name).filter(|value| !value.trim().is_empty())
    }

    /// The variable of the exporter that is set: the one for metrics counts more.
    fn metrics_name(&self, name: &str) -> String {
        let of_metrics = format!("OTEL_EXPORTER_OTLP_METRICS_{name}");
        if self.of_name(&of_metrics).is_some() { of_metrics } else { format!("OTEL_EXPORTER_OTLP_{name}") }
    }

    fn of_metrics(&self, name: &str) -> Option<String> {
        self.of_name(&self.metrics_name(name)).map(|value| value.trim().to_owned())
    }

    /// The command line counts most; the address for metrics is used as it is, others get the path of metrics.
    fn endpoint(&self, address: &str) -> anyhow::Result<Endpoint> {
        if !address.is_empty() {
            let endpoint = Endpoint::parse(address).map_err(|why| wrong("--otlp", &why))?;
            return Ok(endpoint.with_metrics_path());
        }
        let name = self.metrics_name("ENDPOINT");
        let text = self.of_name(&name).unwrap_or_else(|| DEFAULT.to_owned());
        let endpoint = Endpoint::parse(text.trim()).map_err(|why| wrong(&name, &why))?;
        Ok(if name.contains("METRICS") { endpoint } else { endpoint.with_metrics_path() })
    }

    fn headers(&self) -> anyhow::Result<Vec<(String, String)>> {
        let name = self.metrics_name("HEADERS");
        let headers = self.pairs(&name)?;
        let is_name = |text: &str| text.bytes().all(|b| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b));
        let is_wrong = |(key, value): &(String, String)| !is_name(key) || value.contains(char::is_control);
        if headers.iter().any(is_wrong) {
            return Err(wrong(&name, "a header is a name and a value in one line"));
        }
        Ok(headers)
    }

    /// `a=1,b=2`, where `%2C` stands for a comma.
    fn pairs(&self, name: &str) -> anyhow::Result<Vec<(String, String)>> {
        let text = self.of_name(name).unwrap_or_default();
        let pairs = text.split(',').map(str::trim).filter(|pair| !pair.is_empty()).map(|pair| {
            let (key, value) = pair.split_once('=')?;
            Some((key.trim().to_owned(), decoded(value.trim())?)).filter(|(key, _)| !key.is_empty())
        });
        pairs.collect::<Option<_>>().ok_or_else(|| wrong(name, "write it as key=value,other=value"))
    }

    fn milliseconds(&self, name: String) -> anyhow::Result<Option<Duration>> {
        let Some(text) = self.of_name(&name) else { return Ok(None) };
        let milliseconds = text.trim().parse().ok().filter(|ms| (1..=u64::from(u32::MAX)).contains(ms));
        let milliseconds = milliseconds.ok_or_else(|| wrong(&name, "give a number of milliseconds above 0"))?;
        Ok(Some(Duration::from_millis(milliseconds)))
    }
}

fn wrong(name: &str, why: &str) -> anyhow::Error {
    UsageError::with_message(format!("{name}: {why}"))
}

/// A value whose `%41` are bytes; `None` if they make no text.
pub(in super::super) fn decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        let code = after.get(..2).filter(|code| *first == b'%' && code.iter().all(u8::is_ascii_hexdigit));
        let code = code.and_then(|code| std::str::from_utf8(code).ok());
        let byte = code.and_then(|code| u8::from_str_radix(code, 16).ok());
        bytes.push(byte.unwrap_or(*first));
        rest = if byte.is_some() { &after[2..] } else { after };
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(address: &str, variables: &[(&str, &str)]) -> Result<OtlpSettings, String> {
        let find =
            |name: &str| variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned());
        OtlpSettings::read(address, &find).map_err(|error| error.to_string())
    }

    #[test]
    fn nothing_set_means_a_collector_on_this_machine() {
        let settings = read("", &[("OTEL_EXPORTER_OTLP_ENDPOINT", " ")]).unwrap();
        assert_eq!(settings.address(), "http://localhost:4318/v1/metrics");
        assert_eq!((settings.interval, settings.timeout), (INTERVAL, TIMEOUT));
        assert!(!settings.is_compressed && settings.headers.is_empty() && settings.tls == TlsFiles::default());
    }

    #[test]
    fn variables_for_metrics_count_more_and_the_command_line_most() {
        let both = [
            ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://all:4318"),
            ("OTEL_EXPORTER_OTLP_METRICS_ENDPOINT", "https://metrics/as/it/is"),
            ("OTEL_EXPORTER_OTLP_TIMEOUT", "5000"),
            ("OTEL_EXPORTER_OTLP_METRICS_TIMEOUT", "700"),
            ("OTEL_EXPORTER_OTLP_HEADERS", "a=1"),
            ("OTEL_EXPORTER_OTLP_METRICS_HEADERS", "Authorization=Bearer%20x%2Cy, b = 2"),
            ("OTEL_EXPORTER_OTLP_COMPRESSION", "none"),
            ("OTEL_EXPORTER_OTLP_METRICS_COMPRESSION", "gzip"),
            ("OTEL_EXPORTER_OTLP_CERTIFICATE", "/ca.pem"),
            ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc"),
            ("OTEL_EXPORTER_OTLP_METRICS_PROTOCOL", "http/json"),
            ("OTEL_METRIC_EXPORT_INTERVAL", "2000"),
        ];
        let settings = read("", &both).unwrap();
        assert_eq!(settings.address(), "https://metrics/as/it/is");
        assert_eq!((settings.timeout, settings.interval), (Duration::from_millis(700), Duration::from_secs(2)));
        let headers: Vec<_> = settings.headers.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        assert_eq!(headers, [("Authorization", "Bearer x,y"), ("b", "2")]);
        assert!(settings.is_compressed && settings.tls.authority == Some("/ca.pem".into()));
        assert_eq!(read("", &both[..1]).unwrap().address(), "http://all:4318/v1/metrics");
        assert_eq!(read("http://line:1", &both).unwrap().address(), "http://line:1/v1/metrics");
    }

    #[test]
    fn resource_is_named_by_its_variables() {
        let variables =
            [("OTEL_SERVICE_NAME", "pna"), ("OTEL_RESOURCE_ATTRIBUTES", "service.name=other,team=graphs%20and%20more")];
        let resource = read("", &variables).unwrap().resource;
        assert_eq!(resource.service_name.as_deref(), Some("pna"));
        assert_eq!(resource.attributes[1], ("team".to_owned(), "graphs and more".to_owned()));
    }

    #[test]
    fn what_cannot_be_done_is_refused_without_secrets() {
        for protocol in ["grpc", "http/protobuf"] {
            let error = read("", &[("OTEL_EXPORTER_OTLP_PROTOCOL", protocol)]).unwrap_err();
            assert!(error.contains("only http/json") && error.contains(protocol), "{error}");
        }
        let wrong = [
            ("OTEL_EXPORTER_OTLP_HEADERS", "secret"),
            ("OTEL_EXPORTER_OTLP_HEADERS", "secret=a%0Ab"),
            ("OTEL_EXPORTER_OTLP_HEADERS", "two words=secret"),
            ("OTEL_EXPORTER_OTLP_COMPRESSION", "zstd"),
            ("OTEL_EXPORTER_OTLP_TIMEOUT", "10s"),
            ("OTEL_METRIC_EXPORT_INTERVAL", "0"),
            ("OTEL_EXPORTER_OTLP_ENDPOINT", "localhost:4318"),
            ("OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE", "delta"),
        ];
        for (name, value) in wrong {
            let error = read("", &[(name, value)]).unwrap_err();
            assert!(error.contains(name) && !error.contains("secret"), "{error}");
        }
    }
}
