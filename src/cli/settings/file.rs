//! The settings file: TOML, in which every mistake is reported with its line.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use serde::Deserialize;
use toml::Spanned;

use super::error::SettingsError;
use super::layer::Layer;
use super::values::{BACKGROUNDS, Behind, DEPTHS, Depth, palettes, views};
use crate::app::keys::Key;
use crate::app::{KeyMap, Override, Palette, View};
use crate::cli::assumptions::EnergyArguments;

/// A longer file is not a settings file.
const LONGEST: u64 = 1 << 20;

/// The file as it is written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    theme: Option<Spanned<String>>,
    colors: Option<Spanned<String>>,
    background: Option<Spanned<String>>,
    view: Option<Spanned<String>>,
    ascii: Option<bool>,
    mouse: Option<bool>,
    #[serde(default)]
    keys: BTreeMap<Spanned<String>, Names>,
    energy: Option<Spanned<EnergyArguments>>,
}

/// Names of keys.
#[derive(Deserialize)]
#[serde(untagged, expecting = "give a key or a list of keys")]
enum Names {
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
    let opened = File::open(path).and_then(|file| file.take(LONGEST).read_to_string(&mut text));
    match opened {
        Err(error) if error.kind() == io::ErrorKind::NotFound && !must_exist => return Ok(FileSettings::default()),
        Err(source) => return Err(SettingsError::Read { path: path.to_owned(), source }),
        Ok(_) => (),
    }
    understand_lines(&text, path)
}

/// What is wrong with the text of a settings file, as `gnntop` reports it; `None` if nothing is.
pub fn settings_mistake(text: &str) -> Option<String> {
    let path = Path::new("config.toml");
    let keys = match understand_lines(text, path) {
        Ok(file) => KeyMap::with(&file.keys),
        Err(error) => return Some(error.to_string()),
    };
    keys.err().map(|why| SettingsError::Keys { path: path.to_owned(), why }.to_string())
}

/// Parses the text of the file at `path`, or says which line is wrong.
fn understand_lines(text: &str, path: &Path) -> Result<FileSettings, SettingsError> {
    understand(text).map_err(|Mistake { at, what }| {
        let line = 1 + text.bytes().take(at).filter(|byte| *byte == b'\n').count();
        SettingsError::Line { path: path.to_owned(), line, what }
    })
}

/// A mistake at this byte.
struct Mistake {
    at: usize,
    what: String,
}

fn understand(text: &str) -> Result<FileSettings, Mistake> {
    let written: Written = toml::from_str(text).map_err(|error| Mistake {
        at: error.span().map_or(0, |span| span.start),
        what: error.message().replace('\n', "; "),
    })?;
    let layer = Layer {
        theme: one_of("theme", written.theme, Palette::named, &palettes())?,
        colors: one_of("colors", written.colors, Depth::named, &DEPTHS)?,
        background: one_of("background", written.background, Behind::named, &BACKGROUNDS)?,
        view: one_of("view", written.view, View::named, &views())?,
        ascii: written.ascii,
        mouse: written.mouse,
    };
    let keys = written.keys.into_iter().map(|(action, names)| keys_of(&action, names));
    let keys = keys.collect::<Result<_, _>>()?;
    let Some(energy) = written.energy else { return Ok(FileSettings { layer, keys, ..FileSettings::default() }) };
    energy.get_ref().assumptions().map_err(|what| Mistake { at: energy.span().start, what })?;
    Ok(FileSettings { layer, keys, energy: energy.into_inner() })
}

fn one_of<T>(
    setting: &str,
    value: Option<Spanned<String>>,
    by_name: impl Fn(&str) -> Option<T>,
    names: &[&str],
) -> Result<Option<T>, Mistake> {
    let Some(value) = value else { return Ok(None) };
    let refused = || Mistake {
        at: value.span().start,
        what: format!("{setting} is {}: give one of {}", value.get_ref(), names.join(", ")),
    };
    by_name(value.get_ref()).map(Some).ok_or_else(refused)
}

/// The keys of an action, each checked separately so that a mistake has its line.
fn keys_of(action: &Spanned<String>, names: Names) -> Result<Override, Mistake> {
    let mistake = |what| Mistake { at: action.span().start, what };
    let names = match names {
        Names::One(name) => vec![name],
        Names::Many(names) => names,
    };
    if names.is_empty() {
        return Err(mistake(format!("{} needs at least one key", action.get_ref())));
    }
    let key = |name: &String| Key::named(name).ok_or_else(|| mistake(format!("there is no key {name}")));
    let keys: Vec<Key> = names.iter().map(key).collect::<Result<_, _>>()?;
    let keys = (action.get_ref().clone(), keys);
    KeyMap::with(std::slice::from_ref(&keys)).map_err(|why| mistake(why.to_string()))?;
    Ok(keys)
}
