//! The options of training in stages, and the stages that follow from them.

use std::ops::Range;

use clap::Args;

use super::choices::{SCHEDULES, one_of};
use crate::launch::{RankOptions, at_least_one};
use crate::parallel::pipeline::{PartitionError, Schedule, given_parts, published_parts};
use crate::train::InvalidOption;
use crate::trainers::vig::Stages;

/// Default number of a pipeline's micro-batches: that of the study's faster runs.
const MICRO_BATCHES: usize = 5;

/// How the model is cut into stages, and the batches into micro-batches.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Pipeline")]
pub struct PipelineOptions {
    /// Cut the model into this many stages, one per rank, through which micro-batches pass in turn.
    #[arg(long, value_name = "N", value_parser = at_least_one)]
    stages: Option<usize>,
    /// Micro-batches per batch, 5 by default in a pipeline. With `--stages 1` nothing overlaps and their gradients are
    /// only added up: a control that separates the effect of smaller batches from that of a pipeline.
    #[arg(long, value_name = "N", value_parser = at_least_one)]
    micro_batches: Option<usize>,
    /// Order of the passes: all forward passes first (`gpipe`), or forward and backward passes in turn as soon as
    /// possible, which keeps fewer activations (`1f1b`).
    #[arg(long, default_value = "gpipe", value_parser = one_of(&SCHEDULES))]
    schedule: Schedule,
    /// Recompute a micro-batch's activations for its backward pass instead of keeping them: less memory, more time.
    #[arg(long)]
    recompute: bool,
    /// Copies of the pipeline that train together, each on its part of every batch; `--copies 2 --stages 2` is 4 ranks.
    #[arg(long, value_name = "N", value_parser = at_least_one)]
    copies: Option<usize>,
    /// Blocks of each stage, such as `2,2,2,2` [default: balanced by measured time]
    #[arg(long, value_name = "N,N,...", value_delimiter = ',', value_parser = at_least_one)]
    split: Vec<usize>,
    /// The study's four stages as published: 6, 2, 2 and 2 blocks of a model of 8.
    #[arg(long, conflicts_with = "split")]
    as_published: bool,
}

impl PipelineOptions {
    /// Whether the training uses ranks, or at least micro-batches.
    pub(super) fn is_asked(&self, ranks: &RankOptions) -> bool {
        let is_cut =
            [self.stages, self.micro_batches, self.copies].iter().any(Option::is_some) || !self.split.is_empty();
        is_cut || self.as_published || self.recompute || !ranks.is_alone()
    }

    /// The stages for a model of `blocks` blocks and a batch of `images` images, or why they are impossible.
    pub(super) fn stages(&self, ranks: &RankOptions, blocks: usize, images: usize) -> Result<Stages, InvalidOption> {
        let parts = self.parts(blocks).map_err(|error| InvalidOption(error.to_string()))?;
        let stages = self.stages.or(parts.as_ref().map(Vec::len)).unwrap_or(1);
        if let Some(parts) = &parts
            && parts.len() != stages
        {
            return Err(InvalidOption(format!("--stages {stages} contradicts a split into {} stages", parts.len())));
        }
        if stages > blocks {
            return Err(InvalidOption(PartitionError::TooManyStages { stages, blocks }.to_string()));
        }
        let micro_batches = self.micro_batches.unwrap_or(if stages == 1 { 1 } else { MICRO_BATCHES.min(images) });
        if micro_batches > images {
            return Err(InvalidOption(format!(
                "a batch of {images} images cannot be cut into {micro_batches} micro-batches"
            )));
        }
        // With one stage each backward pass follows its forward pass: there is nothing to wait for.
        let schedule = if stages == 1 { Schedule::OneForwardOneBackward } else { self.schedule };
        let copies = self.copies_of(stages, ranks)?;
        Ok(Stages { count: stages, copies, micro_batches, schedule, recompute: self.recompute, parts })
    }

