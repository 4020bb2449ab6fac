//! Reads protobuf messages field by field, without their schemas: those of event files and of W&B's need a few fields alone.

/// A field's value, as its wire type says.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Value<'a> {
    /// A number of variable length, or a `bool`.
    Varint(u64),
    /// Eight bytes, such as a `double`.
    Fixed64(u64),
    /// Four bytes, such as a `float`.
    Fixed32(u32),
    /// A text, a message, or packed numbers.
    Bytes(&'a [u8]),
}

impl<'a> Value<'a> {
    /// A message's or text's bytes; empty for numbers.
    pub(super) fn bytes(self) -> &'a [u8] {
        match self {
            Self::Bytes(bytes) => bytes,
            _ => &[],
        }
    }

    /// A text, with replacements where it is not one.
    pub(super) fn text(self) -> String {
        String::from_utf8_lossy(self.bytes()).into_owned()
    }

    /// A whole number; 0 where there is none.
    pub(super) fn int(self) -> i64 {
        match self {
            Self::Varint(value) => value as i64,
            _ => 0,
        }
    }

    /// A `double` or `float`.
    pub(super) fn float(self) -> Option<f64> {
        match self {
            Self::Fixed64(bits) => Some(f64::from_bits(bits)),
            Self::Fixed32(bits) => Some(f64::from(f32::from_bits(bits))),
            _ => None,
        }
    }
}

/// The fields of a message: each with its number. Ends where the message ends or is no message.
pub(super) struct Fields<'a>(&'a [u8]);

/// The fields of this message.
pub(super) fn fields(message: &[u8]) -> Fields<'_> {
    Fields(message)
}

impl<'a> Fields<'a> {
    fn varint(&mut self) -> Option<u64> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let (first, rest) = self.0.split_first()?;
            self.0 = rest;
            value |= u64::from(first & 0x7f) << shift;
            if first & 0x80 == 0 {
                return Some(value);
            }
        }
        None
    }

    fn take(&mut self, len: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(len)?;
        self.0 = rest;
        Some(taken)
    }
}

impl<'a> Iterator for Fields<'a> {
    type Item = (u64, Value<'a>);

    fn next(&mut self) -> Option<Self::Item> {
        let key = self.varint()?;
        let value = match key & 7 {
            0 => Value::Varint(self.varint()?),
            1 => Value::Fixed64(u64::from_le_bytes(self.take(8)?.try_into().ok()?)),
            2 => {
                let len = usize::try_from(self.varint()?).ok()?;
                Value::Bytes(self.take(len)?)
            }
            5 => Value::Fixed32(u32::from_le_bytes(self.take(4)?.try_into().ok()?)),
            _ => return None,
        };
        Some((key >> 3, value))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_end_where_a_message_is_cut() {
        let message = [8, 150, 1, 18, 2, b'h', b'i', 29, 0, 0, 128, 63, 33, 0, 0, 0, 0, 0, 0, 0, 64];
        let read: Vec<_> = fields(&message).collect();
        assert_eq!(read[0], (1, Value::Varint(150)));
        assert_eq!((read[1].0, read[1].1.text()), (2, "hi".to_owned()));
        assert_eq!([read[2].1.float(), read[3].1.float()], [Some(1.0), Some(2.0)]);
        for len in 0..message.len() {
            assert!(fields(&message[..len]).count() <= 4);
        }
        assert_eq!(fields(&[18, 255, 255, 255, 255, 255, 255, 255, 255, 255, 1]).next(), None);
    }
}
