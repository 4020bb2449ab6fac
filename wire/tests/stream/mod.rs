//! Whole streams, through the public interface: what is written comes back, what is damaged costs only
//! itself, and nothing that bytes can say makes decoding panic, run away or take more memory than it may.

mod arbitrary;
mod by_hand;
mod foreign;
mod memory;
mod packed;
mod past;
mod properties;
