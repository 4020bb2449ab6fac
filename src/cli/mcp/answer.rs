//! The form of every answer: one line, data, evidence, limits of what was seen, and what to do next; in a bounded number of bytes.

use serde_json::{Map, Value, json};

/// Bytes of an answer, unless detail is asked for: what an agent reads without losing its place.
const USUAL_BYTES: usize = 8 << 10;
/// Bytes of an answer with detail.
const DETAILED_BYTES: usize = 64 << 10;
/// No text is cut below this many characters.
const SHORTEST_TEXT: usize = 80;

/// What a tool found.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Answer {
    /// One line for people.
    pub(super) summary: String,
    /// Names have their units.
    pub(super) data: Value,
    /// What the summary rests on.
    pub(super) evidence: Vec<String>,
    /// What was not seen, or is left out.
    pub(super) limits: Vec<String>,
    /// What to do or ask next.
    pub(super) next_step: String,
}

impl Answer {
    /// The answer as an object of at most 8 KiB, or 64 KiB with detail: the largest lists are cut first, and `limits` says which.
    pub(super) fn bounded(self, is_detailed: bool) -> Value {
        let most = if is_detailed { DETAILED_BYTES } else { USUAL_BYTES };
        let Self { summary, data, evidence, limits, next_step } = self;
        let mut whole =
            json!({ "summary": summary, "data": data, "evidence": evidence, "limits": limits, "next_step": next_step });
        let mut cut: Map<String, Value> = Map::new();
        while size(&whole) + size(&Value::Object(cut.clone())) > most {
            let Some((path, _)) = largest(&whole, "") else { break };
            let Some(part) = whole.pointer_mut(&path) else { break };
            let before = halve(part);
            cut.entry(path).or_insert_with(|| json!(before));
        }
        if !cut.is_empty() {
            let paths: Vec<String> = cut.iter().map(|(path, before)| format!("{path} of {before}")).collect();
            let hint = if is_detailed { "" } else { "; ask with detail for more" };
            if let Some(limits) = whole["limits"].as_array_mut() {
                limits.push(json!(format!("shortened: {}{hint}", paths.join(", "))));
            }
        }
        whole
    }
}

fn size(value: &Value) -> usize {
    value.to_string().len()
}

/// The list or text that takes the most bytes itself and can be cut: its path, and its size.
fn largest(value: &Value, path: &str) -> Option<(String, usize)> {
    let key = |key: &str| format!("{path}/{}", key.replace('~', "~0").replace('/', "~1"));
    let below = match value {
        Value::Object(map) => map.iter().filter_map(|(name, part)| largest(part, &key(name))).max_by_key(|part| part.1),
        Value::Array(list) => {
            let inner = list.iter().enumerate().filter_map(|(at, part)| largest(part, &key(&at.to_string())));
            inner.max_by_key(|part| part.1)
        }
        _ => None,
    };
    let own = match value {
        Value::Array(list) if list.len() > 1 => Some((path.to_owned(), size(value))),
        Value::String(text) if text.chars().count() > SHORTEST_TEXT => Some((path.to_owned(), size(value))),
        _ => None,
    };
    // A long list of small things is cut itself; a thing in it that takes more than half of it, first.
    match (own, below) {
        (Some(own), Some(below)) => Some(if below.1 * 2 > own.1 { below } else { own }),
        (own, below) => own.or(below),
    }
}

/// Cuts a list or a text to half; returns its length before.
fn halve(part: &mut Value) -> usize {
    match part {
        Value::Array(list) => {
            let before = list.len();
            list.truncate(before / 2);
            before
        }
        Value::String(text) => {
            let before = text.chars().count();
            let end = text.char_indices().nth((before / 2).max(SHORTEST_TEXT - 1)).map_or(text.len(), |(at, _)| at);
            text.truncate(end);
            text.push('…');
            before
        }
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_answer_is_whole() {
        let answer = Answer { summary: "all well".to_owned(), data: json!({ "steps": 3 }), ..Answer::default() };
        let value = answer.bounded(false);
        assert_eq!(value["data"]["steps"], 3);
        assert_eq!(value["limits"], json!([]));
    }

    #[test]
    fn long_answer_is_cut_where_it_is_long_and_says_so() {
        let rows: Vec<Value> = (0..5000).map(|at| json!({ "step": at })).collect();
        for (is_detailed, most) in [(false, USUAL_BYTES), (true, DETAILED_BYTES)] {
            let data = json!({ "rows": rows, "command": "x".repeat(300_000), "few": [1, 2, 3] });
            let answer = Answer { summary: "long".to_owned(), data, ..Answer::default() }.bounded(is_detailed);
            assert!(size(&answer) < most + 200, "{} bytes", size(&answer));
            assert_eq!(answer["data"]["few"], json!([1, 2, 3]));
            assert!(answer["data"]["rows"].as_array().unwrap().len() > 10, "{}", answer["data"]["rows"]);
            let limits = answer["limits"][0].as_str().unwrap();
            assert!(limits.contains("/data/rows of 5000") && limits.contains("/data/command of 300000"), "{limits}");
        }
    }
}
