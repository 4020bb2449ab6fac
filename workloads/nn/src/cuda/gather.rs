//! Rows of a table on a device, copied together.

use bytemuck::NoUninit;
use candle_core::{DType, Result, Tensor, bail};

use super::kernel::{Address, Module};
use super::machine::{Memory, View, launch};
use super::work::{grid_of, pack_for};

#[derive(Clone, Copy, NoUninit)]
#[repr(C)]
struct GatherArguments {
    table: Address,
    row: Address,
    out: Address,
    count: u64,
    width: u64,
    rows: u64,
}

/// The rows of `table`, `[any, width]`, that `rows` names, `[count]` u32, in their order. A row that does not exist
/// becomes NaN: only the device knows which rows are named.
///
/// # Errors
/// A shape or number type is wrong, or the device has too little memory.
pub fn gather_rows(table: &Tensor, rows: &Tensor) -> Result<Tensor> {
    let ((held, width), count) = (table.dims2()?, rows.dims1()?);
    if held == 0 && count > 0 {
        bail!("cannot gather {count} rows from an empty table");
    }
    let dtype = table.dtype();
    let out = Memory::new(table.device(), dtype, count * width)?;
    let arguments = GatherArguments {
        table: View::new(table)?.address(dtype, held * width)?,
        row: View::new(rows)?.address(DType::U32, count)?,
        out: out.address(),
        count: count as u64,
        width: width as u64,
        rows: held as u64,
    };
    let pack = pack_for(&[1, 2, 4], width, dtype, &[arguments.table, arguments.out]);
    if width > 0 {
        let kernel = Module::Gather.kernel(&format!("gather_rows_{pack}"), dtype)?;
        // SAFETY: the table has `held` rows, there are `count` numbers and as many rows of the result; the kernel takes no row from `held` on.
        unsafe { launch(table.device(), &kernel, grid_of(count, width / pack)?, &arguments) }?;
    }
    Ok(out.into_tensor((count, width)))
}

#[cfg(test)]
mod tests {
    use candle_core::Device;

    use super::*;
    use crate::cuda::emulation::is_possible;
    use crate::cuda::tests::TYPES;
    use crate::cuda::tests::multigraph::{generator, numbers, random_tensor};

    #[test]
    fn a_row_that_the_table_has_not_is_not_read() {
        if !is_possible() {
            return;
        }
        let table = random_tensor(&mut generator(2), &[3, 8], DType::F32);
        let rows = Tensor::new(&[2u32, 3, u32::MAX], &Device::Cpu).unwrap();
        let found = numbers(&gather_rows(&table, &rows).unwrap());
        assert_eq!(found[..8], numbers(&table)[16..]);
        assert!(found[8..].iter().all(|value| value.is_nan()));
    }

    #[test]
    fn rows_come_in_the_order_in_which_they_are_named() {
        if !is_possible() {
            return;
        }
        for (dtype, width) in TYPES.iter().flat_map(|dtype| [1, 6, 64, 301].map(|width| (*dtype, width))) {
            let table = random_tensor(&mut generator(1), &[9, width], dtype);
            let rows = Tensor::new(&[8u32, 0, 3, 3, 8], &Device::Cpu).unwrap();
            let found = gather_rows(&table, &rows).unwrap();
            assert_eq!(numbers(&found), numbers(&table.index_select(&rows, 0).unwrap()));
        }
        let none = Tensor::zeros(0, DType::U32, &Device::Cpu).unwrap();
        let table = Tensor::zeros((0, 4), DType::F32, &Device::Cpu).unwrap();
        assert_eq!(gather_rows(&table, &none).unwrap().dims(), [0, 4]);
        assert!(gather_rows(&table, &Tensor::new(&[0u32], &Device::Cpu).unwrap()).is_err());
    }
}
