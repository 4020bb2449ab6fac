//! Products of f32 matrices on the tile registers of newer x86 processors (AMX), to the accuracy of f32.
//!
//! The tiles multiply bf16 numbers and add up in f32, sixteen times as many at once as AVX-512 does with f32. A number of
//! f32 is split exactly enough into three of bf16, `a = a1 + a2 + a3`, each the rest of the one before, rounded. Of the
//! nine products of two such numbers the six largest are taken:
//! `a1 b1 + (a1 b2 + a2 b1) + (a1 b3 + a2 b2 + a3 b1)`; what is left out is below `2^-24` of `|a b|`, the error of one f32
//! rounding. (G. Henry, P. T. P. Tang, A. Heinecke, "Leveraging the bfloat16 Artificial Intelligence Datatype For
//! Higher-Precision Computations", 2019.) Six products at sixteen times the rate remain well ahead, where each number that
//! is split takes part in enough of them: see [`pays`].
//!
//! NaN gives NaN, and so may an infinity. Subnormal numbers count as 0.
//!
//! `unit.rs` finds out about the processor and holds the inner loop; `pack.rs` splits numbers and arranges them in tiles.

#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
mod pack;
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
mod unit;

#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
mod product;
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
pub(super) use product::{Packed, multiply, pays};

#[cfg(not(all(target_arch = "x86_64", target_os = "linux")))]
mod absent;
#[cfg(not(all(target_arch = "x86_64", target_os = "linux")))]
pub(super) use absent::{Packed, multiply, pays};
