//! Flags of the commands that read sensors, or that start a program that does.

use std::path::PathBuf;

use clap::builder::PathBufValueParser;
use clap::builder::TypedValueParser;

/// Where sensors look.
#[derive(Clone, Debug, Default, clap::Args)]
#[command(next_help_heading = "Sensors")]
pub(super) struct SensorArguments {
    /// Directory of the processor's energy counters, instead of /sys/class/powercap, for example in a container
    #[arg(long, value_name = "DIR", value_parser = PathBufValueParser::new().try_map(parse_directory))]
    powercap_root: Option<PathBuf>,
}

impl SensorArguments {
    /// Has this process look there.
    pub(super) fn apply(&self) {
        if let Some(dir) = &self.powercap_root {
            gnntop_sensors::set_powercap_root(dir.clone());
        }
    }

    /// The variables with which a program that is started looks there, too.
    pub(super) fn variables(&self) -> impl Iterator<Item = (&'static str, &PathBuf)> {
        self.powercap_root.iter().map(|dir| (gnntop_sensors::POWERCAP_ROOT, dir))
    }
}

/// The directory as an absolute path: a program that is started may change its own.
fn parse_directory(path: PathBuf) -> Result<PathBuf, String> {
    path.canonicalize().map_err(|error| error.to_string())
}
