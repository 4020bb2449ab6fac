//! Starts a training: the options that every training has, what they open (device, session, faults on purpose), and the
//! ranks of a training that has several ([`Launch`]).

mod alike;
mod device;
mod facts;
mod gpus;
mod hosts;
mod join;
mod options;
mod ranks;
mod refused;
mod start;

pub use alike::Settings;
pub(crate) use alike::given;
#[cfg(test)]
pub(crate) use alike::{MAY_DIFFER, difference, written};
pub use device::DeviceChoice;
pub use facts::Facts;
pub use hosts::available_cores;
pub use options::RunOptions;
pub(crate) use options::at_least_one;
pub use ranks::{Engine, RankOptions, Shard, launched_by_mpi};
pub use refused::EndsWhenRefused;
pub(crate) use refused::training_begins;
pub use start::{Launch, Rank};
