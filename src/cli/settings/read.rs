//! All settings together: the first place that has one decides.

use std::env;
use std::path::PathBuf;
use std::time::Duration;

use super::arguments::{BackgroundSetting, DepthSetting, ScreenArguments};
use super::file;
use super::layer::{Layer, SettingsError};
use crate::app::{KeyMap, Palette, Preferences, View};
use crate::cli::assumptions::EnergyArguments;
use crate::viewer::ScreenOptions;
use gnntop_analysis::energy::Assumptions;

/// Time between two lines, if none is given.
const LINE_INTERVAL: Duration = Duration::from_secs(2);
/// Where a setting comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::cli) enum Origin {
    /// It is not set.
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
pub(in crate::cli) struct Setting<T> {
    pub value: T,
    pub origin: Origin,
}

/// All settings of the screen.
#[derive(Clone, Debug)]
pub(in crate::cli) struct Settings {
    pub theme: Setting<Palette>,
    pub colors: Setting<DepthSetting>,
    pub background: Setting<BackgroundSetting>,
    pub view: Setting<View>,
    /// `None` to look at the locale.
    pub ascii: Setting<Option<bool>>,
    pub mouse: Setting<bool>,
    pub keys: KeyMap,
    /// Lines instead of a screen.
    pub plain: bool,
    /// Time between two lines.
    pub interval: Duration,
    /// Power and electricity according to the flags and the file...
    pub energy: EnergyArguments,
    /// ...and the assumptions for energy and carbon.
    pub assumptions: Assumptions,
    /// The settings file, whether it exists or not; `None` if there is no home directory.
    pub path: Option<PathBuf>,
}

impl Settings {
    /// The settings from these flags, this process's environment and the settings file.
    ///
    /// # Errors
    /// If the file or a variable is invalid.
    pub(in crate::cli) fn load(arguments: &ScreenArguments) -> Result<Self, SettingsError> {
        Self::read(arguments, variable_that_is_set)
    }

    /// The settings for a program that is to start whatever is wrong with the file or the variables: without them then, and with the
    /// reason.
    ///
    /// # Errors
    /// If these flags, or the file that they name, are invalid.
    pub(in crate::cli) fn load_or_default(
        arguments: &ScreenArguments,
    ) -> Result<(Self, Option<SettingsError>), SettingsError> {
        match Self::load(arguments) {
            Ok(settings) => Ok((settings, None)),
            Err(error) => Self::read(arguments, |_| None).map(|settings| (settings, Some(error))),
        }
    }

    /// The assumptions of a command without a screen, from these flags and the settings file.
    ///
    /// # Errors
    /// If the file, a variable or an assumption is invalid.
    pub(in crate::cli) fn assumptions(energy: &EnergyArguments) -> Result<Assumptions, SettingsError> {
        let arguments = ScreenArguments { energy: energy.clone(), ..ScreenArguments::default() };
        Ok(Self::load(&arguments)?.assumptions)
    }

    /// Where the settings file is looked for.
    pub(in crate::cli) fn file_path(arguments: &ScreenArguments) -> Option<PathBuf> {
        explicit_path(arguments, variable_that_is_set).or_else(|| default_path(variable_that_is_set))
    }

