//! Cross-entropy of chosen rows on a device.

use std::ops::Range;

use bytemuck::NoUninit;
use candle_core::{DType, Device, Result, Tensor, bail};

use super::edges::{Lists, list};
use super::kernel::{Address, Grid, Module};
use super::machine::{Memory, View, launch};

/// Rows and their labels on a device, in their order and by row.
#[derive(Debug)]
pub(crate) struct LabelsOnDevice {
    memory: Tensor,
    pairs: [Range<usize>; 2],
    group_row: Range<usize>,
    group_start: Range<usize>,
    group_label: Range<usize>,
    /// The largest row and label.
    largest: (u32, u32),
}

impl LabelsOnDevice {
    /// Copies pairs of row and label.
    ///
    /// # Errors
    /// The device has too little memory.
    pub(crate) fn new(pairs: &[(u32, u32)], device: &Device) -> Result<Self> {
        let mut sorted = pairs.to_vec();
        sorted.sort_by_key(|pair| pair.0);
        let (mut rows, mut starts) = (Vec::new(), Vec::new());
        for (index, pair) in sorted.iter().enumerate() {
            if rows.last() != Some(&pair.0) {
                rows.push(pair.0);
                starts.push(index as u32);
            }
        }
        starts.push(sorted.len() as u32);
        let mut lists = Lists::default();
        let largest = |of: fn(&(u32, u32)) -> u32| pairs.iter().map(of).max().unwrap_or(0);
        Ok(Self {
            pairs: [lists.push(pairs.iter().map(|pair| pair.0)), lists.push(pairs.iter().map(|pair| pair.1))],
            group_row: lists.push(rows),
            group_start: lists.push(starts),
            group_label: lists.push(sorted.iter().map(|pair| pair.1)),
            largest: (largest(|pair| pair.0), largest(|pair| pair.1)),
            memory: lists.copy_to(device)?,
        })
    }
}

#[derive(Clone, Copy, NoUninit)]
#[repr(C)]
struct LossArguments {
    logits: Address,
    row: Address,
    label: Address,
    group_row: Address,
    group_start: Address,
    group_label: Address,
    losses: Address,
    out: Address,
    upstream: Address,
    gradient: Address,
    pairs: u64,
    groups: u64,
    classes: u64,
}

impl LabelsOnDevice {
    /// Arguments without results. Rows and labels are checked to be within `logits`, `[rows, classes]`.
    fn arguments(&self, logits: View<'_>, (rows, classes): (usize, usize)) -> Result<LossArguments> {
        let (row, label) = self.largest;
        if row as usize >= rows || label as usize >= classes {
            bail!("cross-entropy: a row is {row} and a label {label}, but there are {rows} rows and {classes} classes");
        }
        let at = |range: &Range<usize>| list(&self.memory, range);
        Ok(LossArguments {
            logits: logits.address(logits.dtype(), rows * classes)?,
            row: at(&self.pairs[0])?,
            label: at(&self.pairs[1])?,
            group_row: at(&self.group_row)?,
            group_start: at(&self.group_start)?,
            group_label: at(&self.group_label)?,
            losses: Address::NONE,
            out: Address::NONE,
            upstream: Address::NONE,
            gradient: Address::NONE,
            pairs: self.pairs[0].len() as u64,
            groups: self.group_row.len() as u64,
            classes: classes as u64,
        })
    }

    /// The mean of the losses, one number.
    pub(crate) fn mean_loss(&self, logits: View<'_>, shape: (usize, usize)) -> Result<Memory> {
        let (device, dtype) = (self.memory.device(), logits.dtype());
        let losses = Memory::new(device, DType::F64, self.pairs[0].len())?;
        let out = Memory::new(device, dtype, 1)?;
        let arguments =
            LossArguments { losses: losses.address(), out: out.address(), ..self.arguments(logits, shape)? };
        let rows = Grid::for_rows(arguments.pairs, 32)?;
        // SAFETY: rows and labels were checked to be within the logits, and there is a loss for each pair.
        unsafe { launch(device, &Module::Loss.kernel("pair_losses", dtype)?, rows, &arguments) }?;
        let one_warp = Grid { blocks: [1, 1], threads: [32, 1] };
        // SAFETY: as above; the mean is one number.
        unsafe { launch(device, &Module::Loss.kernel("mean_loss", dtype)?, one_warp, &arguments) }?;
        Ok(out)
    }

    /// The gradient of the logits, from that of the mean, one number.
    pub(crate) fn gradient(&self, logits: &Tensor, upstream: View<'_>) -> Result<Tensor> {
        let (device, dtype) = (self.memory.device(), logits.dtype());
        let gradient = logits.zeros_like()?;
        let arguments = LossArguments {
            upstream: upstream.address(dtype, 1)?,
            gradient: View::new(&gradient)?.address(dtype, logits.elem_count())?,
            ..self.arguments(View::new(logits)?, logits.dims2()?)?
        };
        let rows = Grid::for_rows(arguments.groups, 32)?;
        // SAFETY: as in `mean_loss`; the gradient is as large as the logits.
        unsafe { launch(device, &Module::Loss.kernel("loss_gradient", dtype)?, rows, &arguments) }?;
        Ok(gradient)
    }
}
