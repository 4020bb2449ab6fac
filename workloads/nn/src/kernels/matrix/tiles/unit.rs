//! The tile registers: whether they can be used, and the loop over them.

use std::arch::asm;
use std::arch::x86_64::{__cpuid, __cpuid_count, _xgetbv};
use std::marker::PhantomData;
use std::sync::OnceLock;

/// Rows of a tile.
pub(super) const ROWS: usize = 16;
/// Columns of a panel of either operand, two tiles side by side: the width and height of what one call computes.
pub(super) const PANEL: usize = 2 * ROWS;
/// Numbers along the inner dimension in a tile.
pub(super) const DEPTH: usize = 32;
/// Lines of a panel for [`DEPTH`] numbers of the inner dimension: three parts of two tiles.
pub(super) const LINES: usize = 3 * 2 * ROWS;

/// A row of a tile: 32 numbers of bf16, in pairs.
#[derive(Debug, Clone, Copy)]
#[repr(C, align(64))]
pub(super) struct TileRow(pub [u32; 16]);

/// A block of results, `[PANEL, PANEL]`.
#[repr(C, align(64))]
pub(super) struct Block(pub [f32; PANEL * PANEL]);

/// Whether the processor has tiles for bf16 and AVX-512 beside them, and the system lets this process use them. The
/// variable `GNNTOP_AMX=0` says no.
pub(super) fn is_available() -> bool {
    static AVAILABLE: OnceLock<bool> = OnceLock::new();
    *AVAILABLE.get_or_init(|| {
        let refused = std::env::var_os("GNNTOP_AMX").is_some_and(|value| value == "0");
        !refused && has_instructions() && is_permitted()
    })
}

fn has_instructions() -> bool {
    /// EDX of leaf 7: AMX-BF16 and AMX-TILE (Intel SDM, volume 2, CPUID).
    const TILES: u32 = 1 << 22 | 1 << 24;
    if !(is_x86_feature_detected!("avx512f") && is_x86_feature_detected!("avx512bw")) {
        return false;
    }
    __cpuid(0).eax >= 7 && __cpuid_count(7, 0).edx & TILES == TILES && state_is_saved()
}

/// Whether the system saves the tiles' state when it switches threads.
fn state_is_saved() -> bool {
    /// ECX of leaf 1.
    const OSXSAVE: u32 = 1 << 27;
    /// XCR0: XTILECFG and XTILEDATA.
    const STATE: u64 = 1 << 17 | 1 << 18;
    // SAFETY: OSXSAVE says that XGETBV exists, and register 0 always does.
    __cpuid(1).ecx & OSXSAVE != 0 && unsafe { _xgetbv(0) } & STATE == STATE
}

/// Linux grants the tiles on request, to a whole process (Documentation/arch/x86/xstate.rst).
fn is_permitted() -> bool {
    const ARCH_REQ_XCOMP_PERM: libc::c_long = 0x1023;
    const XTILEDATA: libc::c_long = 18;
    // SAFETY: the call takes two integers and changes only what this process may use.
    unsafe { libc::syscall(libc::SYS_arch_prctl, ARCH_REQ_XCOMP_PERM, XTILEDATA) == 0 }
}

/// The shapes of the tile registers (Intel SDM, volume 1, chapter 18).
#[repr(C, align(64))]
struct Shapes {
    palette: u8,
    start_row: u8,
    reserved: [u8; 14],
    bytes_per_row: [u16; 16],
    rows: [u8; 16],
}

/// Asks for 16 lines of the right panel's next group, from this byte on. The tiles' loads alone keep too few lines on their
/// way where a panel comes from further away than the nearest cache.
macro_rules! fetch_ahead {
    ($byte:literal) => {
        concat!(
            ".irp line, 0, 64, 128, 192, 256, 320, 384, 448, 512, 576, 640, 704, 768, 832, 896, 960\n",
            "prefetcht0 [{b} + ",
            $byte,
            " + \\line]\n",
            ".endr"
        )
    };
}

/// The tile registers in use by this thread, until it is dropped. They are the thread's own, as their shapes are, so this
/// cannot be given or shown to another thread: the pointer makes it neither `Send` nor `Sync`.
pub(super) struct Tiles(PhantomData<*mut ()>);

const _: () = {
    /// Compiles for one choice of `A` where `T` is not `Send`, and for two, so for none, where it is.
    trait AmbiguousIfSend<A> {
        fn some_item() {}
    }
    impl<T: ?Sized> AmbiguousIfSend<()> for T {}
    impl<T: ?Sized + Send> AmbiguousIfSend<u8> for T {}
    let _ = <Tiles as AmbiguousIfSend<_>>::some_item;
    /// The same for `Sync`.
    trait AmbiguousIfSync<A> {
        fn some_item() {}
    }
    impl<T: ?Sized> AmbiguousIfSync<()> for T {}
    impl<T: ?Sized + Sync> AmbiguousIfSync<u8> for T {}
    let _ = <Tiles as AmbiguousIfSync<_>>::some_item;
};

