//! Parsing what the kernel writes in `/proc`, by hand: no allocation, and no input makes it panic. Also the units in which it
//! counts time and memory there.
//!
//! Numbers count only if they are whole words of decimal digits that fit an `i64`, the type of a raw value. Anything
//! else is "no value here", never a guess.

/// The words of a line, split at spaces and tabs.
pub(crate) fn words(line: &[u8]) -> impl Iterator<Item = &[u8]> {
    line.split(|byte| matches!(byte, b' ' | b'\t')).filter(|word| !word.is_empty())
}

/// The lines of a file. A last line without a newline was cut, and is left out.
pub(crate) fn lines(bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    let whole = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
    bytes[..whole].split(|byte| *byte == b'\n').filter(|line| !line.is_empty())
}

/// A non-negative decimal number, or `None` if `word` is anything else or does not fit.
pub(crate) fn decimal(word: &[u8]) -> Option<i64> {
    if word.is_empty() {
        return None;
    }
    word.iter().try_fold(0_i64, |number, byte| {
        let digit = byte.is_ascii_digit().then(|| i64::from(byte - b'0'))?;
        number.checked_mul(10)?.checked_add(digit)
    })
}

/// A decimal fraction with at most three places after the point (`0.52`), in thousandths.
pub(crate) fn thousandths(word: &[u8]) -> Option<i64> {
    let mut parts = word.splitn(2, |byte| *byte == b'.');
    let whole = decimal(parts.next()?)?;
    let places = parts.next().unwrap_or(b"0");
    if places.len() > 3 {
        return None;
    }
    let scale = 10_i64.pow(3 - places.len() as u32);
    whole.checked_mul(1000)?.checked_add(decimal(places)? * scale)
}

/// Looks up `Key: number [unit]` lines, as in `/proc/meminfo`, `/proc/PID/status` and `/proc/PID/io`.
///
/// The result is in the order of `keys`, with `None` where a key is missing or has no number.
pub(crate) fn keyed<const N: usize>(bytes: &[u8], keys: &[&[u8]; N]) -> [Option<i64>; N] {
    let mut found = [None; N];
    let mut left = N;
    for line in lines(bytes) {
        let Some(colon) = line.iter().position(|byte| *byte == b':') else { continue };
        let Some(slot) = keys.iter().position(|key| *key == &line[..colon]) else { continue };
        if found[slot].is_none() {
            found[slot] = words(&line[colon + 1..]).next().and_then(decimal);
            left -= 1;
            if left == 0 {
                break;
            }
        }
    }
    found
}

/// The fields of `/proc/PID/stat` that are read (proc_pid_stat(5)).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ProcessStat {
    /// Field 3, such as `R`; `Z` and `X` are ended processes.
    pub(crate) state: u8,
    /// Field 4: the process that it is a child of.
    pub(crate) parent: i64,
    /// Field 10.
    pub(crate) minor_faults: i64,
    /// Field 12.
    pub(crate) major_faults: i64,
    /// Field 14, in clock ticks.
    pub(crate) user_ticks: i64,
    /// Field 15, in clock ticks.
    pub(crate) system_ticks: i64,
    /// Field 20.
    pub(crate) threads: i64,
    /// Field 22, in clock ticks after boot. With the PID it identifies a process for good.
    pub(crate) start_ticks: i64,
    /// Field 24, in pages.
    pub(crate) resident_pages: i64,
    /// Field 39: the core on which the main thread last ran.
    pub(crate) core: Option<i64>,
}

impl ProcessStat {
    /// Parses the line, or `None` if any field read is missing or not a number.
    pub(crate) fn parse(bytes: &[u8]) -> Option<Self> {
        // A cut number is still a number, so the line must be whole.
        let line = lines(bytes).next()?;
        // The second field is the program's name in brackets, which may itself contain spaces and brackets.
        let name_end = line.iter().rposition(|byte| *byte == b')')?;
        let mut fields = words(&line[name_end + 1..]);
        let state = *fields.next()?.first()?;
        // `nth` counts from the last field taken, so each comment gives the field's number in the manual.
        Some(Self {
            state,
            parent: decimal(fields.next()?)?,         // 4
            minor_faults: decimal(fields.nth(5)?)?,   // 10
            major_faults: decimal(fields.nth(1)?)?,   // 12
            user_ticks: decimal(fields.nth(1)?)?,     // 14
            system_ticks: decimal(fields.next()?)?,   // 15
            threads: decimal(fields.nth(4)?)?,        // 20
            start_ticks: decimal(fields.nth(1)?)?,    // 22
            resident_pages: decimal(fields.nth(1)?)?, // 24
            core: fields.nth(14).and_then(decimal),   // 39
        })
    }

