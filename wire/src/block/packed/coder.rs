//! One description of an event's fields for both directions: a writer takes each value, a reader returns it.

use super::bits::{BitReader, BitWriter, MAX_BITS};
use super::number::{LENGTH_BITS, LONG, Number, unzigzag, zigzag};

/// Writes or reads values. What a reader returns depends only on the bits and on what it read before.
pub(super) trait Coder {
    /// A value of at most 32 bits, without a model. Returns it, or what was read instead.
    fn plain(&mut self, value: u32, bits: u32) -> u32;

    /// Any value, as its number of bits followed by the bits.
    fn any(&mut self, value: u64) -> u64;

    /// A value of a column, as the difference from its expected value.
    fn number(&mut self, column: &mut Number, value: i64) -> i64;

    /// Two values, which are usually short.
    #[inline]
    fn pair(&mut self, first: &mut Number, second: &mut Number, values: (i64, i64)) -> (i64, i64) {
        (self.number(first, values.0), self.number(second, values.1))
    }

    /// A boolean.
    fn flag(&mut self, flag: bool) -> bool {
        self.plain(u32::from(flag), 1) == 1
    }

    /// A number that is unsigned or has all 64 bits: differences wrap.
    #[inline]
    fn unsigned(&mut self, column: &mut Number, value: u64) -> u64 {
        self.number(column, value as i64) as u64
    }

    /// A time, as the difference from another one.
    #[inline]
    fn delta(&mut self, column: &mut Number, from: u64, to: u64) -> u64 {
        from.wrapping_add(self.number(column, to.wrapping_sub(from) as i64) as u64)
    }

    /// A value that usually repeats the last one.
    fn steady(&mut self, column: &mut Number, value: i64) -> i64 {
        let value = self.number(column, value);
        column.expected = value;
        value
    }

    /// Values that usually all repeat the last ones: one bit says so.
    fn group<const N: usize>(&mut self, columns: &mut [Number; N], values: [i64; N]) -> [i64; N] {
        let last = columns.map(|column| column.expected);
        if self.flag(values == last) {
            return last;
        }
        let mut index = 0;
        values.map(|value| {
            index += 1;
            self.steady(&mut columns[index - 1], value)
        })
    }
}

impl Coder for BitWriter {
    fn plain(&mut self, value: u32, bits: u32) -> u32 {
        self.put(u64::from(value), bits);
        value
    }

    fn any(&mut self, value: u64) -> u64 {
        let bits = 64 - (value | 1).leading_zeros();
        self.put(u64::from(bits - 1), LENGTH_BITS);
        let low = bits.min(32);
        self.put(value & (u64::MAX >> (64 - low)), low);
        if bits > low {
            self.put(value >> low, bits - low);
        }
        value
    }

    #[inline]
    fn number(&mut self, column: &mut Number, value: i64) -> i64 {
        let difference = value.wrapping_sub(column.expected);
        let zigzagged = zigzag(difference);
        if column.is_fresh() {
            self.any(zigzagged);
            column.begin(value, zigzagged);
            return value;
        }
        let low = column.low_bits();
        let quotient = zigzagged >> low;
        if quotient < u64::from(LONG) {
            let quotient = quotient as u32;
            self.put(1 << quotient, quotient + 1);
            self.put(zigzagged & ((1 << low) - 1), low);
        } else {
            self.put(0, LONG);
            self.any(zigzagged);
        }
        column.learn(difference, zigzagged);
        value
    }
}

