//! Reports as documents: of one recording, of several side by side, of two that are compared. All begin with the verdict
//! and the findings; tables follow.

mod comparison;
mod findings;
mod head;
mod run;
mod tables;
