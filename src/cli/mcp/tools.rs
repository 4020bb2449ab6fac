//! The tools: what each is called, what it takes, and what answers it. `job_tools` are there with `--allow-run` alone.

use serde_json::{Value, json};

use super::answer::Answer;
use super::jobs::Jobs;
use super::parameters::Arguments;
use super::refusal::{Refusal, ToolError};
use super::{job_tools, list_runs, run_tools, wait_for};

/// What answers a call.
enum Tool {
    /// It changes nothing.
    Reads(fn(Arguments<'_>) -> Result<Answer, ToolError>),
    /// It starts programs.
    Runs(fn(Arguments<'_>, &mut Jobs) -> Result<Answer, ToolError>),
}

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
static TOOLS: [ToolRow; 12] = [
    ToolRow {
        name: "list_runs",
        description: "Training runs on this machine, live ones first, with state and what they died of",
        parameters: &[("live", "boolean", "only live runs"), ("limit", "integer", "most runs listed; 20 by default")],
        is_about_a_run: false,
        tool: Tool::Reads(list_runs::list_runs),
    },
    ToolRow {
        name: "diagnose",
        description: "What bounds a run and why it is slow: verdict, phases with shares and percentiles, findings with evidence, \
                      lines of code and advice, and what could not be checked. Begin here",
        parameters: &[("skip_steps", "integer", "steps at the start to leave out, as warm-up")],
        is_about_a_run: true,
        tool: Tool::Reads(run_tools::diagnose),
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
        tool: Tool::Reads(run_tools::steps),
    },
    ToolRow {
        name: "percentiles",
        description: "p50, p90 and p99 with 95 % intervals of steps, periods, gaps and phases, in nanoseconds",
        parameters: &[("of", "string", "one phase, or step, period, gap; all by default")],
        is_about_a_run: true,
        tool: Tool::Reads(run_tools::percentiles),
    },
    ToolRow {
        name: "stacks",
        description: "Where in the Python code the time goes, by file and line: stacks at stalls, and sampled ones of \
                      `gnntop run --stacks 20`",
        parameters: &[],
        is_about_a_run: true,
        tool: Tool::Reads(run_tools::stacks),
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
        tool: Tool::Reads(run_tools::compare),
    },
    ToolRow {
        name: "why_died",
        description: "What ended a run: out of memory, an exception with its line, a signal, a full disk",
        parameters: &[],
        is_about_a_run: true,
        tool: Tool::Reads(run_tools::why_died),
    },
    ToolRow {
        name: "figures",
        description: "Every number of a run under its name, with unit and interval, as `gnntop check` limits them",
        parameters: &[("contains", "string", "only figures with this in their names, such as `gap` or `energy`")],
        is_about_a_run: true,
        tool: Tool::Reads(run_tools::figures),
    },
    ToolRow {
        name: "wait_for",
        description: "Waits until a live run has this many steps, or has ended; 50 seconds at most",
        parameters: &[
            ("steps", "integer", "wait for this many steps in all; without it, for the end"),
            ("seconds", "integer", "wait no longer than this; 50 by default and at most"),
            RUN[0],
        ],
        is_about_a_run: false,
        tool: Tool::Reads(wait_for::wait_for),
    },
    ToolRow {
        name: "profile",
        description: "Starts a program, watches some seconds of its steps, ends it, and diagnoses it",
        parameters: &[
            ("command", "array", "the program and its arguments, such as [\"python\", \"train.py\"]"),
            ("seconds", "integer", "ends it this long after its first step; 20 by default"),
            ("output", "string", "the recording, if it is to be kept when this server ends"),
            DIRECTORY,
            JOB,
            STOP,
        ],
        is_about_a_run: false,
        tool: Tool::Runs(job_tools::profile),
    },
    ToolRow {
        name: "prove",
        description: "Whether a change makes a program faster, by 6 to 24 pairs of whole runs in turn, with a 95 % interval; losses are \
                      compared",
        parameters: &[
            ("baseline", "string", "the program as it is, for the shell: some hundred steps, fixed seeds"),
            ("candidate", "string", "the program with the change"),
            ("pairs", "integer", "the most pairs: 6, 12 or 24; 12 by default"),
            ("within_percent", "integer", "a smaller difference is none; 2 by default"),
            DIRECTORY,
            JOB,
            STOP,
        ],
        is_about_a_run: false,
        tool: Tool::Runs(job_tools::prove),
    },
    ToolRow {
        name: "trace",
        description: "The operators and kernels of the next steps of a live PyTorch run, which these steps take longer for",
        parameters: &[
            RUN[0],
            ("steps", "integer", "how many; 5 by default"),
            ("output", "string", "the trace in Chrome's format, if it is to be kept when this server ends"),
            JOB,
            STOP,
        ],
        is_about_a_run: false,
        tool: Tool::Runs(job_tools::trace),
    },
];

const DIRECTORY: Parameter = ("directory", "string", "where it is started");
const JOB: Parameter = ("job", "string", "a job that an earlier call started: keep waiting for it");
const STOP: Parameter = ("stop", "boolean", "with `job`: ends it now");

/// The tools that there are, with those that start programs or without.
fn tools(may_run: bool) -> impl Iterator<Item = &'static ToolRow> {
    TOOLS.iter().filter(move |row| may_run || matches!(row.tool, Tool::Reads(_)))
}

/// The result of `tools/list`.
pub(super) fn list(may_run: bool) -> Value {
    let tools: Vec<Value> = tools(may_run).map(describe).collect();
    json!({ "tools": tools })
}

fn describe(row: &ToolRow) -> Value {
    let properties: serde_json::Map<String, Value> =
        row.all_parameters().map(|(name, kind, meaning)| ((*name).to_owned(), schema(kind, meaning))).collect();
    let required: &[&str] = if row.name == "compare" { &["baseline", "candidate"] } else { &[] };
    json!({
        "name": row.name,
        "description": row.description,
        "inputSchema": {
            "type": "object", "properties": properties, "required": required, "additionalProperties": false
        },
        "annotations": { "readOnlyHint": matches!(row.tool, Tool::Reads(_)), "openWorldHint": false },
    })
}

fn schema(kind: &str, meaning: &str) -> Value {
    let mut schema = json!({ "type": kind, "description": meaning });
    if kind == "array" {
        schema["items"] = json!({ "type": "string" });
    }
    schema
}

/// The result of `tools/call`. A run that cannot be read is a result that says so, which an agent can act on.
pub(super) fn call(parameters: &Value, jobs: Option<&mut Jobs>) -> Result<Value, Refusal> {
    let row = find(parameters.get("name").and_then(Value::as_str).unwrap_or_default(), jobs.is_some())?;
    let empty = json!({});
    let given = parameters.get("arguments").filter(|given| !given.is_null()).unwrap_or(&empty);
    check_names(row, given)?;
    let arguments = Arguments(given);
    let is_detailed = arguments.is_set("detail")?;
    let answered = match (&row.tool, jobs) {
        (Tool::Reads(tool), _) => tool(arguments),
        (Tool::Runs(tool), Some(jobs)) => tool(arguments, jobs),
        (Tool::Runs(_), None) => return Err(not_allowed(row.name)),
    };
    let (answer, is_error) = match answered {
        Ok(answer) => (answer, false),
        Err(ToolError::Call(refusal)) => return Err(refusal),
        Err(ToolError::Run(error)) => (failed(&error, &row.tool), true),
    };
    let answer = answer.bounded(is_detailed);
    Ok(json!({
        "content": [{ "type": "text", "text": answer.to_string() }],
        "structuredContent": answer,
        "isError": is_error,
    }))
}

fn find(name: &str, may_run: bool) -> Result<&'static ToolRow, Refusal> {
    if let Some(row) = TOOLS.iter().find(|row| row.name == name) {
        return Ok(row);
    }
    let names: Vec<&str> = tools(may_run).map(|row| row.name).collect();
    Err(Refusal::parameters(format!("there is no tool {name:?}; there are {}", names.join(", "))))
}

fn not_allowed(name: &str) -> Refusal {
    Refusal::parameters(format!("{name} starts programs, which `gnntop mcp --allow-run` allows"))
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

fn failed(error: &anyhow::Error, tool: &Tool) -> Answer {
    let next_step = match tool {
        Tool::Reads(_) => "ask list_runs which runs there are",
        Tool::Runs(_) => "mend what the summary says, and call it again",
    };
    Answer { summary: format!("{error:#}"), next_step: next_step.to_owned(), ..Answer::default() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_tool_has_a_schema_and_a_name_of_its_own() {
        assert_eq!(list(false)["tools"].as_array().unwrap().len(), 9);
        let listed = list(true);
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
            (json!({ "name": "profile", "arguments": { "command": ["true"] } }), "--allow-run"),
        ] {
            let refused = super::call(&call, None).unwrap_err();
            assert!(refused.message.contains(words), "{call}: {}", refused.message);
        }
    }
}