    fn parts(&self, blocks: usize) -> Result<Option<Vec<Range<usize>>>, PartitionError> {
        match (self.as_published, self.split.as_slice()) {
            (true, _) if blocks != 8 => Err(PartitionError::OtherSum { counts: vec![6, 2, 2, 2], blocks }),
            (true, _) => Ok(Some(published_parts())),
            (false, []) => Ok(None),
            (false, counts) => given_parts(counts, blocks).map(Some),
        }
    }

    fn copies_of(&self, stages: usize, ranks: &RankOptions) -> Result<usize, InvalidOption> {
        let copies = self.copies.unwrap_or((ranks.ranks / stages).max(1));
        let asked = ranks.ranks;
        if asked > 1 && asked != copies * stages {
            return Err(match self.copies {
                Some(copies) => {
                    InvalidOption(format!("--ranks {asked} is not {copies} copies of {stages} stages; remove --ranks"))
                }
                None => InvalidOption(format!("--ranks {asked} is not a multiple of {stages} stages")),
            });
        }
        Ok(copies)
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct Arguments {
        #[command(flatten)]
        pipeline: PipelineOptions,
        #[command(flatten)]
        ranks: RankOptions,
    }

    /// For 8 blocks and 20 images.
    fn stages(words: &str) -> Result<Stages, InvalidOption> {
        let arguments = Arguments::try_parse_from(std::iter::once("test").chain(words.split_whitespace())).unwrap();
        assert_eq!(arguments.pipeline.is_asked(&arguments.ranks), !words.is_empty());
        arguments.pipeline.stages(&arguments.ranks, 8, 20)
    }

    #[test]
    fn options_come_to_stages() {
        let shape =
            |words: &str| stages(words).map(|stages| (stages.count, stages.copies, stages.micro_batches)).unwrap();
        assert_eq!(shape(""), (1, 1, 1));
        assert_eq!(shape("--micro-batches 4"), (1, 1, 4));
        assert_eq!(shape("--stages 2"), (2, 1, 5));
        assert_eq!(shape("--stages 2 --copies 2"), (2, 2, 5));
        assert_eq!(shape("--stages 2 --ranks 4"), (2, 2, 5));
        assert_eq!(shape("--ranks 3"), (1, 3, 1));
        assert_eq!(shape("--as-published --micro-batches 10"), (4, 1, 10));
        assert_eq!(stages("--split 3,5").unwrap().parts, Some(vec![0..3, 3..8]));
        assert_eq!(
            stages("--stages 2 --schedule 1f1b").unwrap().describe(1),
            "1 copy of 2 stages, 5 micro-batches (1f1b)"
        );
        let control = stages("--stages 1 --micro-batches 1 --recompute").unwrap().describe(2);
        assert_eq!(control, "2 copies of 1 stage, 1 micro-batch, activations recomputed");
    }

    #[test]
    fn what_cannot_be_is_one_clear_line() {
        for (words, expected) in [
            ("--stages 9", "the model has 8; use fewer stages"),
            ("--stages 2 --micro-batches 21", "a batch of 20 images cannot be cut into 21 micro-batches"),
            ("--split 4,5", "a split into 4,5 has 9 blocks, but the model has 8"),
            ("--stages 3 --split 4,4", "--stages 3 contradicts a split into 2 stages"),
            ("--stages 2 --as-published", "--stages 2 contradicts a split into 4 stages"),
            ("--stages 2 --ranks 3", "--ranks 3 is not a multiple of 2 stages"),
            ("--stages 2 --copies 2 --ranks 2", "--ranks 2 is not 2 copies of 2 stages; remove --ranks"),
        ] {
            let error = stages(words).unwrap_err().to_string();
            assert!(error.contains(expected) && !error.contains('\n'), "{words}: {error}");
        }
        let arguments = Arguments::try_parse_from(["test", "--as-published"]).unwrap();
        assert!(arguments.pipeline.stages(&arguments.ranks, 4, 20).is_err());
        assert!(Arguments::try_parse_from(["test", "--as-published", "--split", "4,4"]).is_err());
        assert!(Arguments::try_parse_from(["test", "--split", "4,0"]).is_err());
    }
}
