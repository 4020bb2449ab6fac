//! `gnntop replay`: a recording on the same screen, as it happened.

use std::path::PathBuf;
use std::time::Duration;

use super::named::{self, NAMED};
use super::settings::{ScreenArguments, Settings};
use super::{quantities, screen};
use gnntop_analysis::source::Playback;
use gnntop_analysis::source::playback::PlaybackOptions;

const EXAMPLES: &str = "\
Examples:
  gnntop replay pna.gnntop                 at the original speed
  gnntop replay pna.gnntop --speed 4       four times as fast
  gnntop replay pna.gnntop --from 90s      start 90 seconds in
  gnntop replay rank0.gnntop rank1.gnntop  the ranks of one run, side by side
  gnntop replay new.gnntop --against old.gnntop   `9` compares the two
  ssh host gnntop record - | gnntop replay -

Keys: Space pauses, `,` and `.` move by a frame, `<` and `>` change the speed, `:` goes to a time, `?` lists all keys.";

/// Play a recording
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct ReplayArguments {
    /// The recording, or a kept session by name, process id, run or their beginning; `-` is standard input. Several are
    /// the ranks of one run
    #[arg(value_name = NAMED, required = true)]
    files: Vec<PathBuf>,
    /// Speed, from 0.1 to 100
    #[arg(long, default_value = "1", value_parser = quantities::parse_speed)]
    speed: f64,
    /// Start this far into the recording, such as 90s or 5m
    #[arg(long, value_name = "TIME", default_value = "0", value_parser = quantities::parse_duration)]
    from: Duration,
    /// Start over at the end
    #[arg(long = "loop")]
    looping: bool,
    /// An older recording or session to compare with, as A; `9` shows the comparison
    #[arg(long, value_name = NAMED)]
    against: Option<String>,
    #[command(flatten)]
    screen: ScreenArguments,
}

/// Does `gnntop replay`.
pub(super) fn replay(arguments: ReplayArguments) -> anyhow::Result<u8> {
    let ReplayArguments { files, speed, from, looping, against, screen } = arguments;
    let settings = Settings::load(&screen)?;
    let files = files.iter().map(|file| named::find_path(file)).collect::<anyhow::Result<Vec<PathBuf>>>()?;
    let source = Box::new(Playback::open_run(files, PlaybackOptions { speed, from, looping })?);
    screen::show_against(source, named::open_against(against.as_deref())?, &settings, None)
}
