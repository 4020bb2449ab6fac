//! Mistakes in a study's file, each with its place.

use std::collections::BTreeSet;

use thiserror::Error;
use toml::Spanned;

/// A study's file cannot be understood.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("line {line}: {what}")]
pub struct FileError {
    /// The line, from 1.
    pub line: usize,
    /// What is wrong and what to write instead.
    pub what: String,
}

/// Something wrong at this byte.
pub(super) struct FileMistake {
    pub at: usize,
    pub what: String,
}

impl FileMistake {
    pub fn at<T>(place: &Spanned<T>, what: impl Into<String>) -> Self {
        Self { at: place.span().start, what: what.into() }
    }
}

pub(super) fn unknown_setting(name: &str, known: &BTreeSet<&str>) -> String {
    let known: Vec<&str> = known.iter().copied().collect();
    format!("there is no setting {name}; settings are: {}", known.join("; "))
}
