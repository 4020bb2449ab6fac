//! `gnntop demo`: recorded trainings with a fault each, on the screen as they happened. `scripts/demos.sh` records them.

use std::io::Write as _;

use anyhow::Context;
use clap::ValueEnum;
use gnntop_analysis::source::Playback;
use gnntop_analysis::source::playback::PlaybackOptions;

use super::screen;
use super::settings::{ScreenArguments, Settings};

const EXAMPLES: &str = "\
Examples:
  gnntop demo             a slow data loader
  gnntop demo straggler   two ranks, one of which keeps the other waiting

Keys: `8` lists what is wrong, `2` shows the steps, `Space` pauses, `?` lists all keys, `q` leaves.";

/// Watch a recorded training with a fault
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct DemoArguments {
    /// What is wrong with the training
    #[arg(value_enum, default_value_t = Fault::Loader)]
    fault: Fault,
    #[command(flatten)]
    screen: ScreenArguments,
}

/// What is wrong with a training.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Fault {
    /// The data loader is slower than the model
    Loader,
    /// Garbage collections make single steps slow
    Gc,
    /// Memory grows with each step
    Leak,
    /// One of two ranks keeps the other waiting
    Straggler,
    /// The training waits for a lock forever
    Hang,
}

impl Fault {
    fn recording(self) -> &'static [u8] {
        match self {
            Self::Loader => include_bytes!("../../recordings/demo/loader.gnntop"),
            Self::Gc => include_bytes!("../../recordings/demo/gc.gnntop"),
            Self::Leak => include_bytes!("../../recordings/demo/leak.gnntop"),
            Self::Straggler => include_bytes!("../../recordings/demo/straggler.gnntop"),
            Self::Hang => include_bytes!("../../recordings/demo/hang.gnntop"),
        }
    }

    /// Where to look.
    fn hint(self) -> &'static str {
        match self {
            Self::Loader => "the largest part of each step is `data wait`: `8` says why",
            Self::Gc => "a step in thirty is slow: `2`, then `s` goes to the slowest, `Enter` opens it",
            Self::Leak => "memory grows with the steps: `4` shows it, `8` says how fast",
            Self::Straggler => "`R` compares the ranks: one waits in all-reduce for the other",
            Self::Hang => "after 15 seconds no step ends any more: the title says where it waits",
        }
    }
}

/// Does `gnntop demo`.
pub(super) fn demo(arguments: &DemoArguments) -> anyhow::Result<u8> {
    let settings = Settings::load(&arguments.screen)?;
    let mut file = tempfile::Builder::new().prefix("gnntop-demo-").suffix(".gnntop").tempfile()?;
    file.write_all(arguments.fault.recording()).context("cannot write the demo into a temporary file")?;
    let source = Box::new(Playback::open(file.path().to_owned(), PlaybackOptions::default())?);
    screen::show_with_hint(source, format!("demo: {}", arguments.fault.hint()), &settings)
}
