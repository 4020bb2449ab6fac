//! Columns of a row in registers: a fixed number of lanes, of which the last may not be wanted.

#![expect(clippy::manual_memcpy, reason = "fixed-size lanes: the form that stays in registers, see `aggregate`")]

use crate::kernels::Stored;

/// `N` values from `start` on, of which `count` are wanted. The others are whatever follows in memory, or 0 at the end
/// of the slice: reading a whole vector and using a part of it is faster than reading the part.
#[inline(always)]
pub(super) fn load_wide<T: Stored, const N: usize>(from: &[T], start: usize, count: usize) -> [T::Wide; N] {
    let mut values = [T::Wide::default(); N];
    if let Some(from) = from.get(start..start + N) {
        for lane in 0..N {
            values[lane] = from[lane].widen();
        }
    } else {
        for (value, from) in values.iter_mut().zip(&from[start..start + count]) {
            *value = from.widen();
        }
    }
    values
}

#[inline(always)]
pub(super) fn widened<T: Stored, const N: usize>(from: &[T; N]) -> [T::Wide; N] {
    let mut values = [T::Wide::default(); N];
    for lane in 0..N {
        values[lane] = from[lane].widen();
    }
    values
}

#[inline(always)]
pub(super) fn load<T: Copy + Default, const N: usize>(from: &[T], start: usize) -> [T; N] {
    let from = &from[start..start + N];
    let mut values = [T::default(); N];
    for lane in 0..N {
        values[lane] = from[lane];
    }
    values
}

#[inline(always)]
pub(super) fn narrowed<T: Stored, const N: usize>(wide: [T::Wide; N]) -> [T; N] {
    let mut values = [T::default(); N];
    for lane in 0..N {
        values[lane] = T::narrow(wide[lane]);
    }
    values
}

/// The first `count` of the lanes.
#[inline(always)]
pub(super) fn store<T: Copy, const N: usize>(to: &mut [T], start: usize, count: usize, values: [T; N]) {
    let to = &mut to[start..start + count];
    if count == N {
        for lane in 0..N {
            to[lane] = values[lane];
        }
    } else {
        copy_few(to, &values[..count]);
    }
}

/// Copies less than 64 numbers in parts of fixed sizes: a loop would become a call of memcpy for a few bytes.
#[inline(always)]
fn copy_few<T: Copy>(to: &mut [T], from: &[T]) {
    let mut done = 0;
    macro_rules! part {
        ($size:literal) => {
            if from.len() & $size != 0 {
                to[done..done + $size].copy_from_slice(&from[done..done + $size]);
                done += $size;
            }
        };
    }
    part!(32);
    part!(16);
    part!(8);
    part!(4);
    part!(2);
    if from.len() & 1 != 0 {
        to[done] = from[done];
    }
}
