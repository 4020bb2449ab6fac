//! How a person wants the screen to be: flag, else environment, else settings file, else default.
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

mod file;

use std::env;
use std::fmt;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

use clap::builder::{PossibleValuesParser, TypedValueParser};

use super::assumptions::EnergyArguments;
use super::quantities;
use crate::app::{Background, ColorDepth, KeyMap, KeyMapError, Palette, Preferences, View};
use crate::viewer::ScreenOptions;
use gnntop_analysis::energy::Assumptions;

/// Word for what the environment decides.
const AUTO: &str = "auto";
/// Time between two lines, where none is given.
const LINE_INTERVAL: Duration = Duration::from_secs(2);
/// Shortest time between two lines: nobody reads faster.
const SHORTEST_INTERVAL: Duration = Duration::from_millis(100);
/// Names of colour depths.
const DEPTHS: [&str; 5] = [AUTO, "truecolor", "256", "16", "none"];
/// Names of backgrounds.
const BACKGROUNDS: [&str; 3] = [AUTO, "dark", "light"];

/// Flags of every command that shows a screen.
#[derive(Clone, Debug, Default, clap::Args)]
#[command(next_help_heading = "Screen")]
pub(super) struct ScreenArguments {
    /// Colours; the key `t` goes through them
    #[arg(long, value_name = "NAME", value_parser = named(palettes(), Palette::named))]
    theme: Option<Palette>,
    /// How many colours the terminal has
    #[arg(long, value_name = "DEPTH", value_parser = named(DEPTHS.to_vec(), Depth::named))]
    colors: Option<Depth>,
    /// What lies behind the text
    #[arg(long, value_parser = named(BACKGROUNDS.to_vec(), Behind::named))]
    background: Option<Behind>,
    /// The view to begin with
    #[arg(long, value_name = "NAME", value_parser = named(views(), View::named))]
    view: Option<View>,
    /// Draw ASCII only
    #[arg(long)]
    ascii: bool,
    /// Leave the mouse to the terminal
    #[arg(long)]
    no_mouse: bool,
    /// Lines instead of a screen, one an interval
    #[arg(long)]
    plain: bool,
    /// Time between two lines, such as 500ms or 1m
    #[arg(long, value_name = "TIME", value_parser = interval)]
    interval: Option<Duration>,
    /// Settings file, in the place of the usual one
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    #[command(flatten)]
    energy: EnergyArguments,
}

#[cfg(test)]
impl ScreenArguments {
    /// Nothing but a settings file.
    pub(super) fn of_file(path: &std::path::Path) -> Self {
        Self { config: Some(path.to_owned()), ..Self::default() }
    }
}

/// How many colours: `None` to look at the environment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Depth(pub Option<ColorDepth>);

/// What background: `None` to look at the environment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Behind(pub Option<Background>);

impl Depth {
    fn named(name: &str) -> Option<Self> {
        if name == AUTO { Some(Self(None)) } else { ColorDepth::named(name).map(|depth| Self(Some(depth))) }
    }
}

impl Behind {
    fn named(name: &str) -> Option<Self> {
        if name == AUTO { Some(Self(None)) } else { Background::named(name).map(|background| Self(Some(background))) }
    }
}

impl fmt::Display for Depth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.map_or(AUTO, ColorDepth::name))
    }
}

impl fmt::Display for Behind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.map_or(AUTO, Background::name))
    }
}

/// A value out of a list of names, for clap.
fn named<T: Clone + Send + Sync + 'static>(
    names: Vec<&'static str>,
    by_name: fn(&str) -> Option<T>,
) -> impl TypedValueParser<Value = T> {
    PossibleValuesParser::new(names).try_map(move |name| by_name(&name).ok_or("has no such value"))
}

/// Reads the time between two lines.
fn interval(text: &str) -> Result<Duration, String> {
    let interval = quantities::duration(text)?;
    if interval < SHORTEST_INTERVAL { Err("give at least 100ms".to_owned()) } else { Ok(interval) }
}

fn palettes() -> Vec<&'static str> {
    Palette::ALL.map(Palette::name).to_vec()
}

fn views() -> Vec<&'static str> {
    View::MAIN.map(View::name).to_vec()
}

/// Why the settings cannot be used.
#[derive(Debug, thiserror::Error)]
pub(super) enum SettingsError {
    /// The file cannot be read.
    #[error("cannot read the settings in {}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// Something in the file is wrong.
    #[error("{}:{line}: {what}", path.display())]
    Line {
        /// The file.
        path: PathBuf,
        /// Where, from 1 on.
        line: usize,
        /// What.
        what: String,
    },
    /// A variable has a value that means nothing.
    #[error("{name}={value}: give one of {expected}")]
    Variable {
        /// The variable.
        name: &'static str,
        /// Its value.
        value: String,
        /// What it may be.
        expected: String,
    },
    /// What is assumed about power and electricity cannot be.
    #[error("{0}")]
    Energy(String),
    /// The keys in the file cannot be.
    #[error("{}: {why}", path.display())]
    Keys {
        /// The file.
        path: PathBuf,
        /// Why.
        why: KeyMapError,
    },
}

