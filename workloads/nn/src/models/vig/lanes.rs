//! Vector arithmetic of the kernels: a few lanes at a time, with the exact GELU and its slope.
//!
//! A [`Kernel`] is written once against [`Lanes`]. In `f32` it is compiled for each instruction set and the best one
//! is chosen when it runs; in `f64`, which only checks need, it runs one number at a time.

use candle_core::cpu::erf::{erf_f64, erfc_f64};
use pulp::{Simd, WithSimd};

use crate::kernels::Element;

/// Nodes of a group: one vector of the widest instruction set.
pub(super) const GROUP: usize = 16;

/// Arithmetic on several numbers at once. All methods are compiled into the kernel that calls them.
pub(super) trait Lanes: Copy {
    type Number: Element;
    type Vector: Copy;
    /// Vectors that hold a [`GROUP`] of numbers.
    const PER_GROUP: usize;

    /// The whole vectors at the start of `from`.
    fn vectors(from: &[Self::Number]) -> &[Self::Vector];
    fn vectors_mut(from: &mut [Self::Number]) -> &mut [Self::Vector];
    fn splat(self, value: Self::Number) -> Self::Vector;
    fn add(self, a: Self::Vector, b: Self::Vector) -> Self::Vector;
    fn multiply(self, a: Self::Vector, b: Self::Vector) -> Self::Vector;
    /// `a b + c`, in one rounding where the CPU can.
    fn multiply_add(self, a: Self::Vector, b: Self::Vector, c: Self::Vector) -> Self::Vector;
    /// Sum of the lanes.
    fn sum(self, a: Self::Vector) -> Self::Number;
    /// `x Phi(x)`, with the normal distribution `Phi`.
    fn gelu(self, x: Self::Vector) -> Self::Vector;
    /// [`gelu`](Self::gelu) and its derivative `Phi(x) + x phi(x)`.
    fn gelu_and_slope(self, x: Self::Vector) -> (Self::Vector, Self::Vector);
}

/// Work that is compiled for every instruction set. `run` must be always inlined.
pub(super) trait Kernel<T> {
    fn run<L: Lanes<Number = T>>(self, lanes: L);
}

/// Number types that kernels run on.
pub trait Vectorised: Element {
    /// Runs `kernel` with the best arithmetic for this type.
    #[expect(private_bounds, reason = "kernels are this module's own business")]
    fn run<K: Kernel<Self>>(kernel: K);
}

impl Vectorised for f32 {
    #[expect(private_bounds, reason = "kernels are this module's own business")]
    fn run<K: Kernel<Self>>(kernel: K) {
        pulp::Arch::new().dispatch(Dispatched(kernel));
    }
}

impl Vectorised for f64 {
    #[expect(private_bounds, reason = "kernels are this module's own business")]
    fn run<K: Kernel<Self>>(kernel: K) {
        kernel.run(Double);
    }
}

struct Dispatched<K>(K);

impl<K: Kernel<f32>> WithSimd for Dispatched<K> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        self.0.run(Single(simd));
    }
}

/// `f32` in the vectors of an instruction set.
#[derive(Clone, Copy)]
struct Single<S>(S);

/// Beyond this the tail `Phi(-x)` is below 1e-9 and counts as that of this.
const REACH: f32 = 6.0;
/// `-log2(e) / 2`: `exp(-x^2 / 2) = 2^(this x^2)`.
const HALF_LOG2_E: f32 = -std::f32::consts::LOG2_E / 2.0;
/// Adding `1.5 * 2^23` to a small number rounds it to an integer, which is then in the low bits.
const ROUND: f32 = 12_582_912.0;
/// `2^r` for `|r| <= 1/2`, constant term 1: relative error 9e-8. Fitted by iterated least squares.
#[expect(clippy::approx_constant, reason = "fitted: near ln 2, and better here than ln 2")]
const EXP2: [f32; 6] = [1.0, 0.693_147, 0.240_222_42, 0.055_507_33, 0.009_671_51, 0.001_326_504_2];
/// `Phi(-a) exp(a^2 / 2)` for `0 <= a <= REACH`. Fitted so that `max(1, a) exp(-a^2 / 2)` times its error is at most
/// 3.4e-8 everywhere, with the constant term 1/2 exact.
const TAIL: [f32; 12] = [
    0.5,
    -0.398_940_3,
    0.249_963_37,
    -0.132_747_23,
    0.061_757_45,
    -0.025_213_68,
    0.008_765_138,
    -0.002_453_057,
    5.145_318_3e-4,
    -7.410_701e-5,
    6.429_826e-6,
    -2.506_874_5e-7,
];
/// `1 / sqrt(2 pi)`, the normal density at 0.
const DENSITY: f64 = 0.398_942_280_401_432_7;

