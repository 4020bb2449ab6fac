//! Runs both programs in turn, and measures each pair.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use tempfile::TempDir;

use super::super::reading::{self, ExactArguments};
use super::super::run::{UnattendedEnd, UnattendedRun};
use super::super::{output, signals};
use super::sides::{NAMES, Sides};
use gnntop_analysis::comparison::{Losses, MeasuredPair, Proof, Proven, prove};
use gnntop_analysis::figures::elapsed_time;
use gnntop_analysis::ranks::Run;

/// How it ended.
pub(super) enum Ended {
    /// With this result.
    Proven(Proven, Losses),
    /// By this signal.
    Interrupted(i32),
}

/// Where recordings are: for good, or until this ends.
enum Folder {
    Kept(PathBuf),
    Temporary(TempDir),
}

/// The pairs so far.
pub(super) struct Pairs<'a> {
    sides: &'a Sides,
    most: usize,
    within: f64,
    folder: Folder,
    interruption: signals::Interruption,
    measured: Vec<MeasuredPair>,
    /// Pairs that other programs disturbed and that were run again.
    again: usize,
    /// Time of all runs so far, and their number.
    spent: (Duration, u32),
}

impl<'a> Pairs<'a> {
    pub(super) fn new(sides: &'a Sides, most: usize, within: f64, keep: Option<&Path>) -> anyhow::Result<Self> {
        let folder = match keep {
            Some(path) => {
                fs::create_dir_all(path).with_context(|| format!("cannot create {}", path.display()))?;
                Folder::Kept(path.to_owned())
            }
            None => Folder::Temporary(tempfile::Builder::new().prefix("gnntop-prove-").tempdir()?),
        };
        let interruption = signals::Interruption::catch()?;
        Ok(Self {
            sides,
            most,
            within,
            folder,
            interruption,
            measured: Vec::new(),
            again: 0,
            spent: (Duration::ZERO, 0),
        })
    }

    pub(super) fn measured(&self) -> &[MeasuredPair] {
        &self.measured
    }

    pub(super) fn again(&self) -> usize {
        self.again
    }

    /// Runs pairs until there is a conclusion, or as many as there may be.
    pub(super) fn run(&mut self) -> anyhow::Result<Ended> {
        loop {
            if let Some(signal) = self.run_pair()? {
                return Ok(Ended::Interrupted(signal));
            }
            let ratios: Vec<f64> = self.measured.iter().map(MeasuredPair::ratio).collect();
            let Some(proven) = prove(&ratios, self.within) else { continue };
            if proven.proof == Proof::NotEnough && proven.pairs < self.most {
                let (low, high) = proven.interval;
                output::print_note(&format!("after {} pairs: {low:.3} to {high:.3} x, going on", proven.pairs));
                continue;
            }
            let losses = self.measured.iter().fold(Losses::Unknown, |all, pair| all.worse(pair.losses));
            return Ok(Ended::Proven(proven, losses));
        }
    }

    /// Runs one pair, the baseline first in every other one. Returns the signal that interrupted it, if any.
    fn run_pair(&mut self) -> anyhow::Result<Option<i32>> {
        let order = if (self.measured.len() + self.again).is_multiple_of(2) { [0, 1] } else { [1, 0] };
        let mut runs = [None, None];
        for side in order {
            match self.run_side(side)? {
                Ok(run) => runs[side] = Some(run),
                Err(signal) => return Ok(Some(signal)),
            }
        }
        let [Some(first), Some(second)] = &runs else { return Ok(None) };
        let pair = MeasuredPair::new(first, second).map_err(|(side, error)| {
            anyhow::Error::new(error).context(format!("the {} cannot be measured", NAMES[side]))
        })?;
        if !pair.rivals.is_empty() && self.again < self.most {
            self.again += 1;
            output::print_note(&format!("disturbed, and run again: {}", pair.rivals.join(", ")));
        } else {
            self.measured.push(pair);
        }
        Ok(None)
    }

    /// Runs one side from start to end, and reads its recording; or returns the signal that interrupted it.
    fn run_side(&mut self, side: usize) -> anyhow::Result<Result<Run, i32>> {
        let number = self.measured.len() + 1;
        let recording = self.folder.path().join(format!("{}-{number}.gnntop", NAMES[side]));
        let name = format!("prove {} {number}", NAMES[side]);
        let unattended = UnattendedRun {
            words: &self.sides.words[side],
            is_workload: false,
            name: &name,
            recording: &recording,
            time_limit: None,
        };
        let title = format!("pair {number} of {} at most, {}{}", self.most, NAMES[side], self.usual_time());
        output::print_note(&title);
        let began = Instant::now();
        let ended = unattended.run(&self.interruption, || {
            output::show_progress(&format!("{title}, {}", elapsed_time(began.elapsed())));
        });
        output::show_progress("");
        self.spent = (self.spent.0 + began.elapsed(), self.spent.1 + 1);
        match ended? {
            UnattendedEnd::Interrupted(signal) => return Ok(Err(signal)),
            UnattendedEnd::Code(0) => {}
            UnattendedEnd::Code(code) => bail!("the {} ended with exit code {code}", NAMES[side]),
            UnattendedEnd::TimeOver => bail!("the {} took too long", NAMES[side]),
        }
        if !recording.exists() {
            bail!(
                "the {} published nothing: is it a program that gnntop can see? try `gnntop run -- PROGRAM`",
                NAMES[side]
            );
        }
        reading::read_run(recording.to_str(), ExactArguments::ALL).map(Ok)
    }

    /// What a run takes, once one has ended.
    fn usual_time(&self) -> String {
        let each = self.spent.0.checked_div(self.spent.1);
        each.map(|each| format!(", about {} a run", elapsed_time(each))).unwrap_or_default()
    }
}

impl Folder {
    fn path(&self) -> &Path {
        match self {
            Self::Kept(path) => path,
            Self::Temporary(folder) => folder.path(),
        }
    }
}
