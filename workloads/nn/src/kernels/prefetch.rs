//! Calls for memory before it is needed.

/// Bytes of a cache line.
const LINE: usize = 64;
/// Lines of a row that are asked for; the hardware notices the sequence and fetches the rest.
const LINES_AHEAD: usize = 12;

/// Asks for the beginning of a row of `width` elements, from `start` on.
#[inline(always)]
pub fn prefetch_row<T>(data: &[T], start: usize, width: usize) {
    let step = (LINE / size_of::<T>()).max(1);
    for line in 0..width.div_ceil(step).min(LINES_AHEAD) {
        if let Some(element) = data.get(start + line * step) {
            prefetch(element);
        }
    }
}

#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn prefetch<T>(element: &T) {
    use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
    // SAFETY: a prefetch reads nothing as far as the program can see and cannot fault; the address is that of a live
    // reference, and SSE is part of every x86-64.
    unsafe { _mm_prefetch::<_MM_HINT_T0>(std::ptr::from_ref(element).cast()) };
}

#[cfg(not(target_arch = "x86_64"))]
#[inline(always)]
fn prefetch<T>(_: &T) {}
