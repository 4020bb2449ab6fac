//! Why a request has no result, or a tool no answer.

use serde_json::Value;

/// Why a request has no result.
#[derive(Debug, PartialEq)]
pub(super) struct Refusal {
    pub(super) code: i32,
    pub(super) message: String,
    pub(super) data: Value,
}

impl Refusal {
    pub(super) const PARSE: i32 = -32700;
    pub(super) const REQUEST: i32 = -32600;
    pub(super) const METHOD: i32 = -32601;
    const PARAMETERS: i32 = -32602;
    pub(super) const VERSION: i32 = -32022;

    pub(super) fn new(code: i32, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), data: Value::Null }
    }

    /// What a request asks for does not exist, or cannot be.
    pub(super) fn parameters(message: impl Into<String>) -> Self {
        Self::new(Self::PARAMETERS, message)
    }
}

/// Why a tool has no answer.
pub(super) enum ToolError {
    /// It was called wrongly.
    Call(Refusal),
    /// What it was asked about is not there, or cannot be read.
    Run(anyhow::Error),
}

impl From<Refusal> for ToolError {
    fn from(refusal: Refusal) -> Self {
        Self::Call(refusal)
    }
}

impl From<anyhow::Error> for ToolError {
    fn from(error: anyhow::Error) -> Self {
        Self::Run(error)
    }
}
