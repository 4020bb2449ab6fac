//! Resources: the report of a run in Markdown, and what each finding means.

use serde_json::{Value, json};

use super::refusal::Refusal;
use super::run_tools;
use crate::cli::otlp::decoded;
use crate::report::{Document, Report};

const FINDINGS: &str = "gnntop://findings";
const REPORT_BEGIN: &str = "gnntop://run/";
const REPORT_END: &str = "/report";
const MARKDOWN: &str = "text/markdown";

/// The result of `resources/list`.
pub(super) fn list() -> Value {
    json!({ "resources": [
        { "uri": FINDINGS, "name": "findings", "description": "Every finding: what it means, when it is said, what to do",
          "mimeType": MARKDOWN },
    ]})
}

/// The result of `resources/templates/list`.
pub(super) fn templates() -> Value {
    json!({ "resourceTemplates": [
        { "uriTemplate": format!("{REPORT_BEGIN}{{run}}{REPORT_END}"), "name": "report",
          "description": "The whole report of a run, by name, process id or id", "mimeType": MARKDOWN },
    ]})
}

/// The result of `resources/read`.
pub(super) fn read(parameters: &Value) -> Result<Value, Refusal> {
    let uri = parameters.get("uri").and_then(Value::as_str).unwrap_or_default();
    let text = if uri == FINDINGS {
        include_str!("../../../docs/findings.md").to_owned()
    } else {
        let run = uri.strip_prefix(REPORT_BEGIN).and_then(|rest| rest.strip_suffix(REPORT_END));
        let run = run.filter(|run| !run.is_empty() && !run.contains('/')).and_then(decoded);
        report(&run.ok_or_else(|| Refusal::parameters(format!("there is no resource {uri:?}")))?)?
    };
    Ok(json!({ "contents": [{ "uri": uri, "mimeType": MARKDOWN, "text": text }] }))
}

fn report(name: &str) -> Result<String, Refusal> {
    let read = run_tools::read(Some(name), None).and_then(|run| Ok((run, run_tools::options(0)?)));
    let (run, options) = read.map_err(|error| Refusal::parameters(format!("{error:#}")))?;
    let report = Report::new(&options.catalogue(&run), &options);
    Ok(Document::from_reports(&[(name, &report)]).to_markdown())
}
