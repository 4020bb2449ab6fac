//! The tools: what each is called, what it takes, and what answers it.

use serde_json::{Value, json};

use super::answer::Answer;
use super::parameters::Arguments;
use super::refusal::{Refusal, ToolError};
use super::{list_runs, run_tools, wait_for};

/// What answers a call.
type Tool = fn(Arguments<'_>) -> Result<Answer, ToolError>;

/// A tool with its name, what it is for, its parameters beside `run` and `rank`, and whether it is about one run.
struct ToolRow {
    name: &'static str,
    description: &'static str,
    parameters: &'static [Parameter],
    is_about_a_run: bool,
    tool: Tool,
}

impl ToolRow {
    fn all_parameters(&self) -> impl Iterator<Item = &Parameter> {
        let about: &[Parameter] = if self.is_about_a_run { &RUN } else { &[] };
        about.iter().chain(self.parameters).chain([&DETAIL])
    }
}

/// A parameter: its name, the kind of its value in JSON Schema, and what it means.
type Parameter = (&'static str, &'static str, &'static str);

const RUN: [Parameter; 2] = [
    ("run", "string", "name, process id, id or path, as `list_runs` has them; without it, the current run"),
    ("rank", "integer", "the rank of a run of several"),
];
const DETAIL: Parameter = ("detail", "boolean", "up to 64 KiB instead of 8");

/// In the order in which a client lists them, which never changes.
const TOOLS: [ToolRow; 9] = [
    ToolRow {
        name: "list_runs",
        description: "Training runs on this machine, live ones first, with state and what they died of",
        parameters: &[("live", "boolean", "only live runs"), ("limit", "integer", "most runs listed; 20 by default")],
        is_about_a_run: false,
        tool: list_runs::list_runs,
    },
    ToolRow {
        name: "diagnose",
        description: "What bounds a run and why it is slow: verdict, phases with shares and percentiles, findings with evidence, \
                      lines of code and advice, and what could not be checked. Begin here",
        parameters: &[("skip_steps", "integer", "steps at the start to leave out, as warm-up")],
        is_about_a_run: true,
        tool: run_tools::diagnose,
    },
    ToolRow {
        name: "steps",
        description: "Single steps with the time of each phase: the slowest, or a range by number",
        parameters: &[
            ("count", "integer", "how many of the slowest; 10 by default"),
            ("from", "integer", "number of the first step of a range"),
            ("to", "integer", "number of the last step of a range"),
        ],
        is_about_a_run: true,
        tool: run_tools::steps,
    },
    ToolRow {
        name: "percentiles",
        description: "p50, p90 and p99 with 95 % intervals of steps, periods, gaps and phases, in nanoseconds",
        parameters: &[("of", "string", "one phase, or step, period, gap; all by default")],
        is_about_a_run: true,
        tool: run_tools::percentiles,
    },
    ToolRow {
        name: "stacks",
        description: "Where in the Python code the time goes, by file and line: stacks at stalls, and sampled ones of \
                      `gnntop run --stacks 20`",
        parameters: &[],
        is_about_a_run: true,
        tool: run_tools::stacks,
    },
    ToolRow {
        name: "compare",
        description: "Whether a candidate does more work in the same time than a baseline, with a 95 % interval, and which phases \
                      differ",
        parameters: &[
            ("baseline", "string", "a run or recording, before the change"),
            ("candidate", "string", "a run or recording, after the change"),
        ],
        is_about_a_run: false,
        tool: run_tools::compare,
    },
    ToolRow {
        name: "why_died",
        description: "What ended a run: out of memory, an exception with its line, a signal, a full disk",
        parameters: &[],
        is_about_a_run: true,
        tool: run_tools::why_died,
    },
    ToolRow {
        name: "figures",
        description: "Every number of a run under its name, with unit and interval, as `gnntop check` limits them",
        parameters: &[("contains", "string", "only figures with this in their names, such as `gap` or `energy`")],
        is_about_a_run: true,
        tool: run_tools::figures,
    },
    ToolRow {
        name: "wait_for",
        description: "Waits until a live run has this many steps, or has ended; 60 seconds at most",
        parameters: &[
            ("steps", "integer", "wait for this many steps in all; without it, for the end"),
            ("seconds", "integer", "wait no longer than this; 60 by default and at most"),
        ],
        is_about_a_run: true,
        tool: wait_for::wait_for,
    },
];

/// The result of `tools/list`.
pub(super) fn list() -> Value {
    let tools: Vec<Value> = TOOLS.iter().map(describe).collect();
    json!({ "tools": tools })
}

fn describe(row: &ToolRow) -> Value {
    let properties: serde_json::Map<String, Value> = row
        .all_parameters()
        .map(|(name, kind, meaning)| ((*name).to_owned(), json!({ "type": kind, "description": meaning })))
        .collect();
    let required: &[&str] = if row.name == "compare" { &["baseline", "candidate"] } else { &[] };
    json!({
        "name": row.name,
        "description": row.description,
        "inputSchema": {
            "type": "object", "properties": properties, "required": required, "additionalProperties": false
        },
        "annotations": { "readOnlyHint": true, "openWorldHint": false },
    })
}

/// The result of `tools/call`. A run that cannot be read is a result that says so, which an agent can act on.
pub(super) fn call(parameters: &Value) -> Result<Value, Refusal> {
    let name = parameters.get("name").and_then(Value::as_str).unwrap_or_default();
    let names = || TOOLS.map(|row| row.name).join(", ");
    let known = TOOLS.iter().find(|row| row.name == name);
    let row = known.ok_or_else(|| Refusal::parameters(format!("there is no tool {name:?}; there are {}", names())))?;
    let empty = json!({});
    let given = parameters.get("arguments").filter(|given| !given.is_null()).unwrap_or(&empty);
    check_names(row, given)?;
    let arguments = Arguments(given);
    let is_detailed = arguments.is_set("detail")?;
    let (answer, is_error) = match (row.tool)(arguments) {
        Ok(answer) => (answer, false),
        Err(ToolError::Call(refusal)) => return Err(refusal),
        Err(ToolError::Run(error)) => (failed(&error), true),
    };
    let answer = answer.bounded(is_detailed);
    Ok(json!({
        "content": [{ "type": "text", "text": answer.to_string() }],
        "structuredContent": answer,
        "isError": is_error,
    }))
}

/// A misspelt argument would be ignored, and the answer be about something else.
fn check_names(row: &ToolRow, given: &Value) -> Result<(), Refusal> {
    let given = given.as_object().ok_or_else(|| Refusal::parameters("`arguments` must be an object"))?;
    let known: Vec<&str> = row.all_parameters().map(|(name, ..)| *name).collect();
    match given.keys().find(|name| !known.contains(&name.as_str())) {
        Some(name) => {
            let known = known.join(", ");
            Err(Refusal::parameters(format!("{} has no argument {name:?}; it has {known}", row.name)))
        }
        None => Ok(()),
    }
}

fn failed(error: &anyhow::Error) -> Answer {
    Answer {
        summary: format!("{error:#}"),
        next_step: "ask list_runs which runs there are".to_owned(),
        ..Answer::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_tool_has_a_schema_and_a_name_of_its_own() {
        let listed = list();
        let tools = listed["tools"].as_array().unwrap();
        assert_eq!(tools.len(), TOOLS.len());
        for (at, tool) in tools.iter().enumerate() {
            assert_eq!(tool["inputSchema"]["type"], "object");
            assert!(tools[..at].iter().all(|other| other["name"] != tool["name"]), "{tool}");
        }
    }

    #[test]
    fn wrong_calls_are_refused_with_what_there_is() {
        for (call, words) in [
            (json!({ "name": "diagnos" }), "diagnose"),
            (json!({ "name": "diagnose", "arguments": { "rnu": "a" } }), "it has run, rank"),
            (json!({ "name": "diagnose", "arguments": { "run": 7 } }), "`run` must be a text"),
            (json!({ "name": "steps", "arguments": { "count": -1 } }), "`count` must be a whole number"),
            (json!({ "name": "steps", "arguments": [] }), "`arguments` must be an object"),
            (json!({ "name": "compare", "arguments": { "candidate": "a" } }), "`baseline` is missing"),
        ] {
            let refused = super::call(&call).unwrap_err();
            assert!(refused.message.contains(words), "{call}: {}", refused.message);
        }
    }
}
