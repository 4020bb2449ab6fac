//! The settings file: TOML, in which every mistake is reported with its line.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::Path;

use serde::Deserialize;
use toml::Spanned;

use super::arguments::{BACKGROUNDS, BackgroundSetting, DEPTHS, DepthSetting, palettes, views};
use super::layer::{Layer, SettingsError};
use crate::app::keys::Key;
use crate::app::{KeyMap, Override, Palette, View};
use crate::cli::assumptions::EnergyArguments;
use crate::platform::files::is_pipe;

/// A longer file is not a settings file.
const LONGEST: u64 = 1 << 20;

/// The file as it is written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SettingsToml {
    theme: Option<Spanned<String>>,
    colors: Option<Spanned<String>>,
    background: Option<Spanned<String>>,
    view: Option<Spanned<String>>,
    ascii: Option<bool>,
    mouse: Option<bool>,
    #[serde(default)]
    keys: BTreeMap<Spanned<String>, KeyNames>,
    energy: Option<Spanned<EnergyArguments>>,
}

/// Names of keys.
#[derive(Deserialize)]
#[serde(untagged, expecting = "give a key or a list of keys")]
enum KeyNames {
    One(String),
    Many(Vec<String>),
}

/// What the file says.
#[derive(Default)]
pub(super) struct FileSettings {
    pub layer: Layer,
    pub keys: Vec<Override>,
    pub energy: EnergyArguments,
}

/// Reads the file; without one, nothing is set, unless it must exist.
pub(super) fn read(path: &Path, must_exist: bool) -> Result<FileSettings, SettingsError> {
    let mut text = String::new();
    // The person who names a pipe has somebody write into it; in another one there may never be anything.
    let is_pipe = !must_exist && fs::metadata(path).is_ok_and(|found| is_pipe(found.file_type()));
    let file = if is_pipe { Err(io::Error::other("it is a pipe")) } else { File::open(path) };
    let opened = file.and_then(|file| file.take(LONGEST).read_to_string(&mut text));
    match opened {
        Err(error) if error.kind() == io::ErrorKind::NotFound && !must_exist => return Ok(FileSettings::default()),
        Err(source) => return Err(SettingsError::Read { path: path.to_owned(), source }),
        Ok(_) => (),
    }
    parse_text(&text, path)
}

/// What is wrong with the text of a settings file, as `gnntop` reports it; `None` if nothing is.
pub fn settings_mistake(text: &str) -> Option<String> {
    let path = Path::new("config.toml");
    let keys = match parse_text(text, path) {
        Ok(file) => KeyMap::with_overrides(&file.keys),
        Err(error) => return Some(error.to_string()),
    };
    keys.err().map(|why| SettingsError::Keys { path: path.to_owned(), why }.to_string())
}

/// Parses the text of the file at `path`, or says which line is wrong.
fn parse_text(text: &str, path: &Path) -> Result<FileSettings, SettingsError> {
    parse(text).map_err(|SettingsMistake { at, what }| {
        let line = 1 + text.bytes().take(at).filter(|byte| *byte == b'\n').count();
        SettingsError::Line { path: path.to_owned(), line, what }
    })
}

/// A mistake at this byte.
struct SettingsMistake {
    at: usize,
    what: String,
}

fn parse(text: &str) -> Result<FileSettings, SettingsMistake> {
    let written: SettingsToml = toml::from_str(text).map_err(|error| SettingsMistake {
        at: error.span().map_or(0, |span| span.start),
        what: error.message().replace('\n', "; "),
    })?;
    let layer = Layer {
        theme: parse_name("theme", written.theme, Palette::from_name, &palettes())?,
        colors: parse_name("colors", written.colors, DepthSetting::from_name, &DEPTHS)?,
        background: parse_name("background", written.background, BackgroundSetting::from_name, &BACKGROUNDS)?,
        view: parse_name("view", written.view, View::from_name, &views())?,
        ascii: written.ascii,
        mouse: written.mouse,
    };
    let keys = written.keys.into_iter().map(|(action, names)| parse_keys(&action, names));
    let keys = keys.collect::<Result<_, _>>()?;
    let Some(energy) = written.energy else { return Ok(FileSettings { layer, keys, ..FileSettings::default() }) };
    energy.get_ref().assumptions().map_err(|what| SettingsMistake { at: energy.span().start, what })?;
    Ok(FileSettings { layer, keys, energy: energy.into_inner() })
}

fn parse_name<T>(
    setting: &str,
    value: Option<Spanned<String>>,
    by_name: impl Fn(&str) -> Option<T>,
    names: &[&str],
) -> Result<Option<T>, SettingsMistake> {
    let Some(value) = value else { return Ok(None) };
    let refused = || SettingsMistake {
        at: value.span().start,
        what: format!("{setting} is {}: give one of {}", value.get_ref(), names.join(", ")),
    };
    by_name(value.get_ref()).map(Some).ok_or_else(refused)
}

/// The keys of an action, each checked separately so that a mistake has its line.
fn parse_keys(action: &Spanned<String>, names: KeyNames) -> Result<Override, SettingsMistake> {
    let mistake = |what| SettingsMistake { at: action.span().start, what };
    let names = match names {
        KeyNames::One(name) => vec![name],
        KeyNames::Many(names) => names,
    };
    if names.is_empty() {
        return Err(mistake(format!("{} needs at least one key", action.get_ref())));
    }
    let key = |name: &String| Key::from_name(name).ok_or_else(|| mistake(format!("there is no key {name}")));
    let keys: Vec<Key> = names.iter().map(key).collect::<Result<_, _>>()?;
    let keys = (action.get_ref().clone(), keys);
    KeyMap::with_overrides(std::slice::from_ref(&keys)).map_err(|why| mistake(why.to_string()))?;
    Ok(keys)
}
