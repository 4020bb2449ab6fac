//! Vectors of the kernels' numbers with a fused multiply-add, which the compiler does not make of `a * b + c` by
//! itself. An interface to pulp's `Simd` that is the same for f32 and f64.

use pulp::Simd;

use super::Wide;

/// A number type in vectors as wide as the CPU has them.
pub trait Lanes: Wide {
    /// A vector on the CPU that `S` stands for.
    type Vector<S: Simd>: Copy + Send + Sync;

    /// The slice in whole vectors, without the remainder.
    fn vectors<S: Simd>(slice: &[Self]) -> &[Self::Vector<S>];

    /// As [`vectors`](Self::vectors).
    fn vectors_mut<S: Simd>(slice: &mut [Self]) -> &mut [Self::Vector<S>];

    /// The same number in every lane.
    fn splat<S: Simd>(simd: S, value: Self) -> Self::Vector<S>;

    /// `a b + c`, lane by lane, rounded once where the CPU can.
    fn multiply_add<S: Simd>(simd: S, a: Self::Vector<S>, b: Self::Vector<S>, c: Self::Vector<S>) -> Self::Vector<S>;
}

/// Lanes of a vector.
#[inline(always)]
pub(crate) const fn lanes<T: Lanes, S: Simd>() -> usize {
    size_of::<T::Vector<S>>() / size_of::<T>()
}

macro_rules! lanes_of {
    ($number:ty, $vector:ident, $as_simd:ident, $as_mut_simd:ident, $splat:ident, $multiply_add:ident) => {
        impl Lanes for $number {
            type Vector<S: Simd> = S::$vector;

            #[inline(always)]
            fn vectors<S: Simd>(slice: &[Self]) -> &[S::$vector] {
                S::$as_simd(slice).0
            }

            #[inline(always)]
            fn vectors_mut<S: Simd>(slice: &mut [Self]) -> &mut [S::$vector] {
                S::$as_mut_simd(slice).0
            }

            #[inline(always)]
            fn splat<S: Simd>(simd: S, value: Self) -> S::$vector {
                simd.$splat(value)
            }

            #[inline(always)]
            fn multiply_add<S: Simd>(simd: S, a: S::$vector, b: S::$vector, c: S::$vector) -> S::$vector {
                simd.$multiply_add(a, b, c)
            }
        }
    };
}

lanes_of!(f32, f32s, as_simd_f32s, as_mut_simd_f32s, splat_f32s, mul_add_e_f32s);
lanes_of!(f64, f64s, as_simd_f64s, as_mut_simd_f64s, splat_f64s, mul_add_e_f64s);
