//! The flags of the screen and of sensors, and the values of settings by name.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use clap::builder::{PathBufValueParser, PossibleValuesParser, TypedValueParser};

use crate::app::{Background, ColorDepth, Palette, View};
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

/// Where sensors look.
#[derive(Clone, Debug, Default, clap::Args)]
#[command(next_help_heading = "Sensors")]
pub(in crate::cli) struct SensorArguments {
    /// Directory of the processor's energy counters, instead of /sys/class/powercap, for example in a container
    #[arg(long, value_name = "DIR", value_parser = PathBufValueParser::new().try_map(parse_directory))]
    powercap_root: Option<PathBuf>,
}

impl SensorArguments {
    /// Has this process look there.
    pub(in crate::cli) fn apply(&self) {
        if let Some(dir) = &self.powercap_root {
            gnntop_sensors::set_powercap_root(dir.clone());
        }
    }

    /// The variables with which a program that is started looks there, too.
    pub(in crate::cli) fn variables(&self) -> impl Iterator<Item = (&'static str, &PathBuf)> {
        self.powercap_root.iter().map(|dir| (gnntop_sensors::POWERCAP_ROOT, dir))
    }
}

/// The directory as an absolute path: a program that is started may change its own.
fn parse_directory(path: PathBuf) -> Result<PathBuf, String> {
    path.canonicalize().map_err(|error| error.to_string())
}

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
