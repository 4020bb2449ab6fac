//! The settings from one place: the file, the environment or the command line.

use super::arguments::ScreenArguments;
use super::error::SettingsError;
use super::values::{BACKGROUNDS, BackgroundSetting, DEPTHS, DepthSetting, palettes, views};
use crate::app::{Palette, View};

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