/// Where a setting comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Origin {
    /// Nobody has set it.
    Default,
    /// The settings file.
    File,
    /// This variable.
    Variable(&'static str),
    /// The command line.
    Flag,
}

/// A setting, and where it comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Setting<T> {
    pub value: T,
    pub origin: Origin,
}

/// What one place says: the file, the environment or the command line.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Layer {
    theme: Option<Palette>,
    colors: Option<Depth>,
    background: Option<Behind>,
    view: Option<View>,
    ascii: Option<bool>,
    mouse: Option<bool>,
}

/// All settings of the screen.
#[derive(Clone, Debug)]
pub(super) struct Settings {
    pub theme: Setting<Palette>,
    pub colors: Setting<Depth>,
    pub background: Setting<Behind>,
    pub view: Setting<View>,
    /// `None` to look at the locale.
    pub ascii: Setting<Option<bool>>,
    pub mouse: Setting<bool>,
    pub keys: KeyMap,
    /// Lines instead of a screen.
    pub plain: bool,
    /// Time between two lines.
    pub interval: Duration,
    /// What the flags and the file say of power and electricity...
    pub energy: EnergyArguments,
    /// ...and what energy and carbon are told under.
    pub assumptions: Assumptions,
    /// The settings file, whether it is there or not; `None` where there is no home to keep one in.
    pub path: Option<PathBuf>,
}

impl Settings {
    /// What these flags, this process's environment and the settings file say together.
    ///
    /// # Errors
    /// When the file or a variable cannot be understood.
    pub(super) fn of(arguments: &ScreenArguments) -> Result<Self, SettingsError> {
        Self::read(arguments, variable_that_is_set)
    }

    /// What these flags of a command without a screen say of power and electricity, with the settings file beside them.
    ///
    /// # Errors
    /// When the file or a variable cannot be understood, or what is assumed cannot be.
    pub(super) fn assumptions(energy: &EnergyArguments) -> Result<Assumptions, SettingsError> {
        let arguments = ScreenArguments { energy: energy.clone(), ..ScreenArguments::default() };
        Ok(Self::of(&arguments)?.assumptions)
    }

    /// Where the settings file is looked for.
    pub(super) fn path_of(arguments: &ScreenArguments) -> Option<PathBuf> {
        named_path(arguments, variable_that_is_set).or_else(|| usual_path(variable_that_is_set))
    }

    fn read(arguments: &ScreenArguments, env: impl Fn(&str) -> Option<String>) -> Result<Self, SettingsError> {
        let must_exist = named_path(arguments, &env).is_some();
        let path = named_path(arguments, &env).or_else(|| usual_path(&env));
        let file = path.as_ref().map(|path| file::read(path, must_exist)).transpose()?.unwrap_or_default();
        let keys = KeyMap::with(&file.keys)
            .map_err(|why| SettingsError::Keys { path: path.clone().unwrap_or_default(), why })?;
        let variables = Layer::of_environment(&env)?;
        let flags = Layer::of_flags(arguments);
        let energy = arguments.energy.over(&file.energy);
        let assumptions = energy.assumptions().map_err(SettingsError::Energy)?;
        Ok(Self {
            theme: first("GNNTOP_THEME", flags.theme, variables.theme, file.layer.theme),
            colors: first("GNNTOP_COLORS", flags.colors, variables.colors, file.layer.colors),
            background: first("GNNTOP_BACKGROUND", flags.background, variables.background, file.layer.background),
            view: first("GNNTOP_VIEW", flags.view, variables.view, file.layer.view),
            ascii: first("GNNTOP_ASCII", flags.ascii.map(Some), variables.ascii.map(Some), file.layer.ascii.map(Some)),
            mouse: or("GNNTOP_MOUSE", flags.mouse, variables.mouse, file.layer.mouse, true),
            keys,
            plain: arguments.plain,
            interval: arguments.interval.unwrap_or(LINE_INTERVAL),
            energy,
            assumptions,
            path,
        })
    }

    /// The same, for the screen.
    pub(super) fn options(&self, log_path: Option<PathBuf>) -> ScreenOptions {
        let env = |name: &str| env::var(name).ok();
        ScreenOptions {
            log_path,
            ascii: self.ascii.value.unwrap_or_else(|| !is_utf8(env)),
            colors: self.colors.value.0,
            background: self.background.value.0,
            catalog: None,
            assumptions: self.assumptions.clone(),
            no_mouse: !self.mouse.value,
            preferences: Preferences {
                palette: self.theme.value,
                background: self.background.value.0.unwrap_or_default(),
                view: self.view.value,
                keys: self.keys.clone(),
            },
        }
    }
}

