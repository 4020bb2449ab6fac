//! The number types that tensors hold, and the wider ones that kernels add up in.
//!
//! bf16 and f16 are storage only: a kernel widens what it loads to f32, computes, and rounds once when it stores.
//! The conversions are written out in integer arithmetic without branches, because those of the `half` crate look the
//! CPU up at run time and would keep a loop from being vectorised. They do not depend on the subnormal mode.

use half::{bf16, f16};

use super::Element;

/// A number type of the kernels' sums: [`Element`] with the exponential function.
pub trait Wide: Element + Stored<Wide = Self> {
    /// What features may be held in where products are of bf16 numbers: bf16 for f32, f64 for itself.
    type Rounded: Stored<Wide = Self>;

    /// Numbers of bf16, if that is [`Rounded`](Self::Rounded).
    fn halves(values: &[Self::Rounded]) -> Option<&[bf16]>;

    /// Numbers of bf16 as such, if that is [`Rounded`](Self::Rounded).
    fn of_halves(values: &[bf16]) -> Option<&[Self::Rounded]>;

    /// `e` to the power of the number, within two units in the last place; 0 for very negative numbers.
    #[must_use]
    fn exponential(self) -> Self;
}

/// A number type that a tensor of the graph kernels may hold: f32, f64, bf16 or f16.
pub trait Stored: candle_core::FloatDType + Default + std::fmt::Debug {
    /// The number type that the kernels compute in.
    type Wide: Wide;

    /// The same number, exactly.
    #[must_use]
    fn widen(self) -> Self::Wide;

    /// The nearest number of this type, ties to even; NaN stays NaN.
    #[must_use]
    fn narrow(wide: Self::Wide) -> Self;

    /// All numbers of a vector; costs nothing where both types are the same.
    #[must_use]
    fn narrow_all(wide: Vec<Self::Wide>) -> Vec<Self>;
}

macro_rules! stored_as_itself {
    ($number:ty) => {
        impl Stored for $number {
            type Wide = Self;

            #[inline(always)]
            fn widen(self) -> Self {
                self
            }

            #[inline(always)]
            fn narrow(wide: Self) -> Self {
                wide
            }

            fn narrow_all(wide: Vec<Self>) -> Vec<Self> {
                wide
            }
        }
    };
}

stored_as_itself!(f32);
stored_as_itself!(f64);

impl Stored for bf16 {
    type Wide = f32;

    #[inline(always)]
    fn widen(self) -> f32 {
        f32::from_bits(u32::from(self.to_bits()) << 16)
    }

    #[inline(always)]
    fn narrow(wide: f32) -> Self {
        let bits = wide.to_bits();
        let rounded = bits.wrapping_add(0x7fff + ((bits >> 16) & 1)) >> 16;
        let nan = (bits >> 16) | 0x40;
        let is_nan = bits & 0x7fff_ffff > 0x7f80_0000;
        Self::from_bits(if is_nan { nan } else { rounded } as u16)
    }

    fn narrow_all(wide: Vec<f32>) -> Vec<Self> {
        wide.into_iter().map(Self::narrow).collect()
    }
}

impl Stored for f16 {
    type Wide = f32;

    /// Normal numbers move their bits and shift the exponent's bias; subnormal ones are small integers times `2^-24`.
    #[inline(always)]
    fn widen(self) -> f32 {
        /// Difference of the exponents' biases, 127 - 15, in place.
        const REBIAS: u32 = 112 << 23;
        let bits = u32::from(self.to_bits());
        let (sign, magnitude) = ((bits & 0x8000) << 16, bits & 0x7fff);
        let normal = (magnitude << 13) + REBIAS;
        let special = (magnitude << 13) | 0x7f80_0000;
        let small = (magnitude as i32 as f32 * f32::from_bits(0x3380_0000)).to_bits();
        let wide = if magnitude < 0x400 { small } else { normal };
        f32::from_bits(sign | if magnitude >= 0x7c00 { special } else { wide })
    }

    /// Normal results are rounded in their bits. For subnormal ones the addition of 0.5, whose last place is `2^-24`,
    /// rounds. From 65520 on the result is infinite.
    #[inline(always)]
    fn narrow(wide: f32) -> Self {
        let bits = wide.to_bits();
        let (sign, magnitude) = ((bits >> 16) & 0x8000, bits & 0x7fff_ffff);
        let normal = magnitude.wrapping_add(0xfff + ((magnitude >> 13) & 1)).wrapping_sub(112 << 23) >> 13;
        let small = (f32::from_bits(magnitude) + 0.5).to_bits().wrapping_sub(0x3f00_0000);
        let finite = if magnitude < 0x3880_0000 { small } else { normal };
        let large = if magnitude > 0x7f80_0000 { 0x7e00 } else { 0x7c00 };
        Self::from_bits((sign | if magnitude >= 0x477f_f000 { large } else { finite }) as u16)
    }

    fn narrow_all(wide: Vec<f32>) -> Vec<Self> {
        wide.into_iter().map(Self::narrow).collect()
    }
}

impl Wide for f32 {
    type Rounded = bf16;

    fn halves(values: &[bf16]) -> Option<&[bf16]> {
        Some(values)
    }

    fn of_halves(values: &[bf16]) -> Option<&[bf16]> {
        Some(values)
    }

    /// `2^n` times a polynomial on `[-ln 2 / 2, ln 2 / 2]` (Cephes `expf`), branch-free so that it is vectorised.
    #[inline(always)]
    fn exponential(self) -> Self {
        /// Beyond these the result is no normal number: 0 and infinity.
        const LOWEST: f32 = -87.3;
        const HIGHEST: f32 = 88.72;
        const LN_2_HIGH: f32 = 0.693_359_4;
        const LN_2_LOW: f32 = -2.121_944_4e-4;
        /// 1.5 * 2^23: adding it rounds to an integer, held in the low bits.
        const ROUND: f32 = 12_582_912.0;
        let x = if self < LOWEST { LOWEST } else { self };
        let x = if x > HIGHEST { HIGHEST } else { x };
        let shifted = x * std::f32::consts::LOG2_E + ROUND;
        let n = shifted - ROUND;
        let r = (x - n * LN_2_HIGH) - n * LN_2_LOW;
        let mut p = 1.987_569_1e-4;
        for coefficient in [1.398_199_9e-3, 8.333_452e-3, 4.166_579_6e-2, 1.666_666_5e-1, 0.5] {
            p = p * r + coefficient;
        }
        let mantissa = p * r * r + r + 1.0;
        // n lies in -126..=128; two factors keep each power of two a normal number.
        let n = shifted.to_bits().wrapping_sub(ROUND.to_bits()) as i32;
        let half = n >> 1;
        let power = |n: i32| f32::from_bits(((n + 127) << 23) as u32);
        let result = mantissa * power(half) * power(n - half);
        let result = if self < LOWEST { 0.0 } else { result };
        if self > HIGHEST { f32::INFINITY } else { result }
    }
}

impl Wide for f64 {
    type Rounded = Self;

    fn halves(_: &[Self]) -> Option<&[bf16]> {
        None
    }

    fn of_halves(_: &[bf16]) -> Option<&[Self]> {
        None
    }

    fn exponential(self) -> Self {
        self.exp()
    }
}
