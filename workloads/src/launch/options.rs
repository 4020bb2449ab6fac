//! The options that every training has.

use std::fs::{self, File};
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};

use candle_core::Device;
use clap::Args;
use gnntop_probe::{Place, Session, TrackRole, Warning};

use super::{DeviceChoice, Settings};
use crate::inject::{self, Injection, Injector};
use crate::train::{InvalidOption, Observer, Summary, TrainError, Training, keep_freed_memory, train};
use gnntop_data::loading::{Delay, UsualStep};
use gnntop_nn::cuda;
use gnntop_nn::device::DeviceError;
use gnntop_nn::subnormals::{Subnormals, set_subnormals};

/// How long and how a training runs, whatever the model.
#[derive(Clone, Debug, Args)]
pub struct RunOptions {
    /// Epochs to train.
    #[arg(long, value_name = "N", value_parser = at_least_one)]
    pub epochs: Option<usize>,
    /// Stop after this many steps.
    #[arg(long, value_name = "N")]
    pub steps: Option<u64>,
    /// Initial learning rate.
    #[arg(long, value_name = "RATE", value_parser = learning_rate)]
    pub learning_rate: Option<f64>,
    /// Where to compute: cpu, cuda or cuda:N (NVIDIA GPUs, in a build with CUDA).
    #[arg(long, value_name = "DEVICE", default_value_t)]
    pub device: DeviceChoice,
    /// Let a GPU multiply matrices with 10 bits of mantissa instead of 23 (TF32), which is faster.
    #[arg(long)]
    pub tf32: bool,
    /// Wait for the GPU at both ends of every phase, so that host times are the GPU's. Slows training; a control.
    #[arg(long)]
    pub sync: bool,
    /// Seed of parameters, order and generated data.
    #[arg(long, value_name = "N", default_value_t = 1234)]
    pub seed: u64,
    /// Keep subnormal numbers instead of flushing them to zero: shows how slow they make deep stacks.
    #[arg(long)]
    pub keep_subnormals: bool,
    /// Publish without hardware readings, to measure their cost.
    #[arg(long)]
    pub no_sensors: bool,
    /// Make something go wrong, such as stall:130ms@every=40; --help lists the causes.
    #[arg(long, value_name = "CAUSE", long_help = inject::HELP)]
    pub inject: Vec<Injection>,
    /// Write to a recording instead of publishing a live session.
    #[arg(long, value_name = "FILE")]
    pub record: Option<PathBuf>,
    /// The usual step, which times of `inject` may be multiples of.
    #[arg(skip)]
    pub(crate) usual_step: UsualStep,
    /// The options that ranks must share, of all options of the training.
    #[arg(skip)]
    pub(crate) given: Settings,
}

impl RunOptions {
    /// Prepares threads and memory and starts to publish as `name`.
    pub(crate) fn start(&self, name: &str, observer: &mut dyn Observer) -> Session {
        self.prepare();
        let builder = Session::builder(name).on_warning(observer.warning());
        let builder = if self.no_sensors { builder.sensors(None) } else { builder };
        match &self.record {
            Some(file) => builder.record_to(file),
            None => builder,
        }
        .start()
    }

    /// The same for one of several ranks, on a thread of its pool. One rank per host samples the hardware.
    pub(crate) fn start_rank(
        &self,
        name: &str,
        place: Place,
        samples_hardware: bool,
        warning: impl FnMut(&Warning) + Send + 'static,
    ) -> Session {
        self.prepare();
        let rank = place.rank;
        let mut builder = Session::builder(name).on_warning(warning).place(place);
        if !samples_hardware {
            builder = builder.sensors(None);
        }
        match &self.record {
            Some(file) => builder.record_to(rank_file(file, rank)),
            None => builder,
        }
        .start()
    }

    /// Joins the recordings of several ranks: a recording holds the sessions of a run one after the other.
    ///
    /// # Errors
    /// A file cannot be read or written; ranks' files that are not yet part of the first one stay.
    pub(crate) fn join_recordings(&self, ranks: usize) -> io::Result<()> {
        let Some(first) = &self.record else { return Ok(()) };
        let mut whole = File::options().append(true).open(first)?;
        for rank in 1..ranks {
            let own = rank_file(first, u32::try_from(rank).unwrap_or(u32::MAX));
            io::copy(&mut File::open(&own)?, &mut whole)?;
            fs::remove_file(&own)?;
        }
        Ok(())
    }

    /// Prepares the threads of this pool and the allocator for training.
    fn prepare(&self) {
        keep_freed_memory();
        set_subnormals(if self.keep_subnormals { Subnormals::Keep } else { Subnormals::Flush });
    }

    /// Opens the device to train on.
    pub(crate) fn open_device(&self) -> Result<Device, DeviceError> {
        if self.tf32 && !self.device.is_cuda() {
            return Err(DeviceError::Unsupported("--tf32 needs a GPU; add --device cuda, or remove --tf32"));
        }
        if self.sync && !self.device.is_cuda() {
            return Err(DeviceError::Unsupported("--sync needs a GPU; add --device cuda, or remove --sync"));
        }
        let device = self.device.open()?;
        cuda::allow_tf32(self.tf32);
        Ok(device)
    }

