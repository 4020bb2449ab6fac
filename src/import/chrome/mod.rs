//! From a trace in Chrome's JSON format to a recording: what `torch.profiler` exports.
//!
//! Complete events (`"ph": "X"`) become spans of their thread or GPU stream. Annotations `ProfilerStep#N` are steps;
//! annotations of the training thread with a phase's name are phases, as are torch's own for the loader and the
//! optimizer. The format is described in "Trace Event Format" (Chromium project); torch adds its categories in `cat`.

mod operators;
mod options;
mod read;
mod steps;
mod trace;

pub use operators::{Operator, Operators, operators};
pub use options::ChromeOptions;
pub use trace::trace;
