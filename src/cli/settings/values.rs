//! The values of settings, by name.

use std::fmt;

use crate::app::{Background, ColorDepth, Palette, View};

/// Word for "as the environment says".
pub(super) const AUTO: &str = "auto";
/// Names of colour depths.
pub(super) const DEPTHS: [&str; 5] = [AUTO, "truecolor", "256", "16", "none"];
/// Names of backgrounds.
pub(super) const BACKGROUNDS: [&str; 3] = [AUTO, "dark", "light"];

/// How many colours: `None` to look at the environment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::cli) struct DepthSetting(pub Option<ColorDepth>);

/// What background: `None` to look at the environment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::cli) struct BackgroundSetting(pub Option<Background>);

impl DepthSetting {
    pub(super) fn from_name(name: &str) -> Option<Self> {
        if name == AUTO { Some(Self(None)) } else { ColorDepth::from_name(name).map(|depth| Self(Some(depth))) }
    }
}

impl BackgroundSetting {
    pub(super) fn from_name(name: &str) -> Option<Self> {
        if name == AUTO {
            Some(Self(None))
        } else {
            Background::from_name(name).map(|background| Self(Some(background)))
        }
    }
}

impl fmt::Display for DepthSetting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.map_or(AUTO, ColorDepth::name))
    }
}

impl fmt::Display for BackgroundSetting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.map_or(AUTO, Background::name))
    }
}

/// Names of palettes.
pub(super) fn palettes() -> Vec<&'static str> {
    Palette::ALL.map(Palette::name).to_vec()
}

/// Names of views.
pub(super) fn views() -> Vec<&'static str> {
    View::MAIN.map(View::name).to_vec()
}
