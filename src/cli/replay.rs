//! `gnntop replay`: a recording in the same screen, as it happened.

use std::path::PathBuf;
use std::time::Duration;

use super::settings::{ScreenArguments, Settings};
use super::{quantities, screen};
use gnntop_analysis::source::Playback;
use gnntop_analysis::source::playback::PlaybackOptions;

const EXAMPLES: &str = "\
Examples:
  gnntop replay pna.gnntop                 as it happened
  gnntop replay pna.gnntop --speed 4       four times as fast
  gnntop replay pna.gnntop --from 90s      from there on
  gnntop replay new.gnntop --against old.gnntop   the key 9 shows the two side by side
  ssh host gnntop record - | gnntop replay -

Keys: Space pauses, `,` and `.` step, `<` and `>` change the speed, `:` goes to a time, `?` lists all.";

/// Play a recording
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct ReplayArguments {
    /// The recording; `-` is standard input, a directory is that of a session
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// How fast, from 0.1 to 100
    #[arg(long, default_value = "1", value_parser = quantities::speed)]
    speed: f64,
    /// Where to start, from the beginning of the recording, such as 90s or 5m
    #[arg(long, value_name = "TIME", default_value = "0", value_parser = quantities::duration)]
    from: Duration,
    /// Start over at the end
    #[arg(long = "loop")]
    looping: bool,
    /// Another recording or session to compare with, in the view behind the key 9
    #[arg(long, value_name = "PID|NAME|DIR|FILE")]
    against: Option<String>,
    #[command(flatten)]
    screen: ScreenArguments,
}

/// Does `gnntop replay`.
pub(super) fn replay(arguments: ReplayArguments) -> anyhow::Result<u8> {
    let ReplayArguments { file, speed, from, looping, against, screen } = arguments;
    let settings = Settings::of(&screen)?;
    let source = Box::new(Playback::open(file, PlaybackOptions { speed, from, looping })?);
    screen::show_against(source, against.as_deref(), &settings, None)
}
