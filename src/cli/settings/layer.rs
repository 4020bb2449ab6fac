//! The settings from one place: the file, the environment or the command line; and why they cannot be used.

use std::io;
use std::path::PathBuf;

use super::arguments::{BACKGROUNDS, BackgroundSetting, DEPTHS, DepthSetting, ScreenArguments, palettes, views};
use crate::app::{KeyMapError, Palette, View};

/// The settings from one place.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Layer {
    pub theme: Option<Palette>,
    pub colors: Option<DepthSetting>,
    pub background: Option<BackgroundSetting>,
    pub view: Option<View>,
    pub ascii: Option<bool>,
    pub mouse: Option<bool>,
}

impl Layer {
    pub(super) fn from_flags(arguments: &ScreenArguments) -> Self {
        let ScreenArguments { theme, colors, background, view, ascii, no_mouse, .. } = arguments;
        Self {
            theme: *theme,
            colors: *colors,
            background: *background,
            view: *view,
            ascii: ascii.then_some(true),
            mouse: no_mouse.then_some(false),
        }
    }

    pub(super) fn from_environment(env: impl Fn(&str) -> Option<String>) -> Result<Self, SettingsError> {
        Ok(Self {
            theme: parse_variable(&env, "GNNTOP_THEME", Palette::from_name, &palettes())?,
            colors: parse_variable(&env, "GNNTOP_COLORS", DepthSetting::from_name, &DEPTHS)?,
            background: parse_variable(&env, "GNNTOP_BACKGROUND", BackgroundSetting::from_name, &BACKGROUNDS)?,
            view: parse_variable(&env, "GNNTOP_VIEW", View::from_name, &views())?,
            ascii: parse_variable(&env, "GNNTOP_ASCII", parse_switch, &["0", "1"])?,
            mouse: parse_variable(&env, "GNNTOP_MOUSE", parse_switch, &["0", "1"])?,
        })
    }
}

fn parse_variable<T>(
    env: impl Fn(&str) -> Option<String>,
    name: &'static str,
    by_name: impl Fn(&str) -> Option<T>,
    expected: &[&str],
) -> Result<Option<T>, SettingsError> {
    let Some(value) = env(name) else { return Ok(None) };
    match by_name(&value) {
        Some(found) => Ok(Some(found)),
        None => Err(SettingsError::Variable { name, value, expected: expected.join(", ") }),
    }
}

fn parse_switch(word: &str) -> Option<bool> {
    match word {
        "1" | "true" | "yes" => Some(true),
        "0" | "false" | "no" => Some(false),
        _ => None,
    }
}

/// Why the settings cannot be used.
#[derive(Debug, thiserror::Error)]
pub(in crate::cli) enum SettingsError {
    /// The file cannot be read.
    #[error("cannot read the settings in {}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// Something in the file is wrong.
    #[error("{}:{line}: {what}", path.display())]
    Line {
        /// The file.
        path: PathBuf,
        /// Where, counted from 1.
        line: usize,
        /// What.
        what: String,
    },
    /// A variable has a value that is not known.
    #[error("{name}={value}: give one of {expected}")]
    Variable {
        /// The variable.
        name: &'static str,
        /// Its value.
        value: String,
        /// What it may be.
        expected: String,
    },
    /// The assumptions about power and electricity are invalid.
    #[error("{0}")]
    Energy(String),
    /// The keys in the file are invalid.
    #[error("{}: {why}", path.display())]
    Keys {
        /// The file.
        path: PathBuf,
        /// Why.
        why: KeyMapError,
    },
}