    /// The program's name on the same line: field 2, without its brackets.
    pub(crate) fn name(bytes: &[u8]) -> Option<&[u8]> {
        let open = bytes.iter().position(|byte| *byte == b'(')?;
        let close = bytes.iter().rposition(|byte| *byte == b')')?;
        bytes.get(open + 1..close)
    }

    /// Whether the process has ended, though its parent has not collected it yet.
    pub(crate) fn has_ended(&self) -> bool {
        matches!(self.state, b'Z' | b'X' | b'x')
    }
}

/// One `cpu` line of `/proc/stat`, in clock ticks since boot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CpuLine {
    /// The core's number, or `None` for the line that sums them all.
    pub(crate) core: Option<u32>,
    /// User, nice, system, interrupts and soft interrupts. Guests are already inside user and nice.
    pub(crate) busy_ticks: i64,
    /// Idle while a disk request of this core was waiting.
    pub(crate) iowait_ticks: i64,
    /// Ready to run, while the host ran something else.
    pub(crate) steal_ticks: i64,
}

impl CpuLine {
    /// Parses one line, or `None` if it is not a `cpu` line of at least eight numbers (Linux 2.6.11 and newer).
    pub(crate) fn parse(line: &[u8]) -> Option<Self> {
        let mut fields = words(line);
        let label = fields.next()?.strip_prefix(b"cpu")?;
        let core = if label.is_empty() { None } else { Some(u32::try_from(decimal(label)?).ok()?) };
        let mut ticks = [0_i64; 8];
        for slot in &mut ticks {
            *slot = decimal(fields.next()?)?;
        }
        let [user, nice, system, _idle, iowait_ticks, irq, softirq, steal_ticks] = ticks;
        let busy_ticks =
            [user, nice, system, irq, softirq].iter().try_fold(0_i64, |sum, part| sum.checked_add(*part))?;
        Some(Self { core, busy_ticks, iowait_ticks, steal_ticks })
    }
}

/// The `total=` of a `some` or `full` line of `/proc/pressure/*`, in microseconds.
pub(crate) fn pressure_total(bytes: &[u8], label: &[u8]) -> Option<i64> {
    let line = lines(bytes).find(|line| words(line).next() == Some(label))?;
    decimal(words(line).find_map(|word| word.strip_prefix(b"total="))?)
}

/// A list of numbers and ranges as in `/sys/devices/system/cpu/present` (`0-3,8`), bounded to `limit` numbers.
pub(crate) fn number_list(text: &[u8], limit: usize) -> Vec<u32> {
    let mut numbers = Vec::new();
    for part in text.trim_ascii().split(|byte| *byte == b',') {
        let mut ends =
            part.splitn(2, |byte| *byte == b'-').map(|end| decimal(end).and_then(|end| u32::try_from(end).ok()));
        let Some(Some(first)) = ends.next() else { continue };
        let last = match ends.next() {
            Some(Some(last)) => last,
            Some(None) => continue,
            None => first,
        };
        let room = limit.saturating_sub(numbers.len());
        numbers.extend((first..=last).take(room));
    }
    numbers
}

/// Nanoseconds of one clock tick, the unit of times in `/proc` (10 ms on every common kernel).
pub(super) fn ns_per_tick() -> i64 {
    1_000_000_000 / i64::try_from(rustix::param::clock_ticks_per_second()).unwrap_or(100).max(1)
}

