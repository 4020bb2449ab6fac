//! What can be typed after `gnntop prove`.

use std::path::PathBuf;

use super::super::quantities;
use gnntop_analysis::comparison::PLANNED_PAIRS;

const EXAMPLES: &str = "\
Examples:
  gnntop prove --baseline 'python old.py' --candidate 'python new.py'
  gnntop prove --set num-workers=0,4 -- python train.py --epochs 1      with --num-workers 0, and with 4
  gnntop prove --set OMP_NUM_THREADS=1,2 -- python train.py             a name in capitals is an environment variable
  gnntop prove --within 5% --pairs 6 -o proof.md --baseline ... --candidate ...

Both are run in turn on this machine, in the order ABBA, each from its start to its end: let them do a few hundred steps.
What counts is work per time after the warm-up. After 6, 12 and 24 pairs, the interval of the ratio decides: faster,
slower, or no difference greater than --within. A program and itself are distinguished less often than once in twenty
times. Pairs during which other programs used half a core or more are run again, at most as often as there are pairs.
Losses are compared step by step, because a faster program that learns something else is no gain: fix the seeds.

Exit codes: 0 the candidate is faster, 3 it is slower or there is no difference, 4 not enough evidence, 1 a program failed or
published too few steps, 130 interrupted.";

/// Prove that a change makes a program faster, by pairs of runs
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(in super::super) struct ProveArguments {
    /// The program as it is, for the shell
    #[arg(long, value_name = "COMMAND", requires = "candidate", conflicts_with_all = ["set", "program"])]
    pub(super) baseline: Option<String>,
    /// The program with the change
    #[arg(long, value_name = "COMMAND", requires = "baseline")]
    pub(super) candidate: Option<String>,
    /// An option or environment variable that differs: its value in the baseline, and in the candidate
    #[arg(long, value_name = "NAME=A,B", requires = "program", required_unless_present = "baseline")]
    pub(super) set: Option<String>,
    /// A smaller difference is none
    #[arg(long, value_name = "SHARE", default_value = "2%", value_parser = quantities::parse_share)]
    pub(super) within: f64,
    /// The most pairs: 6, 12 or 24
    #[arg(long, value_name = "N", default_value_t = 12, value_parser = parse_pairs)]
    pub(super) pairs: usize,
    /// Keep all recordings in this directory
    #[arg(long, value_name = "DIR")]
    pub(super) keep: Option<PathBuf>,
    /// Print JSON: one object
    #[arg(long)]
    pub(super) json: bool,
    /// Also write the result as Markdown
    #[arg(short, long, value_name = "FILE")]
    pub(super) output: Option<PathBuf>,
    /// With --output: overwrite an existing file
    #[arg(long, requires = "output")]
    pub(super) force: bool,
    /// With --set: the program and its arguments
    #[arg(last = true, value_name = "PROGRAM")]
    pub(super) program: Vec<String>,
}

fn parse_pairs(text: &str) -> Result<usize, String> {
    let planned = PLANNED_PAIRS.into_iter().find(|(pairs, _)| text == pairs.to_string());
    planned.map(|(pairs, _)| pairs).ok_or_else(|| "give 6, 12 or 24".to_owned())
}