    /// Starts to publish the device's time and memory on the calling thread's track, if it is a GPU.
    ///
    /// # Errors
    /// The driver refuses.
    pub(crate) fn observe(&self, device: &Device) -> candle_core::Result<()> {
        crate::gpu::observe(device, &self.device.to_string(), self.sync)
    }

    /// Publishes as `name`, including the device, while `train` trains on the calling thread.
    ///
    /// # Errors
    /// The driver refuses, or `train` fails.
    pub(crate) fn published(
        &self,
        name: &str,
        device: &Device,
        observer: &mut dyn Observer,
        train: impl FnOnce(&mut dyn Observer) -> Result<Summary, TrainError>,
    ) -> Result<Summary, TrainError> {
        let session = self.start(name, observer);
        let _track = session.track("train", TrackRole::Training);
        self.observe(device)?;
        train(observer)
    }

    /// Trains through these epochs on one rank (its number and the number of ranks), with the injections around the
    /// steps.
    ///
    /// # Errors
    /// An injection names a rank that does not exist, or a step fails.
    pub(crate) fn train(
        &self,
        training: &mut dyn Training,
        epochs: Range<u64>,
        rank: (u32, u32),
        observer: &mut dyn Observer,
    ) -> Result<Summary, TrainError> {
        let mut injector = self.injector(rank, observer)?;
        train(training, &mut injector, epochs, self.max_steps(), observer)
    }

    /// Starts the injections of one rank (its number and the number of ranks).
    ///
    /// # Errors
    /// An injection names a rank that does not exist.
    pub(crate) fn injector(&self, rank: (u32, u32), observer: &mut dyn Observer) -> Result<Injector, TrainError> {
        Injector::start(&self.inject, rank, &self.usual_step, observer)
    }

    /// How much longer this rank's loader takes for a batch.
    pub(crate) fn loader_delay(&self, rank: u32) -> Delay {
        inject::loader_delay(&self.inject, rank, &self.usual_step)
    }

    /// The largest number of steps to do.
    pub(crate) fn max_steps(&self) -> u64 {
        self.steps.unwrap_or(u64::MAX)
    }
}

/// Where a rank records, given the first rank's path: `a.gnntop`, `a.rank1.gnntop`, ...
fn rank_file(first: &Path, rank: u32) -> PathBuf {
    if rank == 0 {
        return first.to_owned();
    }
    let ending = first.extension().map_or_else(String::new, |ending| format!(".{}", ending.to_string_lossy()));
    first.with_extension(format!("rank{rank}{ending}"))
}

/// A number that must not be 0, for clap.
pub(crate) fn at_least_one(text: &str) -> Result<usize, InvalidOption> {
    match text.parse() {
        Ok(0) => Err(InvalidOption("must be at least 1".to_owned())),
        Ok(number) => Ok(number),
        Err(error) => Err(InvalidOption(error.to_string())),
    }
}

fn learning_rate(text: &str) -> Result<f64, InvalidOption> {
    match text.parse::<f64>() {
        Ok(rate) if rate.is_finite() && rate >= 0.0 => Ok(rate),
        Ok(_) => Err(InvalidOption("must be a number of at least 0".to_owned())),
        Err(error) => Err(InvalidOption(error.to_string())),
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[test]
    fn every_rank_has_a_recording_of_its_own() {
        let names = |file: &str| [0, 1, 12].map(|rank| rank_file(Path::new(file), rank).display().to_string());
        assert_eq!(names("x/a.gnntop"), ["x/a.gnntop", "x/a.rank1.gnntop", "x/a.rank12.gnntop"]);
        assert_eq!(names("a"), ["a", "a.rank1", "a.rank12"]);
    }

    #[derive(clap::Parser)]
    struct Arguments {
        #[command(flatten)]
        run: RunOptions,
    }

    #[test]
    fn recordings_of_ranks_become_one() {
        let folder = tempfile::tempdir().unwrap();
        let first = folder.path().join("a.gnntop");
        for (rank, text) in [(0, "zero "), (1, "one "), (2, "two")] {
            fs::write(rank_file(&first, rank), text).unwrap();
        }
        let run = Arguments::try_parse_from(["test", "--record", first.to_str().unwrap()]).unwrap().run;
        run.join_recordings(3).unwrap();
        assert_eq!(fs::read_to_string(&first).unwrap(), "zero one two");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
        assert!(run.join_recordings(2).is_err());
    }

    #[test]
    fn senseless_numbers_are_refused() {
        assert!(at_least_one("0").is_err() && at_least_one("-1").is_err() && at_least_one("3").is_ok());
        assert!(learning_rate("nan").is_err() && learning_rate("-1").is_err() && learning_rate("1e-3").is_ok());
    }
}
