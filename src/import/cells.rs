//! The cells of a row, and what is written in them: numbers, also with a decimal comma, and times in ISO 8601.

use std::borrow::Cow;

use csv_core::{Reader, ReaderBuilder};
use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;

/// Cells without a value.
const ABSENT: [&str; 9] = ["", "-", "na", "n/a", "nan", "null", "none", "nil", "?"];

/// Splits rows.
pub(super) struct Splitter {
    separator: u8,
    reader: Reader,
}

/// The cells of one row.
#[derive(Clone, Debug, Default)]
pub(super) struct Cells {
    text: Vec<u8>,
    ends: Vec<usize>,
    len: usize,
}

impl Splitter {
    pub(super) fn new(separator: u8) -> Self {
        Self { separator, reader: ReaderBuilder::new().delimiter(separator).build() }
    }

    /// Splits a row that ends with an end of line. A space as separator may be several.
    pub(super) fn split(&mut self, row: &[u8], cells: &mut Cells) {
        cells.text.resize(cells.text.len().max(row.len()), 0);
        cells.ends.resize(cells.ends.len().max(row.len() + 1), 0);
        let spaced;
        let row = match self.separator {
            b' ' => {
                let words: Vec<&[u8]> = row.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty()).collect();
                spaced = [words.join(&b' ').as_slice(), b"\n"].concat();
                &spaced
            }
            _ => row,
        };
        // A row before it may have ended within quotes, and this one would then continue it.
        self.reader.reset();
        // There is room for any row, so that all of it is split at once.
        cells.len = self.reader.read_record(row, &mut cells.text, &mut cells.ends).3;
    }
}

impl Cells {
    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// One of them, without spaces around it; empty if there is none.
    pub(super) fn get(&self, at: usize) -> &str {
        let start = at.checked_sub(1).map_or(0, |before| self.ends[before]);
        let cell = if at < self.len { &self.text[start..self.ends[at]] } else { &[] };
        std::str::from_utf8(cell).unwrap_or_default().trim()
    }

    /// All of them.
    pub(super) fn iter(&self) -> impl Iterator<Item = &str> {
        (0..self.len).map(|at| self.get(at))
    }
}

/// Whether a cell has no value.
pub(super) fn is_absent(text: &str) -> bool {
    ABSENT.iter().any(|absent| absent.eq_ignore_ascii_case(text))
}

/// The number in a cell. With decimal commas a point is not part of a number.
pub(super) fn parse_number(text: &str, has_decimal_commas: bool) -> Option<f64> {
    if !has_decimal_commas {
        return text.parse().ok();
    }
    if text.contains('.') { None } else { text.replace(',', ".").parse().ok() }
}

/// A time as ISO 8601 writes it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct IsoTime {
    /// Nanoseconds since 1970.
    pub(super) ns: f64,
    /// Whether the text contains its offset from UTC; without one it is taken as UTC.
    pub(super) has_zone: bool,
}

/// Reads `2026-02-03T04:05:06.789+01:00`, with a space instead of the T, a comma before the fraction, or slashes in the
/// date, too.
pub(super) fn parse_iso_time(text: &str) -> Option<IsoTime> {
    // Dates alone, and numbers, which are the usual case, are not.
    if text.len() < 14 || !text.is_char_boundary(10) || !text.as_bytes()[..4].iter().all(u8::is_ascii_digit) {
        return None;
    }
    let mut text = Cow::Borrowed(text);
    if text.contains([',', '/']) || text.ends_with(" UTC") {
        let (date, time) = text.split_at(10);
        let time = time.replace(" UTC", "Z");
        text = Cow::Owned(format!("{}{}", date.replace('/', "-"), time.replace(',', ".")));
    }
    let (time, has_zone) = match text.parse::<Timestamp>() {
        Ok(time) => (time, true),
        Err(_) => (text.parse::<DateTime>().ok()?.to_zoned(TimeZone::UTC).ok()?.timestamp(), false),
    };
    Some(IsoTime { ns: time.as_nanosecond() as f64, has_zone })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_split_whatever_the_separator() {
        let mut cells = Cells::default();
        let mut split = |separator: u8, row: &str| {
            Splitter::new(separator).split(row.as_bytes(), &mut cells);
            cells.iter().map(str::to_owned).collect::<Vec<_>>()
        };
        assert_eq!(split(b',', "1,\"a, \"\"b\"\"\",\n"), ["1", "a, \"b\"", ""]);
        assert_eq!(split(b';', "1,5;2\n"), ["1,5", "2"]);
        assert_eq!(split(b' ', "  1   2 \n"), ["1", "2"]);
        assert_eq!(split(b'\t', "1\t\t2\n"), ["1", "", "2"]);
        let mut splitter = Splitter::new(b',');
        let mut cells = Cells::default();
        splitter.split(b"1,\"a very long cell that does not end\n", &mut cells);
        splitter.split(b"2,b\n", &mut cells);
        assert_eq!(cells.iter().collect::<Vec<_>>(), ["2", "b"], "no row goes on in the next one");
    }

    #[test]
    fn numbers_are_parsed_with_points_or_commas() {
        assert_eq!((parse_number("1.5", false), parse_number("1,5", false)), (Some(1.5), None));
        assert_eq!(
            (parse_number("1,5", true), parse_number("-2e-3", true), parse_number("1.5", true)),
            (Some(1.5), Some(-2e-3), None)
        );
        assert!(is_absent("NaN") && is_absent("N/A") && !is_absent("0"));
    }

    #[test]
    fn iso_times_are_parsed_with_and_without_zone() {
        let of = |text: &str| parse_iso_time(text).map(|time| ((time.ns / 1e6) as i64, time.has_zone));
        let expected = 1_770_087_906_789;
        assert_eq!(of("2026-02-03T04:05:06.789+01:00"), Some((expected, true)));
        for text in
            ["2026-02-03T03:05:06.789Z", "2026-02-03 03:05:06.789 UTC", "2026-02-03T04:05:06.789+0100[Europe/Berlin]"]
        {
            assert_eq!(of(text), Some((expected, true)), "{text}");
        }
        for text in ["2026-02-03T03:05:06.789", "2026-02-03 03:05:06,789", "2026/02/03 03:05:06.789"] {
            assert_eq!(of(text), Some((expected, false)), "{text}");
        }
        for text in ["", "1770091506.789", "soon", "2026-13-03T03:05:06", "12:13:14.15"] {
            assert_eq!(of(text), None, "{text}");
        }
    }
}
