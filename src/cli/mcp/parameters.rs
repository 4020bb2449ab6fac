//! What a client asked with: arguments of a tool, read by name and kind.

use serde_json::Value;

use super::refusal::Refusal;

/// The arguments of a call.
#[derive(Clone, Copy)]
pub(super) struct Arguments<'a>(pub(super) &'a Value);

impl<'a> Arguments<'a> {
    /// A text.
    pub(super) fn text(self, name: &str) -> Result<Option<&'a str>, Refusal> {
        self.known(name, "a text", Value::as_str)
    }

    /// A whole number from 0.
    pub(super) fn number(self, name: &str) -> Result<Option<u64>, Refusal> {
        self.known(name, "a whole number", Value::as_u64)
    }

    /// Whether something is wanted; not, where nothing is said.
    pub(super) fn is_set(self, name: &str) -> Result<bool, Refusal> {
        Ok(self.known(name, "true or false", Value::as_bool)?.unwrap_or(false))
    }

    /// A list of texts, of which there must be at least one.
    pub(super) fn texts(self, name: &str) -> Result<Option<Vec<String>>, Refusal> {
        let read = |value: &Value| {
            let words: Option<Vec<String>> =
                value.as_array()?.iter().map(|word| word.as_str().map(str::to_owned)).collect();
            words.filter(|words| !words.is_empty())
        };
        self.known(name, "a list of at least one text", read)
    }

    fn known<T>(self, name: &str, kind: &str, read: impl Fn(&'a Value) -> Option<T>) -> Result<Option<T>, Refusal> {
        match self.0.get(name) {
            None | Some(Value::Null) => Ok(None),
            Some(value) => read(value).map(Some).ok_or_else(|| Refusal::parameters(format!("`{name}` must be {kind}"))),
        }
    }
}
