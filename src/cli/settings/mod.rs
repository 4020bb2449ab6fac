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
mod error;
mod file;
mod layer;
mod read;
mod values;

pub(super) use arguments::ScreenArguments;
pub(super) use error::SettingsError;
pub use file::settings_mistake;
pub(super) use read::{Origin, Setting, Settings};
