//! Settings of the screen: from a flag, else the environment, else the settings file, else the default.
//!
//! ```toml
//! theme = "colour-blind"
//! background = "light"
//! view = "steps"
//!
//! [keys]
//! freeze = "f"
//!
//! [energy]
//! region = "CA-QC"
//! tdp = 205
//! ```

mod arguments;
mod file;
mod layer;
mod read;

pub(super) use arguments::{ScreenArguments, SensorArguments};
pub use file::settings_mistake;
pub(super) use layer::SettingsError;
pub(super) use read::{Origin, Setting, Settings};