    fn read(arguments: &ScreenArguments, env: impl Fn(&str) -> Option<String>) -> Result<Self, SettingsError> {
        let must_exist = explicit_path(arguments, &env).is_some();
        let path = explicit_path(arguments, &env).or_else(|| default_path(&env));
        let file = path.as_ref().map(|path| file::read(path, must_exist)).transpose()?.unwrap_or_default();
        let keys = KeyMap::with_overrides(&file.keys)
            .map_err(|why| SettingsError::Keys { path: path.clone().unwrap_or_default(), why })?;
        let variables = Layer::from_environment(&env)?;
        let flags = Layer::from_flags(arguments);
        let energy = arguments.energy.merged_over(&file.energy);
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
    pub(in crate::cli) fn options(&self, log_path: Option<PathBuf>) -> ScreenOptions {
        let env = |name: &str| env::var(name).ok();
        ScreenOptions {
            log_path,
            is_started_here: false,
            hint: None,
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

fn variable_that_is_set(name: &str) -> Option<String> {
    env::var(name).ok().filter(|value| !value.is_empty())
}

/// The file that was asked for.
fn explicit_path(arguments: &ScreenArguments, env: impl Fn(&str) -> Option<String>) -> Option<PathBuf> {
    arguments.config.clone().or_else(|| env("GNNTOP_CONFIG").map(PathBuf::from))
}

/// `$XDG_CONFIG_HOME/gnntop/config.toml`, else below `~/.config`.
fn default_path(env: impl Fn(&str) -> Option<String>) -> Option<PathBuf> {
    // The XDG base directory specification: a relative path must be ignored.
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
        fn with_file(text: &str) -> Self {
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
        let empty = Home::with_file("");
        let theme = |home: &Home, flags: &ScreenArguments| home.read(flags).unwrap().theme;
        assert_eq!(theme(&empty, &none), Setting { value: Palette::Default, origin: Origin::Default });
        let home = Home::with_file("theme = 'terminal'\nmouse = false");
        assert_eq!(theme(&home, &none), Setting { value: Palette::Terminal, origin: Origin::File });
        assert_eq!(home.read(&none).unwrap().mouse, Setting { value: false, origin: Origin::File });
        let home = home.set("GNNTOP_THEME", "color-blind").set("GNNTOP_MOUSE", "1");
        let of_variable = Setting { value: Palette::ColorBlind, origin: Origin::Variable("GNNTOP_THEME") };
        assert_eq!(theme(&home, &none), of_variable);
        assert!(home.read(&none).unwrap().mouse.value);
        assert_eq!(theme(&home, &flags), Setting { value: Palette::Monochrome, origin: Origin::Flag });
    }

    #[test]
    fn keys_of_file_are_bound() {
        let home = Home::with_file("view = \"tracks\"\n[keys]\nhelp = [\"F\", \"Ctrl-H\"]\nzoom-in = \"i\"\n");
        let settings = home.read(&ScreenArguments::default()).unwrap();
        let here = App::default().situation();
        assert_eq!(settings.keys.command(Key::Char('F'), &here), Some(Command::ToggleHelp));
        assert_eq!(settings.view.value, View::Tracks);
    }

    #[test]
    fn assumptions_come_from_flags_then_file() {
        let home = Home::with_file("[energy]\nregion = 'DEU'\npue = 1.5\nidle = 'share'\n");
        let of_file = home.read(&ScreenArguments::default()).unwrap().assumptions;
        assert_eq!((of_file.region.as_deref(), of_file.pue, of_file.shares_idle), (Some("DEU"), Some(1.5), true));
        let energy = EnergyArguments { region: Some("CA-QC".to_owned()), ..EnergyArguments::default() };
        let flags = ScreenArguments { energy, ..ScreenArguments::default() };
        let options = home.read(&flags).unwrap().options(None);
        assert_eq!((options.assumptions.region.as_deref(), options.assumptions.pue), (Some("CA-QC"), Some(1.5)));
        let told = |text: &str| Home::with_file(text).refusal();
        assert_eq!(
            told("mouse = true\n[energy]\npue = 0.3"),
            "~/gnntop/config.toml:2: pue: give a number from 1 to 10, such as 1.1 for a large data centre"
        );
        assert!(told("[energy]\nregion = 'Atlantis'").contains("toml:1: no carbon intensity is known for `Atlantis`"));
        assert!(told("[energy]\nregoin = 'DEU'").contains("unknown field `regoin`"));
    }

    #[test]
    fn mistake_in_file_is_reported_with_line() {
        let told = |text: &str| Home::with_file(text).refusal();
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
        assert_eq!(told("[keys]\nquit = []"), format!("{path}:2: quit needs at least one key"));
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
    fn mistake_in_variable_is_reported_with_name() {
        let refusal = Home::with_file("").set("GNNTOP_VIEW", "nowhere").refusal();
        assert!(refusal.starts_with("GNNTOP_VIEW=nowhere: give one of overview, steps"), "{refusal}");
    }

    #[test]
    fn missing_file_is_an_error_only_if_named() {
        let home = Home::with_file("");
        std::fs::remove_file(home.dir.path().join("gnntop/config.toml")).unwrap();
        assert_eq!(home.read(&ScreenArguments::default()).unwrap().theme.origin, Origin::Default);
        let flags = ScreenArguments { config: Some(home.dir.path().join("own.toml")), ..ScreenArguments::default() };
        assert!(home.read(&flags).unwrap_err().to_string().contains("own.toml"));
    }

    #[test]
    fn default_path_is_in_config_directory() {
        let of = |vars: &[(&str, &str)]| {
            default_path(|name| vars.iter().find(|var| var.0 == name).map(|var| var.1.to_owned()))
        };
        assert_eq!(of(&[("XDG_CONFIG_HOME", "/c"), ("HOME", "/h")]), Some(PathBuf::from("/c/gnntop/config.toml")));
        assert_eq!(
            of(&[("XDG_CONFIG_HOME", "c"), ("HOME", "/h")]),
            Some(PathBuf::from("/h/.config/gnntop/config.toml"))
        );
        assert_eq!(of(&[]), None);
    }
}
