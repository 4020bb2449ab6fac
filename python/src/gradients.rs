//! Denormal numbers among the gradients: what part of a sample they are, and what arithmetic with them costs here.
//!
//! Many processors compute with them a hundred times slower, which times alone do not show. Once a second, when an optimizer's
//! step begins, Python names some gradients, and a few hundred numbers of each are read. All of it counts in integers: a program
//! may have set its thread to be ended by inexact results, or look at the flags that these leave.

use std::hint::black_box;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use gnntop_probe::after;

use crate::cpython::{Object, Python, Raised, given, with_python};
use crate::events::notify;
use crate::listeners::{Listener, listener};
use crate::memory::{Address, Process};
use crate::training;
use crate::warning::catch_panic;

/// Between two looks.
const EVERY_NS: u64 = 1_000_000_000;
/// A gradient is read in this many pieces, evenly apart...
const PIECES: usize = 8;
/// ...of this many numbers.
const PIECE: usize = 64;

/// When gradients were looked at last, in ticks.
static LOOKED: AtomicU64 = AtomicU64::new(0);

/// An optimizer's step begins: tells Python, if gradients are to be looked at.
///
/// # Safety
/// As for [`Python::small`]; `optimizer` must be an object.
pub(crate) unsafe fn are_ready(python: &Python, optimizer: Object) -> Result<(), Raised> {
    let function = listener(Listener::Gradients);
    if function.is_null() || !is_due() || !training::computes() {
        return Ok(());
    }
    LOOKED.store(after::ticks(), Relaxed);
    // SAFETY: guaranteed by the caller; the reference is the argument's.
    unsafe {
        (python.keep)(optimizer);
        notify(python, function, || optimizer)
    }
}

fn is_due() -> bool {
    after::ticks_ns(after::ticks().saturating_sub(LOOKED.load(Relaxed))) >= EVERY_NS
}

/// `denormal_share(address, count, type, ...)`: of the numbers at these addresses, by a sample, in millionths; None if none can be read.
/// Types are 0 for float32, 1 for bfloat16 and 2 for float64.
pub(crate) unsafe extern "C" fn denormal_share(_: Object, arguments: *const Object, count: isize) -> Object {
    with_python(|python| {
        // SAFETY: Python calls this, with an array of as many arguments as `count` says.
        let numbers: Vec<_> = unsafe { given(arguments, count).iter().map(|it| (python.long)(*it)).collect() };
        // SAFETY: as above.
        unsafe {
            if !(python.exception)().is_null() {
                return None;
            }
            match catch_panic(None, || share(&numbers)) {
                Some(millionths) => Some((python.new_unsigned)(millionths)),
                None => Some(python.nothing()),
            }
        }
    })
}

/// `denormal_cost()`: the time of arithmetic with denormal numbers, in percent of what others take.
pub(crate) unsafe extern "C" fn denormal_cost(_: Object, _: Object) -> Object {
    // SAFETY: Python calls this.
    with_python(|python| Some(unsafe { (python.new_unsigned)(catch_panic(100, cost)) }))
}

/// How a number is stored.
#[derive(Clone, Copy, Debug)]
enum Stored {
    Single,
    Brain,
    Double,
}

impl Stored {
    fn from_number(number: i64) -> Option<Self> {
        [Self::Single, Self::Brain, Self::Double].get(usize::try_from(number).ok()?).copied()
    }

    fn len(self) -> usize {
        match self {
            Self::Single => 4,
            Self::Brain => 2,
            Self::Double => 8,
        }
    }

    /// Whether these bytes are one: no exponent, and not zero.
    fn is_denormal(self, bytes: &[u8]) -> bool {
        match self {
            Self::Single => bytes.try_into().is_ok_and(|bytes| f32::from_ne_bytes(bytes).is_subnormal()),
            Self::Brain => bytes
                .try_into()
                .is_ok_and(|bytes| f32::from_bits(u32::from(u16::from_ne_bytes(bytes)) << 16).is_subnormal()),
            Self::Double => bytes.try_into().is_ok_and(|bytes| f64::from_ne_bytes(bytes).is_subnormal()),
        }
    }
}

/// The share, in millionths, of gradients that are given by an address, how many numbers they have, and a type. Each counts as
/// many times as it has numbers.
fn share(gradients: &[i64]) -> Option<u64> {
    let own = Process::own().ok()?;
    let (mut denormal, mut all) = (0_u128, 0_u128);
    for &[address, count, stored] in gradients.as_chunks().0 {
        let (Ok(address), Ok(count)) = (Address::try_from(address), usize::try_from(count)) else { continue };
        if let Some((some, of)) = sample(&own, address, count, Stored::from_number(stored)?) {
            let count = count as u128;
            denormal += (1_000_000 * count * u128::from(some)).checked_div(of.into()).unwrap_or(0);
            all += count;
        }
    }
    denormal.checked_div(all).and_then(|share| u64::try_from(share).ok())
}

/// How many numbers of a gradient's sample are denormal, and how many there are.
fn sample(own: &Process, address: Address, count: usize, stored: Stored) -> Option<(u64, u64)> {
    let (pieces, piece) = if count <= PIECES * PIECE { (1, count) } else { (PIECES, PIECE) };
    let place = |index| (index as u128 * (count - piece) as u128 / (pieces as u128 - 1).max(1)) as usize;
    let starts = (0..pieces).map(|index| address.checked_add(place(index).checked_mul(stored.len())?));
    let starts: Vec<Address> = starts.collect::<Option<_>>()?;
    let of_piece = own.structures(&starts, piece * stored.len(), |read| {
        Some(read.bytes().chunks_exact(stored.len()).filter(|bytes| stored.is_denormal(bytes)).count() as u64)
    })?;
    Some((of_piece.iter().sum(), (pieces * piece) as u64))
}

