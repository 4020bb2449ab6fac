//! How a run was done: its ranks, stages and micro-batches, and its other settings.

use std::collections::BTreeMap;

use gnntop_wire::{Reported, TrackRole};

use crate::findings::robust::median;
use crate::ranks::{Rank, Run, facts, schedule};
use crate::store::{StepRow, Store};

/// Newest steps that are looked at.
const NEWEST: usize = 4096;
/// Most stages whose blocks are looked up.
const MAX_STAGES: usize = 1024;
/// Batches that differ by less than this are of the same size.
const SAME_BATCH: f64 = 0.05;

/// How a run was done, and how fast it was.
#[derive(Clone, Debug, PartialEq)]
pub struct Configuration {
    /// The name of the recording.
    pub name: String,
    /// Stages of the pipeline; 1 without one.
    pub stages: usize,
    /// Copies of the model.
    pub copies: usize,
    /// Micro-batches of a step, if reported.
    pub micro_batches: Option<usize>,
    /// Blocks of each stage, the first one first, if all are reported.
    pub split: Option<Vec<usize>>,
    /// The median step in nanoseconds.
    pub step_ns: f64,
    /// Seeds or graphs of a step over all copies, if reported.
    pub work: Option<f64>,
    /// Other settings that are known, in words.
    pub(super) factors: BTreeMap<&'static str, String>,
}

impl Configuration {
    /// For a run; `None` without steps.
    pub fn from_run(name: &str, run: &Run) -> Option<Self> {
        let store = run.store();
        let rows: Vec<StepRow<'_>> = store.steps().all().rev().take(NEWEST).collect();
        let step_ns = median(&mut rows.iter().map(|row| row.period_ns() as f64).collect::<Vec<f64>>())?;
        let place = run.member().place();
        let (stages, copies) =
            place.map_or((1, 1), |place| (place.stages.max(1) as usize, place.copies.max(1) as usize));
        let ranks = run.ranks();
        // A session that is not a rank reports its facts, too.
        let stores = || std::iter::once(store).chain(ranks.all().iter().map(|rank| rank.store));
        let micro_batches = stores().find_map(|store| facts::count(store, Reported::MicroBatches));
        let batch = |row: &StepRow<'_>| row.batch().seeds.or(row.batch().graphs).map(|work| work as f64);
        let batch = median(&mut rows.iter().filter_map(batch).collect::<Vec<f64>>());
        let mut found = Self {
            name: name.to_owned(),
            stages,
            copies,
            micro_batches,
            split: split(store, ranks.all(), stages),
            step_ns,
            work: batch.map(|batch| batch * copies as f64),
            factors: BTreeMap::new(),
        };
        found.add_settings(store, ranks.all().first(), batch);
        Some(found)
    }

    /// Adds the other settings.
    fn add_settings(&mut self, store: &Store, first: Option<&Rank<'_>>, batch: Option<f64>) {
        let shape = match (self.stages, self.copies) {
            (1, 1) => "1 rank".to_owned(),
            (1, copies) => format!("{copies} ranks"),
            (stages, 1) => format!("{stages} stages"),
            (stages, copies) => format!("{copies} copies of {stages} stages"),
        };
        let workers = store.tracks().iter().filter(|track| track.role == TrackRole::Loader).count();
        self.factors.insert("ranks", shape);
        self.factors.insert("loader threads", workers.to_string());
        if let Some(count) = self.micro_batches {
            self.factors.insert("micro-batches", count.to_string());
        }
        if let Some(batch) = batch.filter(|batch| *batch > 0.0) {
            // Sizes that differ a little, as those of sampled batches do, are the same setting.
            let rounded = (batch.ln() / (1.0 + SAME_BATCH).ln()).round();
            let batch = if batch.fract() == 0.0 { batch } else { (1.0 + SAME_BATCH).powf(rounded).round() };
            self.factors.insert("batch", batch.to_string());
        }
        if let Some(place) = first.map(|rank| rank.place) {
            if place.threads > 0 {
                self.factors.insert("threads a rank", place.threads.to_string());
            }
            if !place.device.is_empty() {
                let kind = place.device.split_whitespace().next().unwrap_or_default();
                self.factors.insert("device", kind.to_owned());
            }
        }
        if let Some(schedule) = first.and_then(|rank| facts::schedule(rank.store)) {
            self.factors.insert("schedule", schedule.title().to_owned());
        }
    }

    /// Largest possible speed-up over one rank; one stage with micro-batches is no slower than one without.
    pub(super) fn ideal(&self) -> f64 {
        self.copies as f64 * self.ideal_stage_speed_up()
    }

    /// Largest possible speed-up of even stages over one rank, without the copies.
    pub(super) fn ideal_stage_speed_up(&self) -> f64 {
        match self.micro_batches {
            Some(count) => schedule::ideal_speed_up(self.stages, count),
            None => self.stages as f64,
        }
    }

    /// The time of a batch with this split, in units of a block's time: `(B + (M - 1) b) / M` by the recurrence, with B
    /// blocks in all and b in the largest stage. `None` if the split or, with several stages, the micro-batches are
    /// unknown.
    pub(super) fn blocks_in_turn(&self) -> Option<f64> {
        let split = self.split.as_ref()?;
        let all = split.iter().sum::<usize>() as f64;
        let largest = split.iter().copied().max()? as f64;
        let micro_batches = if self.stages > 1 { self.micro_batches? as f64 } else { 1.0 };
        Some((all + (micro_batches - 1.0) * largest) / micro_batches)
    }

    /// The configuration in words.
    pub(super) fn shape(&self) -> String {
        let stages = if self.stages > 1 { format!("{} stages", self.stages) } else { String::new() };
        let copies = if self.copies > 1 { format!("{} copies", self.copies) } else { String::new() };
        let with = |count: usize| if self.stages > 1 { format!(" with {count} micro-batches") } else { String::new() };
        let both = [copies, stages].into_iter().filter(|part| !part.is_empty()).collect::<Vec<String>>().join(" of ");
        let both = if both.is_empty() { "one rank".to_owned() } else { both };
        format!("{both}{}", self.micro_batches.map(with).unwrap_or_default())
    }
}

/// Blocks of each stage, as reported by the rank that computes it, or by one rank for all.
fn split(store: &Store, ranks: &[Rank<'_>], stages: usize) -> Option<Vec<usize>> {
    let own = |stage: usize| {
        let of_stage = ranks.iter().filter(|rank| rank.place.stage as usize == stage);
        of_stage.filter_map(|rank| facts::count(rank.store, Reported::Blocks)).next()
    };
    let of = |stage: usize| {
        let alone = || (stages == 1).then(|| facts::count(store, Reported::Blocks)).flatten();
        facts::count(store, Reported::BlocksOfStage(stage as u32)).or_else(|| own(stage)).or_else(alone)
    };
    (0..stages.min(MAX_STAGES)).map(of).collect()
}
