//! Subnormal numbers: whether the computing threads treat them as zero.
//!
//! A stack of 64 layers without normalisation drives its gradients below 1e-38. Arithmetic on such subnormal numbers
//! takes a slow path in many CPUs, which makes the whole step several times slower. Flushing them to zero loses nothing
//! that training could use. The switch exists so that the effect can be seen.

/// What happens to numbers too small for the normal range (below 1.2e-38 in f32).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Subnormals {
    /// Kept, as IEEE 754 asks: exact and slow.
    Keep,
    /// Taken and returned as zero.
    Flush,
}

/// Runs `work` with subnormal numbers kept on the calling thread, whatever its mode before and after.
pub fn keeping_subnormals<T>(work: impl FnOnce() -> T) -> T {
    let was_flushing = flushes();
    set_on_this_thread(Subnormals::Keep);
    let done = work();
    if was_flushing {
        set_on_this_thread(Subnormals::Flush);
    }
    done
}

/// Whether the calling thread flushes the results of its arithmetic.
fn flushes() -> bool {
    use std::hint::black_box;
    black_box(f32::MIN_POSITIVE) * black_box(0.5) == 0.0
}

/// Sets the mode of the calling thread and of every thread of the current rayon pool, on which the kernels run.
/// Threads made later keep their default, [`Subnormals::Keep`]. Returns whether this CPU has the switch (x86-64 has).
pub fn set_subnormals(mode: Subnormals) -> bool {
    rayon::broadcast(|_| set_on_this_thread(mode));
    set_on_this_thread(mode)
}

#[cfg(target_arch = "x86_64")]
fn set_on_this_thread(mode: Subnormals) -> bool {
    /// Flush results to zero (bit 15) and take subnormal operands as zero (bit 6).
    const FLUSH: u32 = 1 << 15 | 1 << 6;
    let mut control = 0u32;
    // SAFETY: stmxcsr and ldmxcsr (SSE, part of every x86-64) move 4 bytes from and to `control`, which is live and
    // aligned. Only the two flush bits change: exception masks and rounding stay, so no instruction can trap. Rust
    // assumes the default mode when it folds constants, which at worst leaves a subnormal number where the CPU would
    // have made zero; no memory access, bound or branch that guards one depends on a float here. The register belongs
    // to the thread, so other threads see no change.
    unsafe {
        std::arch::asm!("stmxcsr [{}]", in(reg) &raw mut control, options(nostack, preserves_flags));
        control = match mode {
            Subnormals::Keep => control & !FLUSH,
            Subnormals::Flush => control | FLUSH,
        };
        std::arch::asm!("ldmxcsr [{}]", in(reg) &raw const control, options(nostack, readonly, preserves_flags));
    }
    true
}

#[cfg(not(target_arch = "x86_64"))]
fn set_on_this_thread(_: Subnormals) -> bool {
    false
}

#[cfg(all(test, target_arch = "x86_64"))]
mod tests {
    use super::*;
    use std::hint::black_box;

    /// Halves the smallest normal number.
    fn makes_a_subnormal() -> bool {
        black_box(f32::MIN_POSITIVE) * black_box(0.5) != 0.0
    }

    /// Takes a subnormal operand to the normal range.
    fn reads_a_subnormal() -> bool {
        black_box(f32::from_bits(1 << 20)) * black_box(1024.0) != 0.0
    }

    #[test]
    fn the_switch_reaches_every_thread_of_the_pool() {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(3).build().unwrap();
        pool.install(|| {
            for (mode, kept) in [(Subnormals::Flush, false), (Subnormals::Keep, true), (Subnormals::Flush, false)] {
                assert!(set_subnormals(mode));
                let seen = rayon::broadcast(|_| [makes_a_subnormal(), reads_a_subnormal()]);
                assert_eq!(seen, [[kept; 2]; 3]);
            }
        });
        assert!(makes_a_subnormal(), "a thread outside the pool was changed");
    }
}
