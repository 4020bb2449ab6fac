//! The flags of the screen.

use std::path::PathBuf;
use std::time::Duration;

use clap::builder::{PossibleValuesParser, TypedValueParser};

use super::values::{BACKGROUNDS, BackgroundSetting, DEPTHS, DepthSetting, palettes, views};
use crate::app::{Palette, View};
use crate::cli::assumptions::EnergyArguments;
use crate::cli::quantities;

/// Shortest time between two lines: no one reads faster.
const SHORTEST_INTERVAL: Duration = Duration::from_millis(100);

/// Flags of every command that shows a screen.
#[derive(Clone, Debug, Default, clap::Args)]
#[command(next_help_heading = "Screen")]
pub(in crate::cli) struct ScreenArguments {
    /// Palette; the key `t` switches to the next one
    #[arg(long, value_name = "NAME", value_parser = named_value_parser(palettes(), Palette::from_name))]
    pub(super) theme: Option<Palette>,
    /// Number of colours that the terminal supports
    #[arg(long, value_name = "DEPTH", value_parser = named_value_parser(DEPTHS.to_vec(), DepthSetting::from_name))]
    pub(super) colors: Option<DepthSetting>,
    /// Background of the terminal
    #[arg(long, value_parser = named_value_parser(BACKGROUNDS.to_vec(), BackgroundSetting::from_name))]
    pub(super) background: Option<BackgroundSetting>,
    /// First view
    #[arg(long, value_name = "NAME", value_parser = named_value_parser(views(), View::from_name))]
    pub(super) view: Option<View>,
    /// Use only ASCII characters
    #[arg(long)]
    pub(super) ascii: bool,
    /// Leave the mouse to the terminal
    #[arg(long)]
    pub(super) no_mouse: bool,
    /// Print lines instead of a screen, one per interval
    #[arg(long)]
    pub(super) plain: bool,
    /// Time between two lines, such as 500ms or 1m
    #[arg(long, value_name = "TIME", value_parser = parse_interval)]
    pub(super) interval: Option<Duration>,
    /// Settings file, instead of the default one
    #[arg(long, value_name = "FILE")]
    pub(super) config: Option<PathBuf>,
    #[command(flatten)]
    pub(super) energy: EnergyArguments,
}

#[cfg(test)]
impl ScreenArguments {
    /// Nothing but a settings file.
    pub(in crate::cli) fn from_file(path: &std::path::Path) -> Self {
        Self { config: Some(path.to_owned()), ..Self::default() }
    }
}

/// A value out of a list of names, for clap.
fn named_value_parser<T: Clone + Send + Sync + 'static>(
    names: Vec<&'static str>,
    by_name: fn(&str) -> Option<T>,
) -> impl TypedValueParser<Value = T> {
    PossibleValuesParser::new(names).try_map(move |name| by_name(&name).ok_or("is not one of the values"))
}

/// Reads the time between two lines.
fn parse_interval(text: &str) -> Result<Duration, String> {
    let interval = quantities::parse_duration(text)?;
    if interval < SHORTEST_INTERVAL { Err("give at least 100ms".to_owned()) } else { Ok(interval) }
}