/// Bytes of one page of memory.
pub(super) fn page_bytes() -> i64 {
    i64::try_from(rustix::param::page_size()).unwrap_or(4096)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const STAT: &[u8] = b"4112 (a b) (c)) R 4105 4105 2675 0 -1 4194304 103 7 2 9 31 17 5 6 20 0 4 0 55954 3133440 416 18446744073709551615 1 2 3 4 5 6 7 8 9 10 11 12 17 5 0\n";

    #[test]
    fn process_stat_parses_fields_after_any_name() {
        let expected = ProcessStat {
            state: b'R',
            parent: 4105,
            minor_faults: 103,
            major_faults: 2,
            user_ticks: 31,
            system_ticks: 17,
            threads: 4,
            start_ticks: 55954,
            resident_pages: 416,
            core: Some(5),
        };
        assert_eq!(ProcessStat::parse(STAT), Some(expected));
        assert_eq!(ProcessStat::name(STAT), Some(&b"a b) (c)"[..]));
        assert_eq!(ProcessStat::name(b") ("), None);
    }

    #[test]
    fn process_stat_truncated_is_none() {
        for end in 0..STAT.len() {
            assert_eq!(ProcessStat::parse(&STAT[..end]), None, "cut at {end}");
        }
    }

    #[test]
    fn decimal_parses_whole_words_in_range() {
        assert_eq!(decimal(b"0"), Some(0));
        assert_eq!(decimal(b"9223372036854775807"), Some(i64::MAX));
        for word in ["", "-1", "+1", "1x", " 1", "9223372036854775808", "0x10", "1e3"] {
            assert_eq!(decimal(word.as_bytes()), None, "{word}");
        }
    }

    #[test]
    fn thousandths_parses_load() {
        assert_eq!(thousandths(b"0.52"), Some(520));
        assert_eq!(thousandths(b"12.00"), Some(12_000));
        assert_eq!(thousandths(b"7"), Some(7_000));
        assert_eq!(thousandths(b"1.2345"), None);
        assert_eq!(thousandths(b"1."), None);
        assert_eq!(thousandths(b".5"), None);
    }

    #[test]
    fn cpu_line_refuses_other_lines() {
        let line = CpuLine::parse(b"cpu3 10 2 30 400 5 6 7 8 9 1").unwrap();
        assert_eq!(line, CpuLine { core: Some(3), busy_ticks: 55, iowait_ticks: 5, steal_ticks: 8 });
        assert_eq!(CpuLine::parse(b"cpu  1 1 1 1 1 1 1 1 1 1").unwrap().core, None);
        for other in ["cpufreq 1 2 3 4 5 6 7 8", "cpu0 1 2 3", "intr 1 2 3 4 5 6 7 8", "cpu0 a b c d e f g h", ""] {
            assert_eq!(CpuLine::parse(other.as_bytes()), None, "{other}");
        }
    }

    #[test]
    fn pressure_totals_are_found_by_label() {
        let file =
            b"some avg10=2.01 avg60=0.64 avg300=0.19 total=1863779\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=12\n";
        assert_eq!(pressure_total(file, b"some"), Some(1_863_779));
        assert_eq!(pressure_total(file, b"full"), Some(12));
        assert_eq!(pressure_total(&file[..70], b"full"), None);
        assert_eq!(pressure_total(b"some avg10=2.01\n", b"some"), None);
    }

    #[test]
    fn keyed_lines_are_found_in_any_order() {
        let file = b"B:\t 7 kB\nnonsense\nA: x\nC: 9\nC: 10\nD: 5";
        assert_eq!(keyed(file, &[b"A", b"B", b"C", b"D"]), [None, Some(7), Some(9), None]);
    }

    #[test]
    fn number_lists_are_bounded() {
        assert_eq!(number_list(b"0-3,8,x,5-y\n", 100), [0, 1, 2, 3, 8]);
        assert_eq!(number_list(b"0-4294967295", 3), [0, 1, 2]);
        assert_eq!(number_list(b"3-1", 3), [0_u32; 0]);
        assert_eq!(number_list(b"\n", 3), [0_u32; 0]);
    }

    proptest! {
        #[test]
        fn parsers_accept_any_bytes(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
            let _ = ProcessStat::parse(&bytes);
            let _ = CpuLine::parse(&bytes);
            let _ = pressure_total(&bytes, b"some");
            let _ = keyed(&bytes, &[b"A", b"VmRSS"]);
            let _ = thousandths(&bytes);
            prop_assert!(number_list(&bytes, 64).len() <= 64);
        }

        #[test]
        fn parsers_accept_likely_bytes(text in "(cpu|some|full|total=|[0-9]{1,25}|[ \\t\\n():,.=-]){0,60}") {
            let bytes = text.as_bytes();
            let _ = ProcessStat::parse(bytes);
            for line in lines(bytes) {
                let _ = CpuLine::parse(line);
            }
            let _ = pressure_total(bytes, b"some");
            let _ = keyed(bytes, &[b"cpu", b"some"]);
            let _ = thousandths(bytes);
            prop_assert!(number_list(bytes, 64).len() <= 64);
        }

        #[test]
        fn decimal_round_trip(number in 0..=i64::MAX) {
            prop_assert_eq!(decimal(number.to_string().as_bytes()), Some(number));
        }
    }
}