/// The time of denormal numbers, as operands and results of a product or as results alone, in percent of what others take. All are
/// timed in turn, and of each the least counts.
fn cost() -> u64 {
    let kinds = [(1.0, 0.5), (1e-39, 0.5), (1e-20, 1e-20)];
    let mut least = [Duration::MAX; 3];
    with_usual_arithmetic(|| {
        for _ in 0..12 {
            least
                .iter_mut()
                .zip(kinds)
                .for_each(|(least, (left, right))| *least = product_time(left, right).min(*least));
        }
    });
    let [usual, both, result] = least.map(|time| time.as_nanos());
    u64::try_from(100 * both.max(result) / usual.max(1)).unwrap_or(u64::MAX)
}

/// What products of these numbers take. Few numbers, again and again: of many, how they lie in memory would count.
fn product_time(left: f32, right: f32) -> Duration {
    let (left, mut products) = ([left; 64], [0.0; 64]);
    let begin = Instant::now();
    for _ in 0..64 {
        let (left, right) = (black_box(&left), black_box(right));
        products.iter_mut().zip(left).for_each(|(product, left)| *product = left * right);
        black_box(&mut products);
    }
    begin.elapsed()
}

/// Calls `f` while the thread computes as threads do at first: a program may have had it take denormal numbers for 0, which other
/// threads that compute for it do not, or be ended by exceptions. Afterwards all is as before, the flags of exceptions included.
#[cfg(target_arch = "x86_64")]
fn with_usual_arithmetic<T>(f: impl FnOnce() -> T) -> T {
    /// All exceptions masked, to the nearest (Intel SDM, volume 1, 10.2.3).
    const USUAL: u32 = 0x1F80;
    let (mut was, usual) = (0_u32, USUAL);
    // SAFETY: the instructions read and write these four bytes and the control register, which what follows restores.
    unsafe {
        std::arch::asm!("stmxcsr [{}]", in(reg) &raw mut was, options(nostack));
        std::arch::asm!("ldmxcsr [{}]", in(reg) &raw const usual, options(nostack));
    }
    let result = f();
    // SAFETY: as above.
    unsafe { std::arch::asm!("ldmxcsr [{}]", in(reg) &raw const was, options(nostack)) };
    result
}

#[cfg(not(target_arch = "x86_64"))]
fn with_usual_arithmetic<T>(f: impl FnOnce() -> T) -> T {
    f()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn share_of<T>(numbers: &[T], stored: i64) -> Option<u64> {
        share(&[numbers.as_ptr() as i64, numbers.len() as i64, stored])
    }

    #[test]
    fn denormal_numbers_are_counted_in_every_type() {
        let single = [0.0, -0.0, 1e-39, -1e-45, 1.0, f32::MIN_POSITIVE, f32::NAN, f32::INFINITY];
        assert_eq!(share_of(&single, 0), Some(250_000));
        assert_eq!(share_of(&single.map(|value| (value.to_bits() >> 16) as u16), 1), Some(125_000), "1e-45 is 0");
        assert_eq!(share_of(&[0.0, 1e-310, f64::MIN_POSITIVE, 1e-39], 2), Some(250_000));
        assert_eq!(share_of(&single, 3), None);
    }

    #[test]
    fn large_gradient_is_sampled_to_its_ends_and_no_further() {
        let mut numbers = vec![1.0_f32; 100_000];
        assert_eq!(share_of(&numbers, 0), Some(0));
        numbers[100_000 - PIECE..].fill(1e-40);
        numbers[..PIECE].fill(1e-40);
        assert_eq!(share_of(&numbers, 0), Some(1_000_000 * 2 / PIECES as u64));
        let usual = vec![1.0; 100_000];
        let both = [&numbers, &usual].map(|it| [it.as_ptr() as i64, it.len() as i64, 0]);
        assert_eq!(share(both.as_flattened()), Some(1_000_000 / PIECES as u64));
        let few = [1e-40_f32; 4];
        let unlike = [[few.as_ptr() as i64, 4, 0], [usual.as_ptr() as i64, 99_996, 0]];
        assert_eq!(share(unlike.as_flattened()), Some(40), "each counts as it is long");
    }

    #[test]
    fn what_cannot_be_read_is_none() {
        for nowhere in [[4096, 100, 0], [-1, 100, 0], [4096, -1, 0], [4096, i64::MAX, 2], [i64::MAX, 1 << 40, 0]] {
            assert_eq!(share(&nowhere), None, "{nowhere:?}");
        }
        assert_eq!((share(&[]), share(&[1, 2])), (None, None));
    }

    /// Whether the thread's flags say that a result of `f` was inexact.
    #[cfg(target_arch = "x86_64")]
    fn leaves_flags(f: impl FnOnce()) -> bool {
        let (mut after, clear) = (0_u32, 0x1F80_u32);
        // SAFETY: as in `with_usual_arithmetic`.
        unsafe {
            std::arch::asm!("ldmxcsr [{}]", in(reg) &raw const clear, options(nostack));
            f();
            std::arch::asm!("stmxcsr [{}]", in(reg) &raw mut after, options(nostack));
        }
        after & 0x3F != 0
    }

    #[test]
    #[cfg(target_arch = "x86_64")]
    fn nothing_of_the_threads_arithmetic_changes() {
        let numbers = vec![1e-40_f32; 10_000];
        assert!(leaves_flags(|| _ = black_box(black_box(1e-20_f32) * black_box(1e-20))));
        assert!(!leaves_flags(|| {
            assert!(cost() >= 50);
            assert_eq!(share_of(&numbers, 0), Some(1_000_000));
        }));
    }
}
