//! Charts and what they are made of: bars over steps, percentile curves, histograms, lanes of spans, series over time.

pub mod bars;
pub mod braille;
pub mod curve;
pub mod flags;
pub mod histogram;
pub mod labels;
pub mod lanes;
pub mod scale;
pub mod spark;
pub mod step_chart;
pub mod time_axis;