impl Tiles {
    /// Eight registers of 16 rows of 64 bytes.
    ///
    /// # Safety
    /// [`is_available`] must have said yes.
    pub unsafe fn take() -> Self {
        let first_eight = |index: usize, value: u8| if index < 8 { value } else { 0 };
        let shapes = Shapes {
            palette: 1,
            start_row: 0,
            reserved: [0; 14],
            bytes_per_row: std::array::from_fn(|index| u16::from(first_eight(index, 64))),
            rows: std::array::from_fn(|index| first_eight(index, 16)),
        };
        // SAFETY: the caller vouches for the instruction; it reads the 64 bytes of `shapes`, whose values are valid for
        // palette 1.
        unsafe { asm!("ldtilecfg [{0}]", in(reg) &raw const shapes, options(nostack, readonly, preserves_flags)) };
        Self(PhantomData)
    }

    /// The product of two panels: `left` has `PANEL` rows, `right` as many columns, each in `left.len() / LINES` groups of
    /// [`DEPTH`]. The first part of one meets the third of the other first, so that small products are added up first.
    ///
    /// # Panics
    /// If the panels differ in length, or have none or a broken group.
    pub fn multiply(&self, left: &[TileRow], right: &[TileRow], out: &mut Block) {
        assert!(left.len() == right.len() && !left.is_empty() && left.len().is_multiple_of(LINES), "panels do not fit");
        let groups = left.len() / LINES;
        // SAFETY: `self` proves that the instructions exist and that all registers have 16 rows of 64 bytes. A pass of
        // the loop reads 6 tiles of 1024 bytes, that is LINES lines, from each panel, and there are as many passes as
        // groups in both. A prefetch reads nothing and cannot fault. The stores write 4 quarters of 16 rows of 64 bytes, 128 bytes apart: the whole block. No code
        // that a compiler makes uses tile registers.
        unsafe {
            asm!(
                "tilezero tmm0", "tilezero tmm1", "tilezero tmm2", "tilezero tmm3",
                "2:",
                // a1 b3
                "tileloadd tmm4, [{a} + {line}]", "tileloadd tmm5, [{a} + {line} + 1024]",
                "tileloadd tmm6, [{b} + {line} + 4096]", "tileloadd tmm7, [{b} + {line} + 5120]",
                "tdpbf16ps tmm0, tmm4, tmm6", "tdpbf16ps tmm1, tmm4, tmm7",
                "tdpbf16ps tmm2, tmm5, tmm6", "tdpbf16ps tmm3, tmm5, tmm7",
                fetch_ahead!(6144),
                // a1 b2
                "tileloadd tmm6, [{b} + {line} + 2048]", "tileloadd tmm7, [{b} + {line} + 3072]",
                "tdpbf16ps tmm0, tmm4, tmm6", "tdpbf16ps tmm1, tmm4, tmm7",
                "tdpbf16ps tmm2, tmm5, tmm6", "tdpbf16ps tmm3, tmm5, tmm7",
                fetch_ahead!(7168),
                // a2 b2
                "tileloadd tmm4, [{a} + {line} + 2048]", "tileloadd tmm5, [{a} + {line} + 3072]",
                "tdpbf16ps tmm0, tmm4, tmm6", "tdpbf16ps tmm1, tmm4, tmm7",
                "tdpbf16ps tmm2, tmm5, tmm6", "tdpbf16ps tmm3, tmm5, tmm7",
                fetch_ahead!(8192),
                // a2 b1
                "tileloadd tmm6, [{b} + {line}]", "tileloadd tmm7, [{b} + {line} + 1024]",
                "tdpbf16ps tmm0, tmm4, tmm6", "tdpbf16ps tmm1, tmm4, tmm7",
                "tdpbf16ps tmm2, tmm5, tmm6", "tdpbf16ps tmm3, tmm5, tmm7",
                fetch_ahead!(9216),
                // a3 b1
                "tileloadd tmm4, [{a} + {line} + 4096]", "tileloadd tmm5, [{a} + {line} + 5120]",
                "tdpbf16ps tmm0, tmm4, tmm6", "tdpbf16ps tmm1, tmm4, tmm7",
                "tdpbf16ps tmm2, tmm5, tmm6", "tdpbf16ps tmm3, tmm5, tmm7",
                fetch_ahead!(10240),
                // a1 b1
                "tileloadd tmm4, [{a} + {line}]", "tileloadd tmm5, [{a} + {line} + 1024]",
                "tdpbf16ps tmm0, tmm4, tmm6", "tdpbf16ps tmm1, tmm4, tmm7",
                "tdpbf16ps tmm2, tmm5, tmm6", "tdpbf16ps tmm3, tmm5, tmm7",
                fetch_ahead!(11264),
                "add {a}, 6144", "add {b}, 6144",
                "dec {groups}", "jnz 2b",
                "tilestored [{out} + {row}], tmm0", "tilestored [{out} + {row} + 64], tmm1",
                "tilestored [{out} + {row} + 2048], tmm2", "tilestored [{out} + {row} + 2112], tmm3",
                a = inout(reg) left.as_ptr() => _,
                b = inout(reg) right.as_ptr() => _,
                groups = inout(reg) groups => _,
                line = in(reg) 64usize,
                row = in(reg) 4 * PANEL,
                out = in(reg) out.0.as_mut_ptr(),
                options(nostack),
            );
        }
    }
}

impl Drop for Tiles {
    fn drop(&mut self) {
        // SAFETY: `self` proves that the instruction exists. It frees the registers, so that switching threads stays
        // cheap.
        unsafe { asm!("tilerelease", options(nostack, nomem, preserves_flags)) };
    }
}
