//! Adam over all parameters in one launch, on a device.

use std::sync::Arc;

use bytemuck::NoUninit;
use candle_core::{DType, Device, Result, Tensor, bail};

use super::edges::{Lists, list};
use super::kernel::{Address, Grid, Kernel, Module, THREADS};
use super::machine::{View, launch};
use super::progress::Progress;

/// Elements that a block of threads updates.
const LENGTH: usize = 4096;

/// The constants of one step, with the bias corrections of PyTorch's `_single_tensor_adam`: the host's, and the end of
/// `AdamArguments` in adam.cu.
#[derive(Debug, Clone, Copy, NoUninit)]
#[repr(C)]
pub(crate) struct Rates {
    pub(crate) beta1: f32,
    pub(crate) beta2: f32,
    pub(crate) one_minus_beta1: f32,
    pub(crate) one_minus_beta2: f32,
    pub(crate) epsilon: f32,
    pub(crate) gradient_scale: f32,
    pub(crate) step_size: f32,
    pub(crate) root_correction: f32,
}

/// A parameter, its gradient, its moments, all f32, contiguous and of one size, and its weight decay.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Slot<'a> {
    pub(crate) value: &'a Tensor,
    pub(crate) gradient: &'a Tensor,
    pub(crate) moments: &'a [Tensor; 2],
    pub(crate) weight_decay: f32,
}

#[derive(Clone, Copy, NoUninit)]
#[repr(C)]
struct AdamArguments {
    slots: Address,
    block_slot: Address,
    block_run: Address,
    is_bad: Address,
    changing: Address,
    length: u64,
    rates: Rates,
}

/// 64-bit words of a `Slot` of adam.cu.
const WORDS: usize = 6;

/// The slots on a device, and which block takes which run of which slot.
#[derive(Debug)]
struct Table {
    slots: Tensor,
    lists: Tensor,
    blocks: [std::ops::Range<usize>; 2],
}

impl Table {
    fn new(slots: &[Slot<'_>], device: &Device) -> Result<Self> {
        let mut words: Vec<i64> = Vec::with_capacity(slots.len() * WORDS);
        let (mut block_slot, mut block_run) = (Vec::new(), Vec::new());
        for (number, slot) in slots.iter().enumerate() {
            let count = slot.value.elem_count();
            for tensor in [slot.value, slot.gradient, &slot.moments[0], &slot.moments[1]] {
                words.push(View::new(tensor)?.address(DType::F32, count)?.0.cast_signed());
            }
            words.extend([count as i64, i64::from(slot.weight_decay.to_bits())]);
            let runs = count.div_ceil(LENGTH) as u32;
            block_slot.extend((0..runs).map(|_| number as u32));
            block_run.extend(0..runs);
        }
        let mut lists = Lists::default();
        let blocks = [lists.push(block_slot), lists.push(block_run)];
        let length = words.len();
        Ok(Self { slots: Tensor::from_vec(words, length, device)?, lists: lists.copy_to(device)?, blocks })
    }

    fn launch(&self, name: &str, rates: Rates, [is_bad, changing]: [Address; 2]) -> Result<()> {
        let Ok(blocks) = u32::try_from(self.blocks[0].len()) else {
            bail!("adam: there are more parameters than a kernel can be launched for");
        };
        let arguments = AdamArguments {
            slots: View::new(&self.slots)?.address(DType::I64, 0)?,
            block_slot: list(&self.lists, &self.blocks[0])?,
            block_run: list(&self.lists, &self.blocks[1])?,
            is_bad,
            changing,
            length: LENGTH as u64,
            rates,
        };
        let kernel = Kernel { module: Module::Adam, name: name.to_owned() };
        // SAFETY: every slot has four tensors of its length, the blocks cover it, and the other addresses are null or
        // those of the numbers that `adam.cu` names.
        unsafe { launch(self.lists.device(), &kernel, Grid { blocks: [blocks, 1], threads: [THREADS, 1] }, &arguments) }
    }
}

/// Updates all parameters and their moments in place.
///
/// # Errors
/// A tensor is not f32, not contiguous or of another size, or the device refuses.
pub(crate) fn update(slots: &[Slot<'_>], rates: Rates) -> Result<()> {
    let Some(first) = slots.first() else { return Ok(()) };
    Table::new(slots, first.value.device())?.launch("adam", rates, [Address::NONE; 2])
}

/// A [`Slot`] whose tensors stay where they are.
#[derive(Debug)]
pub(crate) struct RepeatedSlot {
    pub(crate) value: Tensor,
    pub(crate) gradient: Tensor,
    pub(crate) moments: [Tensor; 2],
    pub(crate) weight_decay: f32,
}

impl RepeatedSlot {
    fn borrowed(&self) -> Slot<'_> {
        let Self { value, gradient, moments, weight_decay } = self;
        Slot { value, gradient, moments, weight_decay: *weight_decay }
    }
}

/// An update that does not change from step to step, because the constants that do are in memory of the device.
#[derive(Debug)]
pub(crate) struct Repeated {
    slots: Vec<RepeatedSlot>,
    table: Table,
    rates: Rates,
    progress: Arc<Progress>,
}

impl Repeated {
    /// For these parameters, at least one. The step size and correction of `rates` are not used.
    ///
    /// # Errors
    /// As [`update`].
    pub(crate) fn new(slots: Vec<RepeatedSlot>, rates: Rates, progress: Arc<Progress>) -> Result<Self> {
        let Some(first) = slots.first() else { bail!("adam: there are no parameters") };
        let borrowed: Vec<Slot<'_>> = slots.iter().map(RepeatedSlot::borrowed).collect();
        let table = Table::new(&borrowed, first.value.device())?;
        Ok(Self { slots, table, rates, progress })
    }

    pub(crate) fn slots(&self) -> &[RepeatedSlot] {
        &self.slots
    }

    /// Advances to the next step and updates.
    ///
    /// # Errors
    /// The device refuses.
    pub(crate) fn launch(&self) -> Result<()> {
        self.progress.advance()?;
        self.table.launch("adam", self.rates, [Address::NONE, self.progress.rates()?])
    }
}

/// Whether every gradient is a finite number. Waits for the device.
///
/// # Errors
/// As [`update`].
pub(crate) fn are_finite(slots: &[Slot<'_>]) -> Result<bool> {
    let Some(first) = slots.first() else { return Ok(true) };
    let device = first.value.device();
    let is_bad = Tensor::zeros(1, DType::U32, device)?;
    let rates = Rates {
        beta1: 0.0,
        beta2: 0.0,
        one_minus_beta1: 0.0,
        one_minus_beta2: 0.0,
        epsilon: 0.0,
        gradient_scale: 1.0,
        step_size: 0.0,
        root_correction: 1.0,
    };
    let is_bad_at = View::new(&is_bad)?.address(DType::U32, 1)?;
    Table::new(slots, device)?.launch("find_bad_gradients", rates, [is_bad_at, Address::NONE])?;
    Ok(is_bad.to_vec1::<u32>()? == [0])
}