/// What [`Single::tail`] finds out about a vector.
struct Tail<V> {
    /// Magnitude up to [`REACH`].
    a: V,
    /// `exp(-a^2 / 2)`.
    density: V,
    /// [`TAIL`] at `a`.
    tail: V,
}

impl<S: Simd> Single<S> {
    /// NaN stays NaN.
    #[inline(always)]
    fn tail(self, x: S::f32s) -> Tail<S::f32s> {
        let s = self.0;
        let (scale, round) = (s.splat_f32s(HALF_LOG2_E), s.splat_f32s(ROUND));
        let a = self.magnitude(x);
        let square = s.mul_f32s(a, a);
        let rounded = s.mul_add_e_f32s(square, scale, round);
        let minus_whole = s.sub_f32s(round, rounded);
        let power = self.polynomial(&EXP2, s.mul_add_e_f32s(square, scale, minus_whole));
        let exponent = s.wrapping_dyn_shl_u32s(s.transmute_u32s_f32s(rounded), s.splat_u32s(23));
        let density = s.transmute_f32s_u32s(s.add_u32s(s.transmute_u32s_f32s(power), exponent));
        Tail { a, density, tail: self.polynomial(&TAIL, a) }
    }

    /// `|x|` up to [`REACH`].
    #[inline(always)]
    fn magnitude(self, x: S::f32s) -> S::f32s {
        let s = self.0;
        let magnitude = s.and_u32s(s.transmute_u32s_f32s(x), s.splat_u32s(i32::MAX as u32));
        let a = s.min_f32s(s.splat_f32s(REACH), s.transmute_f32s_u32s(magnitude));
        if S::IS_SCALAR {
            // Rust's minimum drops NaN; that of vector instructions returns its second operand.
            return s.select_f32s(s.equal_f32s(x, x), a, x);
        }
        a
    }

    /// By Horner's scheme. Shorter chains of operations (Estrin, several vectors in step) were tried and are slower.
    #[inline(always)]
    fn polynomial<const C: usize>(self, coefficients: &[f32; C], x: S::f32s) -> S::f32s {
        let mut value = self.0.splat_f32s(coefficients[C - 1]);
        for power in (0..C - 1).rev() {
            value = self.0.mul_add_e_f32s(value, x, self.0.splat_f32s(coefficients[power]));
        }
        value
    }

    /// `gelu(x) = max(x, 0) - |x| Phi(-|x|)`: without the cancellation of `1 + erf` where x is negative.
    #[inline(always)]
    fn value(self, x: S::f32s, tail: &Tail<S::f32s>) -> S::f32s {
        let s = self.0;
        let positive = s.max_f32s(s.splat_f32s(0.0), x);
        s.negate_mul_add_e_f32s(s.mul_f32s(tail.a, tail.density), tail.tail, positive)
    }
}

impl<S: Simd> Lanes for Single<S> {
    type Number = f32;
    type Vector = S::f32s;
    const PER_GROUP: usize = GROUP / S::F32_LANES;

    #[inline(always)]
    fn vectors(from: &[f32]) -> &[S::f32s] {
        S::as_simd_f32s(from).0
    }

    #[inline(always)]
    fn vectors_mut(from: &mut [f32]) -> &mut [S::f32s] {
        S::as_mut_simd_f32s(from).0
    }

    #[inline(always)]
    fn splat(self, value: f32) -> S::f32s {
        self.0.splat_f32s(value)
    }

    #[inline(always)]
    fn add(self, a: S::f32s, b: S::f32s) -> S::f32s {
        self.0.add_f32s(a, b)
    }

    #[inline(always)]
    fn multiply(self, a: S::f32s, b: S::f32s) -> S::f32s {
        self.0.mul_f32s(a, b)
    }

    #[inline(always)]
    fn multiply_add(self, a: S::f32s, b: S::f32s, c: S::f32s) -> S::f32s {
        self.0.mul_add_e_f32s(a, b, c)
    }

    #[inline(always)]
    fn sum(self, a: S::f32s) -> f32 {
        self.0.reduce_sum_f32s(a)
    }

    #[inline(always)]
    fn gelu(self, x: S::f32s) -> S::f32s {
        self.value(x, &self.tail(x))
    }

