//! The settings from one place: the file, the environment or the command line.

use super::arguments::ScreenArguments;
use super::error::SettingsError;
use super::values::{BACKGROUNDS, Behind, DEPTHS, Depth, palettes, views};
use crate::app::{Palette, View};

/// The settings from one place.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Layer {
    pub theme: Option<Palette>,
    pub colors: Option<Depth>,
    pub background: Option<Behind>,
    pub view: Option<View>,
    pub ascii: Option<bool>,
    pub mouse: Option<bool>,
}

impl Layer {
    pub(super) fn of_flags(arguments: &ScreenArguments) -> Self {
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

    pub(super) fn of_environment(env: impl Fn(&str) -> Option<String>) -> Result<Self, SettingsError> {
        Ok(Self {
            theme: variable(&env, "GNNTOP_THEME", Palette::named, &palettes())?,
            colors: variable(&env, "GNNTOP_COLORS", Depth::named, &DEPTHS)?,
            background: variable(&env, "GNNTOP_BACKGROUND", Behind::named, &BACKGROUNDS)?,
            view: variable(&env, "GNNTOP_VIEW", View::named, &views())?,
            ascii: variable(&env, "GNNTOP_ASCII", switch, &["0", "1"])?,
            mouse: variable(&env, "GNNTOP_MOUSE", switch, &["0", "1"])?,
        })
    }
}

fn variable<T>(
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

fn switch(word: &str) -> Option<bool> {
    match word {
        "1" | "true" | "yes" => Some(true),
        "0" | "false" | "no" => Some(false),
        _ => None,
    }
}