/// The setting of the first place that has one.
fn first<T: Default>(variable: &'static str, flag: Option<T>, env: Option<T>, file: Option<T>) -> Setting<T> {
    or(variable, flag, env, file, T::default())
}

fn or<T>(variable: &'static str, flag: Option<T>, env: Option<T>, file: Option<T>, default: T) -> Setting<T> {
    let places = [(flag, Origin::Flag), (env, Origin::Variable(variable)), (file, Origin::File)];
    let set = places.into_iter().find_map(|(value, origin)| value.map(|value| Setting { value, origin }));
    set.unwrap_or(Setting { value: default, origin: Origin::Default })
}

impl Layer {
    fn of_flags(arguments: &ScreenArguments) -> Self {
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

    fn of_environment(env: impl Fn(&str) -> Option<String>) -> Result<Self, SettingsError> {
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

fn variable_that_is_set(name: &str) -> Option<String> {
    env::var(name).ok().filter(|value| !value.is_empty())
}

/// The file that was asked for.
fn named_path(arguments: &ScreenArguments, env: impl Fn(&str) -> Option<String>) -> Option<PathBuf> {
    arguments.config.clone().or_else(|| env("GNNTOP_CONFIG").map(PathBuf::from))
}

/// `$XDG_CONFIG_HOME/gnntop/config.toml`, else below `~/.config`.
fn usual_path(env: impl Fn(&str) -> Option<String>) -> Option<PathBuf> {
    // The XDG base directory specification: a relative path is not to be used.
    let own = env("XDG_CONFIG_HOME").map(PathBuf::from).filter(|path| path.is_absolute());
    let dir = own.or_else(|| Some(PathBuf::from(env("HOME")?).join(".config")))?;
    Some(dir.join("gnntop").join("config.toml"))
}

/// Whether the locale says that the terminal takes more than ASCII; without a locale it is assumed to.
fn is_utf8(env: impl Fn(&str) -> Option<String>) -> bool {
    let set = |name| env(name).filter(|value| !value.is_empty());
    let locale = set("LC_ALL").or_else(|| set("LC_CTYPE")).or_else(|| set("LANG"));
    locale.is_none_or(|locale| {
        let locale = locale.to_ascii_lowercase();
        locale.contains("utf-8") || locale.contains("utf8")
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::app::keys::Key;
    use crate::app::{App, Command};

    struct Home {
        dir: tempfile::TempDir,
        variables: Vec<(&'static str, String)>,
    }

    impl Home {
        fn with(text: &str) -> Self {
            let dir = tempfile::tempdir().unwrap();
            std::fs::create_dir(dir.path().join("gnntop")).unwrap();
            std::fs::write(dir.path().join("gnntop/config.toml"), text).unwrap();
            let home = dir.path().to_str().unwrap().to_owned();
            Self { dir, variables: vec![("XDG_CONFIG_HOME", home)] }
        }

        fn set(mut self, name: &'static str, value: &str) -> Self {
            self.variables.push((name, value.to_owned()));
            self
        }

        fn read(&self, flags: &ScreenArguments) -> Result<Settings, SettingsError> {
            Settings::read(flags, |name| self.variables.iter().find(|var| var.0 == name).map(|var| var.1.clone()))
        }

        fn refusal(&self) -> String {
            let refusal = self.read(&ScreenArguments::default()).unwrap_err().to_string();
            refusal.replace(self.dir.path().to_str().unwrap(), "~")
        }
    }

    #[test]
    fn flag_before_environment_before_file_before_default() {
        let flags = ScreenArguments { theme: Some(Palette::Monochrome), ..ScreenArguments::default() };
        let none = ScreenArguments::default();
        let empty = Home::with("");
        let theme = |home: &Home, flags: &ScreenArguments| home.read(flags).unwrap().theme;
        assert_eq!(theme(&empty, &none), Setting { value: Palette::Default, origin: Origin::Default });
        let home = Home::with("theme = 'terminal'\nmouse = false");
        assert_eq!(theme(&home, &none), Setting { value: Palette::Terminal, origin: Origin::File });
        assert_eq!(home.read(&none).unwrap().mouse, Setting { value: false, origin: Origin::File });
        let home = home.set("GNNTOP_THEME", "color-blind").set("GNNTOP_MOUSE", "1");
        let of_variable = Setting { value: Palette::ColorBlind, origin: Origin::Variable("GNNTOP_THEME") };
        assert_eq!(theme(&home, &none), of_variable);
        assert!(home.read(&none).unwrap().mouse.value);
        assert_eq!(theme(&home, &flags), Setting { value: Palette::Monochrome, origin: Origin::Flag });
    }

    #[test]
    fn keys_of_the_file_do_what_it_says() {
        let home = Home::with("view = \"tracks\"\n[keys]\nhelp = [\"F\", \"Ctrl-H\"]\nzoom-in = \"i\"\n");
        let settings = home.read(&ScreenArguments::default()).unwrap();
        let here = App::default().situation();
        assert_eq!(settings.keys.command(Key::Char('F'), &here), Some(Command::ToggleHelp));
        assert_eq!(settings.view.value, View::Tracks);
    }

    #[test]
    fn energy_is_told_under_what_flags_and_file_say() {
        let home = Home::with("[energy]\nregion = 'DEU'\npue = 1.5\nidle = 'share'\n");
        let of_file = home.read(&ScreenArguments::default()).unwrap().assumptions;
        assert_eq!((of_file.region.as_deref(), of_file.pue, of_file.shares_idle), (Some("DEU"), Some(1.5), true));
        let energy = EnergyArguments { region: Some("CA-QC".to_owned()), ..EnergyArguments::default() };
        let flags = ScreenArguments { energy, ..ScreenArguments::default() };
        let options = home.read(&flags).unwrap().options(None);
        assert_eq!((options.assumptions.region.as_deref(), options.assumptions.pue), (Some("CA-QC"), Some(1.5)));
        let told = |text: &str| Home::with(text).refusal();
        assert_eq!(
            told("mouse = true\n[energy]\npue = 0.3"),
            "~/gnntop/config.toml:2: pue: give a number from 1 to 10, such as 1.1 of a large data centre"
        );
        assert!(told("[energy]\nregion = 'Atlantis'").contains("toml:1: no carbon intensity is known of `Atlantis`"));
        assert!(told("[energy]\nregoin = 'DEU'").contains("unknown field `regoin`"));
    }

    #[test]
    fn mistakes_are_told_with_their_line() {
        let told = |text: &str| Home::with(text).refusal();
        let path = "~/gnntop/config.toml";
        assert_eq!(
            told("\ntheme = \"mauve\""),
            format!("{path}:2: theme is mauve: give one of default, colour-blind, high-contrast, monochrome, terminal")
        );
        let unknown = told("mouse = true\nthemes = 'default'");
        assert!(unknown.starts_with(&format!("{path}:2: unknown field `themes`, expected one of")), "{unknown}");
        let kind = told("\n\nmouse = 'yes'");
        assert!(kind.starts_with(&format!("{path}:3: ")) && kind.contains("boolean"), "{kind}");
        assert_eq!(told("[keys]\nquit = 'F19'"), format!("{path}:2: there is no key F19"));
        assert_eq!(told("[keys]\nquit = ''"), format!("{path}:2: there is no key "));
        assert_eq!(told("[keys]\nquit = []"), format!("{path}:2: give quit at least one key"));
        assert_eq!(
            told("\n[keys]\nqit = 'x'"),
            format!("{path}:3: there is no action qit: `gnntop config print` lists them")
        );
        assert_eq!(told("[keys]\nhelp = 'Ctrl-C'"), format!("{path}:2: Ctrl-C always quits: give help another key"));
        let syntax = told("theme = default");
        assert!(syntax.starts_with(&format!("{path}:1: ")), "{syntax}");
        assert!(!syntax.contains('\n'), "{syntax}");
    }

    #[test]
    fn variables_are_told_by_name() {
        let refusal = Home::with("").set("GNNTOP_VIEW", "nowhere").refusal();
        assert!(refusal.starts_with("GNNTOP_VIEW=nowhere: give one of overview, steps"), "{refusal}");
    }

    #[test]
    fn only_a_file_that_was_asked_for_must_be_there() {
        let home = Home::with("");
        std::fs::remove_file(home.dir.path().join("gnntop/config.toml")).unwrap();
        assert_eq!(home.read(&ScreenArguments::default()).unwrap().theme.origin, Origin::Default);
        let flags = ScreenArguments { config: Some(home.dir.path().join("own.toml")), ..ScreenArguments::default() };
        assert!(home.read(&flags).unwrap_err().to_string().contains("own.toml"));
    }

    #[test]
    fn the_file_lies_in_the_directory_for_settings() {
        let of = |vars: &[(&str, &str)]| {
            usual_path(|name| vars.iter().find(|var| var.0 == name).map(|var| var.1.to_owned()))
        };
        assert_eq!(of(&[("XDG_CONFIG_HOME", "/c"), ("HOME", "/h")]), Some(PathBuf::from("/c/gnntop/config.toml")));
        assert_eq!(
            of(&[("XDG_CONFIG_HOME", "c"), ("HOME", "/h")]),
            Some(PathBuf::from("/h/.config/gnntop/config.toml"))
        );
        assert_eq!(of(&[]), None);
    }
}
