//! Formats numbers for people, with three significant digits and a unit; and names so that two runs can be distinguished.

use std::time::Duration;

use jiff::Timestamp;

/// A duration such as `840 ns`, `42.1 ms`, `3.20 s`, `2m 05s` or `1h 02m`.
pub fn duration(ns: u64) -> String {
    const S: f64 = 1e9;
    let value = ns as f64;
    match value {
        _ if ns < 1000 => format!("{ns} ns"),
        _ if value < 999_500.0 => format!("{} µs", three_digits(value / 1e3)),
        _ if value < 999_500_000.0 => format!("{} ms", three_digits(value / 1e6)),
        _ if value < 99.95 * S => format!("{} s", three_digits(value / S)),
        _ => clock(ns / 1_000_000_000),
    }
}

/// Whole seconds as `1m 40s`, `1h 02m` or `3d 04h`.
fn clock(seconds: u64) -> String {
    let (m, h, d) = (seconds / 60, seconds / 3600, seconds / 86_400);
    match () {
        () if h == 0 => format!("{m}m {:02}s", seconds % 60),
        () if d == 0 => format!("{h}h {:02}m", m % 60),
        () => format!("{d}d {:02}h", h % 24),
    }
}

/// Elapsed time, to the second: `12s`, `2m 05s`.
pub fn elapsed(ns: u64) -> String {
    let seconds = ns / 1_000_000_000;
    if seconds < 60 { format!("{seconds}s") } else { clock(seconds) }
}

/// Elapsed time, to the second.
pub fn elapsed_time(time: Duration) -> String {
    elapsed(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX))
}

/// For how long something has lasted: whole seconds up to 99, else as a duration. It is rounded everywhere in the same way.
pub fn lasting(ns: u64) -> String {
    let seconds = ns.saturating_add(500_000_000) / 1_000_000_000;
    if seconds < 100 { format!("{seconds} s") } else { duration(ns) }
}

/// A number with its unit, such as joules or watts, in a unit that can show it: `2.46 kJ`, `0.28 J`, `1.30 mJ`.
pub fn scaled(value: f64, unit: &str) -> String {
    const LEAST: [(f64, &str); 3] = [(0.01, ""), (1e-5, "m"), (0.0, "µ")];
    let size = value.abs();
    let (scale, prefix) = match LEAST.iter().position(|(least, _)| size >= *least) {
        Some(at @ 1..) if size > 0.0 => (1000f64.powi(at as i32), LEAST[at].1),
        _ => (1.0, ""),
    };
    let figure = quantity(value * scale);
    let space = if figure.ends_with(|c: char| c.is_ascii_alphabetic()) { "" } else { " " };
    format!("{figure}{space}{prefix}{unit}")
}

/// A number in hundredths, such as cores: `1.92`, `< 0.01`, or `0`.
pub fn hundredths(value: f64) -> String {
    match value {
        _ if value == 0.0 => "0".to_owned(),
        _ if value > 0.0 && value < 0.005 => "< 0.01".to_owned(),
        _ => format!("{value:.2}"),
    }
}

/// A position in a recording: `01:30`, `1:01:30`.
pub fn timecode(ns: u64) -> String {
    let seconds = ns / 1_000_000_000;
    let (h, m, s) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    if h > 0 { format!("{h}:{m:02}:{s:02}") } else { format!("{m:02}:{s:02}") }
}

/// Bytes such as `512 MiB`.
pub fn bytes(bytes: f64) -> String {
    const UNITS: [&str; 6] = ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    let mut value = bytes.abs();
    if value < 1000.0 {
        return format!("{bytes:.0} B");
    }
    let mut unit = "B";
    for next in UNITS {
        if value < 999.5 {
            break;
        }
        value /= 1024.0;
        unit = next;
    }
    let sign = if bytes < 0.0 { "-" } else { "" };
    format!("{sign}{} {unit}", three_digits(value))
}

/// A share of 1 as `52 %` or `4.1 %`.
pub fn percent(share: f64) -> String {
    let percent = share * 100.0;
    if percent < 9.95 { format!("{percent:.1} %") } else { format!("{percent:.0} %") }
}

/// A relative change such as `+4.2 %`, `-31.0 %`, or from ten times on `x 1,594`.
pub fn change(share: f64) -> String {
    let times = 1.0 + share;
    match times {
        _ if times < 10.0 => format!("{:+.1} %", share * 100.0),
        _ if times < 1000.0 => format!("x {}", three_digits(times)),
        _ => format!("x {}", count(times as u64)),
    }
}

/// A difference of `value` from `usual` as `+12 %`, `-3.1 %` or `x 4.2`.
pub fn difference(value: u64, usual: u64) -> Option<String> {
    if usual == 0 {
        return None;
    }
    let ratio = value as f64 / usual as f64;
    Some(if ratio >= 2.0 {
        format!("x {}", three_digits(ratio))
    } else {
        format!("{:+.0} %", ((ratio - 1.0) * 100.0).round() + 0.0)
    })
}

