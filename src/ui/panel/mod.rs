//! The parts that views are made of, and what is around them: header, row of views, footer.

pub mod death;
pub mod footer;
pub mod gauges;
pub mod hardware;
pub mod header;
pub mod layout;
pub mod percentiles;
pub mod phases;
pub mod readout;
pub mod step_detail;
pub mod steps;
pub mod strips;
pub mod tabs;
pub mod tiny;
