//! Times, sizes and shares as people type them: `90s`, `5m`, `1h30m`, `30d`, `500M`, `1G`, `5%`.

use std::time::Duration;

/// Reads a time: numbers with `ms`, `s`, `m`, `h`, `d` or `w`, one after the other; a number alone is seconds.
pub(super) fn parse_duration(text: &str) -> Result<Duration, String> {
    const HELP: &str = "give a time such as 90s, 5m or 1h30m";
    if let Ok(seconds) = text.parse::<f64>() {
        return Duration::try_from_secs_f64(seconds).map_err(|_| HELP.to_owned());
    }
    let (mut rest, mut seconds) = (text, 0.0);
    while !rest.is_empty() {
        let (number, unit, after) = split_number(rest).ok_or(HELP)?;
        seconds += number
            * match unit {
                "ms" => 0.001,
                "s" => 1.0,
                "m" | "min" => 60.0,
                "h" => 3600.0,
                "d" => 86_400.0,
                "w" => 7.0 * 86_400.0,
                _ => return Err(HELP.to_owned()),
            };
        rest = after;
    }
    if text.is_empty() {
        return Err(HELP.to_owned());
    }
    Duration::try_from_secs_f64(seconds).map_err(|_| HELP.to_owned())
}

/// Reads a size: a number with `K`, `M`, `G` or `T` (powers of 1024), with or without `B` or `iB`.
pub(super) fn parse_bytes(text: &str) -> Result<u64, String> {
    const HELP: &str = "give a size such as 500M or 1G";
    let (number, unit, rest) = match text.parse::<f64>() {
        Ok(number) => (number, "", ""),
        Err(_) => split_number(text).ok_or(HELP)?,
    };
    let factor = match unit.to_ascii_lowercase().trim_end_matches("ib").trim_end_matches('b') {
        "" => 1.0,
        "k" => 1024.0,
        "m" => 1024.0 * 1024.0,
        "g" => 1024.0 * 1024.0 * 1024.0,
        "t" => 1024.0 * 1024.0 * 1024.0 * 1024.0,
        _ => return Err(HELP.to_owned()),
    };
    let bytes = number * factor;
    if rest.is_empty() && bytes.is_finite() && bytes >= 1.0 { Ok(bytes as u64) } else { Err(HELP.to_owned()) }
}

/// Reads a share as a percentage, with or without the sign.
pub(super) fn parse_share(text: &str) -> Result<f64, String> {
    let percent = text.trim_end_matches('%').trim().parse::<f64>().ok();
    let share = percent.filter(|percent| (0.0..=1000.0).contains(percent)).map(|percent| percent / 100.0);
    share.ok_or_else(|| "give a percentage such as 5%".to_owned())
}

/// Reads a speed from 0.1 to 100, with or without an `x`.
pub(super) fn parse_speed(text: &str) -> Result<f64, String> {
    let number = text.trim_end_matches('x').parse::<f64>().ok();
    number.filter(|speed| (0.1..=100.0).contains(speed)).ok_or_else(|| "give a speed from 0.1 to 100".to_owned())
}

/// The number at the front, the letters after it, and the rest.
fn split_number(text: &str) -> Option<(f64, &str, &str)> {
    let unit_at = text.find(|c: char| !c.is_ascii_digit() && c != '.')?;
    let (number, rest) = text.split_at(unit_at);
    let end = rest.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(rest.len());
    let (unit, after) = rest.split_at(end);
    Some((number.parse().ok()?, unit, after))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_parsed() {
        let of = |text| parse_duration(text).map(|time| time.as_millis());
        assert_eq!(of("30s"), Ok(30_000));
        assert_eq!(of("5m"), Ok(300_000));
        assert_eq!(of("1h30m"), Ok(5_400_000));
        assert_eq!(of("250ms"), Ok(250));
        assert_eq!(of("1.5"), Ok(1500));
        assert_eq!((of("2w"), of("0s")), (of("14d"), Ok(0)));
        for wrong in ["", "m", "5x", "-3s", "5m!", "1e999", "NaN", "s5"] {
            assert!(parse_duration(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn sizes_are_parsed() {
        assert_eq!(parse_bytes("1G"), Ok(1 << 30));
        assert_eq!(parse_bytes("500MiB"), Ok(500 << 20));
        assert_eq!(parse_bytes("64kB"), Ok(64 << 10));
        assert_eq!(parse_bytes("4096"), Ok(4096));
        for wrong in ["", "G", "0", "-1G", "5X", "1G2"] {
            assert!(parse_bytes(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn speeds_are_parsed() {
        assert_eq!(parse_speed("4"), Ok(4.0));
        assert_eq!(parse_speed("0.5x"), Ok(0.5));
        assert!(parse_speed("0").is_err() && parse_speed("1000").is_err() && parse_speed("fast").is_err());
    }
}