    /// With the same exponential: for negative x the slope is `Phi(-a) - a phi(a)`, and slopes at x and -x add up to 1.
    #[inline(always)]
    fn gelu_and_slope(self, x: S::f32s) -> (S::f32s, S::f32s) {
        let (s, tail) = (self.0, self.tail(x));
        let half = s.splat_f32s(0.5);
        let factor = s.mul_add_e_f32s(tail.a, s.splat_f32s(-DENSITY as f32), tail.tail);
        let distance = s.negate_mul_add_e_f32s(tail.density, factor, half);
        let sign = s.and_u32s(s.transmute_u32s_f32s(x), s.splat_u32s(1 << 31));
        let signed = s.xor_u32s(s.transmute_u32s_f32s(distance), sign);
        (self.value(x, &tail), s.add_f32s(half, s.transmute_f32s_u32s(signed)))
    }
}

/// `f64`, one number at a time.
#[derive(Clone, Copy)]
struct Double;

impl Lanes for Double {
    type Number = f64;
    type Vector = f64;
    const PER_GROUP: usize = GROUP;

    #[inline(always)]
    fn vectors(from: &[f64]) -> &[f64] {
        from
    }

    #[inline(always)]
    fn vectors_mut(from: &mut [f64]) -> &mut [f64] {
        from
    }

    #[inline(always)]
    fn splat(self, value: f64) -> f64 {
        value
    }

    #[inline(always)]
    fn add(self, a: f64, b: f64) -> f64 {
        a + b
    }

    #[inline(always)]
    fn multiply(self, a: f64, b: f64) -> f64 {
        a * b
    }

    #[inline(always)]
    fn multiply_add(self, a: f64, b: f64, c: f64) -> f64 {
        a * b + c
    }

    #[inline(always)]
    fn sum(self, a: f64) -> f64 {
        a
    }

    #[inline(always)]
    fn gelu(self, x: f64) -> f64 {
        x * normal(x)
    }

    #[inline(always)]
    fn gelu_and_slope(self, x: f64) -> (f64, f64) {
        let below = normal(x);
        (x * below, below + x * DENSITY * (-0.5 * x * x).exp())
    }
}

/// Normal distribution function.
fn normal(x: f64) -> f64 {
    let scaled = x * std::f64::consts::FRAC_1_SQRT_2;
    if x < 0.0 { 0.5 * erfc_f64(-scaled) } else { 0.5 + 0.5 * erf_f64(scaled) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// GELU and slope in the arithmetic of CPUs without vector instructions.
    fn scalar(x: f32) -> (f32, f32) {
        Single(pulp::Scalar::new()).gelu_and_slope(x)
    }

    #[cfg(target_arch = "x86_64")]
    struct Slopes<'a>(&'a [f32], &'a mut [f32]);

    #[cfg(target_arch = "x86_64")]
    impl Kernel<f32> for Slopes<'_> {
        #[inline(always)]
        fn run<L: Lanes<Number = f32>>(self, lanes: L) {
            for (out, &x) in L::vectors_mut(self.1).iter_mut().zip(L::vectors(self.0)) {
                *out = lanes.gelu_and_slope(x).1;
            }
        }
    }

    #[cfg(target_arch = "x86_64")]
    #[test]
    fn narrower_vectors_give_the_same_numbers() {
        let Some(narrow) = pulp::x86::V3::try_new() else { return };
        let mut x: Vec<f32> = (-512..511).map(|step| step as f32 * 0.0137).collect();
        x.push(f32::NAN);
        let (mut best, mut other) = (vec![0.0; x.len()], vec![0.0; x.len()]);
        f32::run(Slopes(&x, &mut best));
        Simd::vectorize(narrow, Dispatched(Slopes(&x, &mut other)));
        assert_eq!(best[..1023], other[..1023]);
        assert!(best[1023].is_nan() && other[1023].is_nan());
    }

    #[test]
    fn the_scalar_arithmetic_agrees_and_keeps_nan() {
        for x in (-700..700).map(|step| step as f32 * 0.01) {
            let (value, slope) = scalar(x);
            let (exact, exact_slope) = Double.gelu_and_slope(f64::from(x));
            assert!((f64::from(value) - exact).abs() < 5e-7, "gelu({x}) = {value}, not {exact}");
            assert!((f64::from(slope) - exact_slope).abs() < 5e-7, "slope at {x} = {slope}, not {exact_slope}");
        }
        let (value, slope) = scalar(f32::NAN);
        assert!(value.is_nan() && slope.is_nan());
    }
}