/// A count with separated thousands: `1,234,567`.
pub fn count(n: u64) -> String {
    let digits = n.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// A number with its noun, such as `1 step` or `2,000 steps`.
pub fn counted(n: u64, one: &str, many: &str) -> String {
    format!("{} {}", count(n), if n == 1 { one } else { many })
}

/// A rate or another number that need not be whole: `92.1 k`.
pub fn quantity(value: f64) -> String {
    const SCALES: [(f64, &str); 4] = [(1e12, " T"), (1e9, " G"), (1e6, " M"), (1e3, " k")];
    let size = value.abs();
    if !value.is_finite() {
        return value.to_string();
    }
    match SCALES.iter().find(|(scale, _)| size >= 0.9995 * scale) {
        Some((scale, suffix)) => format!("{}{suffix}", three_digits(value / scale)),
        None if value.fract() == 0.0 => format!("{value:.0}"),
        None => three_digits(value),
    }
}

/// A value that a program logs, in four digits: `0.6931`, `12.50`, or `1.250e-5` where it is very small or large.
pub fn significant(value: f64) -> String {
    let size = value.abs();
    match size {
        _ if !value.is_finite() => value.to_string(),
        _ if value.fract() == 0.0 && size < 1e6 => format!("{value:.0}"),
        _ if !(1e-3..1e6).contains(&size) => format!("{value:.3e}"),
        _ => format!("{value:.*}", 3usize.saturating_add_signed(-(size.log10().floor() as isize)).min(6)),
    }
}

/// Three significant digits, never more than three decimals.
fn three_digits(value: f64) -> String {
    let size = value.abs();
    match size {
        _ if size < 0.9995 => format!("{value:.3}"),
        _ if size < 9.995 => format!("{value:.2}"),
        _ if size < 99.95 => format!("{value:.1}"),
        _ => format!("{value:.0}"),
    }
}

/// A time as `2026-01-02 03:04:05 UTC`.
pub fn utc(unix_ns: u64) -> String {
    // jiff covers every u64 of nanoseconds: it goes up to the year 9999, they to 2554.
    let time = Timestamp::from_nanosecond(i128::from(unix_ns)).unwrap_or(Timestamp::MAX);
    time.strftime("%Y-%m-%d %H:%M:%S UTC").to_string()
}

/// Names as a list in words: `a`, `a and b`, `a, b and c`.
pub fn joined(names: &[&str]) -> String {
    match names {
        [] => String::new(),
        [name] => (*name).to_owned(),
        [names @ .., last] => format!("{} and {last}", names.join(", ")),
    }
}

/// Shortens two names to at most `most` characters each so that they still differ if they did: without their common
/// folders, cut in the middle, or around their first difference. `sign` marks what was cut.
pub fn shorten_pair(names: [&str; 2], most: usize, sign: char) -> [String; 2] {
    let fits = |name: &str| name.chars().count() <= most;
    if names.iter().all(|name| fits(name)) {
        return names.map(str::to_owned);
    }
    let common: usize =
        names[0].chars().zip(names[1].chars()).take_while(|(a, b)| a == b).map(|(a, _)| a.len_utf8()).sum();
    let folders = names[0][..common].rfind('/').map_or(0, |at| at + 1);
    let names = if names[0] == names[1] { names } else { names.map(|name| &name[folders..]) };
    let cut = names.map(|name| shorten_middle(name, most, sign));
    if cut[0] != cut[1] || names[0] == names[1] || most < 3 {
        return cut;
    }
    let differ = names[0].chars().zip(names[1].chars()).take_while(|(a, b)| a == b).count();
    names.map(|name| shorten_around(name, differ, most, sign))
}

/// Shortens a name of more than `most` characters to its beginning and end.
fn shorten_middle(name: &str, most: usize, sign: char) -> String {
    let n = name.chars().count();
    if n <= most {
        return name.to_owned();
    }
    let kept = most.saturating_sub(1);
    let (head, tail) = (kept.div_ceil(2), kept / 2);
    let signs = std::iter::once(sign).take(most);
    name.chars().take(head).chain(signs).chain(name.chars().skip(n - tail)).collect()
}

/// As much of a name as there is room for, including the character at `at`.
fn shorten_around(name: &str, at: usize, most: usize, sign: char) -> String {
    let start = at.saturating_sub(most.saturating_sub(2) / 2);
    let n = name.chars().count();
    let begins = (start > 0).then_some(sign);
    let room = most.saturating_sub(usize::from(start > 0));
    let ends = (n - start.min(n) > room).then_some(sign);
    let taken = room.saturating_sub(usize::from(ends.is_some()));
    begins.into_iter().chain(name.chars().skip(start).take(taken)).chain(ends).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_values_get_a_unit_that_can_show_them() {
        let joules = |value| scaled(value, "J");
        assert_eq!([2460.0, 0.28, 0.0013, 4e-6, 0.0].map(joules), ["2.46 kJ", "0.280 J", "1.30 mJ", "4 µJ", "0 J"]);
        assert_eq!([1.924, 0.01, 0.001, 0.0].map(hundredths), ["1.92", "0.01", "< 0.01", "0"]);
        assert_eq!([49_900_000_000, 8_650_000_000, 130_000_000_000].map(lasting), ["50 s", "9 s", "2m 10s"]);
    }

    #[test]
    fn change_is_a_percentage_or_a_factor() {
        assert_eq!([0.042, -0.31, 8.9].map(change), ["+4.2 %", "-31.0 %", "+890.0 %"]);
        assert_eq!([9.0, 41.0, 1593.17].map(change), ["x 10.0", "x 42.0", "x 1,594"]);
    }

    #[test]
    fn shortened_names_still_differ() {
        let cut = |a, b, most| shorten_pair([a, b], most, '…');
        assert_eq!(cut("a.gnntop", "b.gnntop", 10), ["a.gnntop", "b.gnntop"]);
        assert_eq!(cut("runs/2024/a.gnntop", "runs/2024/b.gnntop", 10), ["a.gnntop", "b.gnntop"]);
        let [a, b] = cut("pna-with-hidden-64-and-more.gnntop", "pna-with-hidden-128-and-more.gnntop", 16);
        assert!(a != b && a.chars().count() <= 16 && b.chars().count() <= 16, "{a} {b}");
        assert!(a.contains("64") && b.contains("128"), "{a} {b}");
        assert_eq!(cut("one-long-name-of-a-run", "other", 9), ["one-…-run", "other"]);
        assert_eq!(cut("the-same-long-name", "the-same-long-name", 9), ["the-…name"; 2]);
        for most in 0..40 {
            let (plain, accented) = ("x".repeat(30), format!("{}é{}", "x".repeat(14), "x".repeat(15)));
            let names = shorten_pair([&plain, &accented], most, '…');
            assert!(names.iter().all(|name| name.chars().count() <= most), "{most}: {names:?}");
            assert!(most < 3 || names[0] != names[1], "{most}: {names:?}");
        }
    }

    #[test]
    fn joined_lists_names() {
        assert_eq!(joined(&[]), "");
        assert_eq!(joined(&["a", "b"]), "a and b");
        assert_eq!(joined(&["a", "b", "c"]), "a, b and c");
    }

    #[test]
    fn duration_formats_all_sizes() {
        let cases = [
            (0, "0 ns"),
            (999, "999 ns"),
            (1_000, "1.00 µs"),
            (999_499, "999 µs"),
            (999_500, "1.00 ms"),
            (42_149_000, "42.1 ms"),
            (999_600_000, "1.00 s"),
            (99_940_000_000, "99.9 s"),
            (125_000_000_000, "2m 05s"),
            (3_720_000_000_000, "1h 02m"),
            (270_000_000_000_000, "3d 03h"),
            (u64::MAX, "213503d 23h"),
        ];
        for (ns, text) in cases {
            assert_eq!(duration(ns), text);
        }
    }

    #[test]
    fn timecode_and_elapsed_formats() {
        assert_eq!(timecode(90_000_000_000), "01:30");
        assert_eq!(timecode(3_690_000_000_000), "1:01:30");
        assert_eq!(elapsed(12_900_000_000), "12s");
        assert_eq!(elapsed(125_000_000_000), "2m 05s");
    }

    #[test]
    fn bytes_formats_all_sizes() {
        assert_eq!(bytes(0.0), "0 B");
        assert_eq!(bytes(999.0), "999 B");
        assert_eq!(bytes(1024.0), "1.00 KiB");
        assert_eq!(bytes(536_870_912.0), "512 MiB");
        assert_eq!(bytes(149.6 * 1024.0 * 1024.0 * 1024.0), "150 GiB");
        assert_eq!(bytes(-2048.0), "-2.00 KiB");
        assert_eq!(bytes(f64::INFINITY), "inf EiB");
    }

    #[test]
    fn count_and_percent_formats() {
        assert_eq!(count(0), "0");
        assert_eq!(count(999), "999");
        assert_eq!(count(1_234_567), "1,234,567");
        assert_eq!(quantity(3.0), "3");
        assert_eq!(quantity(0.412), "0.412");
        assert_eq!(quantity(92_140.0), "92.1 k");
        assert_eq!(quantity(f64::NAN), "NaN");
        assert_eq!(percent(0.0408), "4.1 %");
        assert_eq!(percent(0.52), "52 %");
        assert_eq!(percent(1.0), "100 %");
        assert_eq!(difference(103, 100).as_deref(), Some("+3 %"));
        assert_eq!(difference(97, 100).as_deref(), Some("-3 %"));
        assert_eq!(difference(420, 100).as_deref(), Some("x 4.20"));
        assert_eq!(difference(1, 0), None);
    }

    #[test]
    fn utc_formats_time() {
        assert_eq!(utc(0), "1970-01-01 00:00:00 UTC");
        assert_eq!(utc(951_782_399_000_000_000), "2000-02-28 23:59:59 UTC");
        assert_eq!(utc(951_868_800_000_000_000), "2000-03-01 00:00:00 UTC");
        assert_eq!(utc(1_767_323_045_999_999_999), "2026-01-02 03:04:05 UTC");
        assert_eq!(utc(u64::MAX), "2554-07-21 23:34:33 UTC");
    }
}
