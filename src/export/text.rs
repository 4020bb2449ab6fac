//! Numbers and texts as JSON has them.

/// Microseconds with the nanoseconds after the point, not rounded by an `f64`.
pub(super) fn micros(ns: u64) -> String {
    format!("{}.{:03}", ns / 1000, ns % 1000)
}

/// A text as a JSON string.
pub(super) fn json(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// A number as JSON, `null` if it is not finite.
pub(super) fn json_number(value: f64) -> String {
    serde_json::Number::from_f64(value).map_or_else(|| "null".to_owned(), |number| number.to_string())
}