impl Coder for BitReader<'_> {
    fn plain(&mut self, _: u32, bits: u32) -> u32 {
        self.take(bits) as u32
    }

    fn any(&mut self, _: u64) -> u64 {
        let bits = self.take(LENGTH_BITS) as u32 + 1;
        let low = bits.min(32);
        let value = self.take(low);
        value | if bits > low { self.take(bits - low) << low } else { 0 }
    }

    #[inline]
    fn number(&mut self, column: &mut Number, _: i64) -> i64 {
        if column.is_fresh() {
            return first(self, column);
        }
        let zigzagged = match short(self.peek(), 0, column) {
            Some((bits, zigzagged)) => {
                self.skip(bits);
                zigzagged
            }
            None => long(self),
        };
        next_value(column, zigzagged)
    }

    /// Reads both in one go if they fit into a word, as those of most spans do: the position of the next number then
    /// depends on one load and a few operations.
    #[inline]
    fn pair(&mut self, first: &mut Number, second: &mut Number, _: (i64, i64)) -> (i64, i64) {
        if !first.is_fresh() && !second.is_fresh() {
            let word = self.peek();
            if let Some((at, one)) = short(word, 0, first)
                && let Some((bits, other)) = short(word, at, second)
                && bits <= MAX_BITS
            {
                self.skip(bits);
                return (next_value(first, one), next_value(second, other));
            }
        }
        (self.number(first, 0), self.number(second, 0))
    }
}

/// Reads the number that begins `at` bits into a word, and returns where it ends and its value; `None` if it is not short.
#[inline]
fn short(word: u64, at: u32, column: &Number) -> Option<(u32, u64)> {
    let rest = word >> at;
    let (quotient, low) = (rest.trailing_zeros().min(LONG), column.low_bits());
    let zigzagged = rest >> (quotient + 1) & ((1 << low) - 1) | u64::from(quotient) << low;
    (quotient < LONG).then_some((at + quotient + 1 + low, zigzagged))
}

#[inline]
fn next_value(column: &mut Number, zigzagged: u64) -> i64 {
    let difference = unzigzag(zigzagged);
    let value = column.expected.wrapping_add(difference);
    column.learn(difference, zigzagged);
    value
}

/// The first value of a column.
#[cold]
fn first(reader: &mut BitReader<'_>, column: &mut Number) -> i64 {
    let zigzagged = reader.any(0);
    let value = column.expected.wrapping_add(unzigzag(zigzagged));
    column.begin(value, zigzagged);
    value
}

/// A difference far larger than those before it.
#[cold]
fn long(reader: &mut BitReader<'_>) -> u64 {
    reader.skip(LONG);
    reader.any(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Numbers of all sizes, and runs of close ones.
    fn value() -> impl Strategy<Value = i64> {
        prop_oneof![any::<i64>(), 0i64..100, (any::<i64>(), 0u32..64).prop_map(|(value, shift)| value >> shift)]
    }

    proptest! {
        #[test]
        fn coder_round_trip(
            values in prop::collection::vec((0..3usize, value()), 0..100),
            groups in prop::collection::vec([0i64..3, 0i64..2], 0..20),
        ) {
            let mut writer = BitWriter::default();
            let mut columns = [Number::default(); 4];
            let mut pair = [Number::default(); 2];
            for &(column, value) in &values {
                writer.number(&mut columns[column], value);
                writer.steady(&mut columns[3], value);
                writer.any(value as u64);
                writer.flag(value & 1 == 1);
            }
            groups.iter().for_each(|&group| _ = writer.group(&mut pair, group));
            let bytes = writer.finish().to_vec();
            let mut reader = BitReader::new(&bytes);
            let mut columns = [Number::default(); 4];
            let mut pair = [Number::default(); 2];
            for &(column, value) in &values {
                prop_assert_eq!(reader.number(&mut columns[column], 0), value);
                prop_assert_eq!(reader.steady(&mut columns[3], 0), value);
                prop_assert_eq!(reader.any(0), value as u64);
                prop_assert_eq!(reader.flag(false), value & 1 == 1);
            }
            for &group in &groups {
                prop_assert_eq!(reader.group(&mut pair, [0; 2]), group);
            }
            prop_assert!(reader.is_at_end());
        }
    }

    #[test]
    fn numbers_near_the_last_ones_take_few_bits() {
        let mut writer = BitWriter::default();
        let mut column = Number::default();
        for n in 0..1000 {
            writer.number(&mut column, 3_000_000 + n * 7919 % 1024);
        }
        assert!(writer.finish().len() * 8 < 1000 * 13, "{} bytes", writer.len());
    }
}
