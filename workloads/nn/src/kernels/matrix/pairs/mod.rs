//! Products of f32 matrices whose numbers are rounded to bf16 first, on processors that multiply those (AVX-512 BF16):
//! twice as many at once as of f32. Sums are in f32.
//!
//! The instruction adds two products to each sum: of a number and its neighbour along the inner dimension. So both operands
//! are arranged in such pairs, 32 bits each. Subnormal numbers count as 0.

#[cfg(target_arch = "x86_64")]
mod product;
#[cfg(target_arch = "x86_64")]
mod rounded;
#[cfg(target_arch = "x86_64")]
pub(super) use product::{Packed, is_available, multiply};

#[cfg(not(target_arch = "x86_64"))]
mod absent;
#[cfg(not(target_arch = "x86_64"))]
pub(super) use absent::{Packed, is_available, multiply};
