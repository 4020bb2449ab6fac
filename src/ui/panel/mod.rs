//! The parts that views are made of, and what is around them: header, row of views, footer.

pub mod death;
pub mod footer;
pub mod gauge;
pub mod hardware;
pub mod header;
pub mod layout;
pub mod percentiles;
pub mod phases;
pub mod readout;
pub mod run_gauges;
pub mod spans;
pub mod step_detail;
pub mod step_spans;
pub mod steps;
pub mod strips;
pub mod tabs;
pub mod tiny;
