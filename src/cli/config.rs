//! `gnntop config`: the settings in force, and where they come from.

use std::fmt::Display;

use super::assumptions::{EnergyArguments, Idle};
use super::exit::SUCCESS;
use super::output;
use super::settings::{Origin, ScreenArguments, Setting, Settings};
use crate::app::KeyMap;

const EXAMPLES: &str = "\
Examples:
  gnntop config path                        path of the settings file
  gnntop config print                       all current settings and keys, as a settings file
  gnntop config print > \"$(gnntop config path)\"

A flag overrides the environment (GNNTOP_THEME, GNNTOP_COLORS, GNNTOP_BACKGROUND, GNNTOP_VIEW, GNNTOP_ASCII,
GNNTOP_MOUSE, GNNTOP_CONFIG), which overrides the settings file.";

/// Show settings and keys
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct ConfigArguments {
    #[command(subcommand)]
    command: ConfigCommand,
}

#[derive(Debug, clap::Subcommand)]
enum ConfigCommand {
    /// Print the current settings as a settings file
    Print(ScreenArguments),
    /// Print the path of the settings file
    Path(ScreenArguments),
}

/// Does `gnntop config`.
pub(super) fn config(arguments: &ConfigArguments) -> anyhow::Result<u8> {
    match &arguments.command {
        ConfigCommand::Print(screen) => output::print(print(&Settings::load(screen)?).trim_end())?,
        ConfigCommand::Path(screen) => {
            let Some(path) = Settings::file_path(screen) else {
                anyhow::bail!("no path for a settings file: set HOME or XDG_CONFIG_HOME");
            };
            output::print(&path.display().to_string())?;
        }
    }
    Ok(SUCCESS)
}

/// The settings as a file that would lead to them.
fn print(settings: &Settings) -> String {
    let Settings { theme, colors, background, view, ascii, mouse, keys, path, .. } = settings;
    let mut text = String::new();
    if let Some(path) = path {
        let absent = if path.exists() { "" } else { " (does not exist)" };
        text += &format!("# settings file: {}{absent}\n", path.display());
    }
    text += &line("theme", format!("{:?}", theme.value.name()), theme);
    text += &line("colors", format!("\"{}\"", colors.value), colors);
    text += &line("background", format!("\"{}\"", background.value), background);
    text += &line("view", format!("{:?}", view.value.name()), view);
    match ascii.value {
        Some(value) => text += &line("ascii", value, ascii),
        None => text += "# ascii: as the locale says\n",
    }
    text += &line("mouse", mouse.value, mouse);
    text + "\n[keys]\n" + &print_keys(keys) + "\n[energy]\n" + &print_energy(&settings.energy)
}

/// The section on power and electricity; what is not set is a comment.
fn print_energy(energy: &EnergyArguments) -> String {
    let number = |value: Option<f64>| value.map(|value| format!("{value:?}"));
    let word = |value: Option<&str>| value.map(|value| format!("{value:?}"));
    let idle = energy.idle.map(|idle| if idle == Idle::Share { "share" } else { "apart" });
    let values = [
        ("tdp", number(energy.tdp), "a table by name, else 4 W a thread"),
        ("cpu-watts", number(energy.cpu_watts), "a counter, else a model"),
        ("ram-watts", number(energy.ram_watts), "a counter, else a model"),
        ("region", word(energy.region.as_deref()), "none, so no carbon"),
        ("carbon-intensity", number(energy.carbon_intensity), "the region's"),
        ("carbon-intensity-file", energy.carbon_intensity_file.as_ref().map(|path| format!("{path:?}")), "none"),
        ("basis", word(energy.basis.map(|basis| basis.as_str())), "lifecycle"),
        ("pue", number(energy.pue), "1"),
        ("idle", word(idle), "apart"),
    ];
    let line = |(name, value, default): (&str, Option<String>, &str)| match value {
        Some(value) => format!("{name} = {value}\n"),
        None => format!("# {name}: {default}\n"),
    };
    values.into_iter().map(line).collect()
}

fn line<T>(name: &str, value: impl Display, setting: &Setting<T>) -> String {
    let origin = match setting.origin {
        Origin::Default => "default",
        Origin::File => "file",
        Origin::Variable(name) => name,
        Origin::Flag => "flag",
    };
    let assignment = format!("{name} = {value}");
    format!("{assignment:<32}# {origin}\n")
}

/// A line for each action: its keys and what it does.
fn print_keys(keys: &KeyMap) -> String {
    let mut text = String::new();
    let mut told: Vec<&str> = Vec::new();
    for row in keys.rows() {
        let action = row.binding.action();
        if told.contains(&action) {
            continue;
        }
        told.push(action);
        let same = keys.rows().iter().filter(|row| row.binding.action() == action);
        let mut names: Vec<String> = Vec::new();
        for key in same.flat_map(|row| row.keys.iter()) {
            let name = format!("{:?}", key.to_string());
            if !names.contains(&name) {
                names.push(name);
            }
        }
        if names.is_empty() {
            text += &format!("# {action}: no key is left\n");
            continue;
        }
        let assignment = format!("{action} = [{}]", names.join(", "));
        text += &format!("{assignment:<32}# {}\n", row.binding.help);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn printed_settings_can_be_parsed() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("config.toml");
        let flags = ScreenArguments::from_file(&path);
        std::fs::write(
            &path,
            "theme = 'monochrome'\nascii = true\n[keys]\nhelp = ['\"', '\\']\nquit = 'x'\n\
            [energy]\nregion = 'CA-QC'\ntdp = 205\nidle = 'share'\n",
        )
        .unwrap();
        let settings = Settings::load(&flags).unwrap();
        let printed = print(&settings);
        std::fs::write(&path, &printed).unwrap();
        let again = Settings::load(&flags).unwrap();
        assert_eq!(
            print(&again).replace("# file", ""),
            printed.replace("# file", "").replace("# default", ""),
            "{printed}"
        );
        let pressed = |settings: &Settings| -> Vec<_> {
            let here = crate::app::App::default().situation();
            let keys = settings.keys.rows().iter().flat_map(|row| row.keys.to_vec());
            keys.map(|key| (key, settings.keys.command(key, &here))).collect()
        };
        assert_eq!(pressed(&settings), pressed(&again));
        assert_eq!((&settings.energy, settings.energy.tdp), (&again.energy, Some(205.0)));
    }
}
