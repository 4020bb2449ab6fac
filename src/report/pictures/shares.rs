//! Shares of the phases as one strip, and how phases look in a page: a letter and a class of the style each.

use std::fmt::Write;

use crate::phase_style::{self, Hue};
use crate::report::document::markup::escaped;
use crate::report::sections::phases::PhaseLine;
use gnntop_analysis::figures::{duration, percent};
use gnntop_analysis::store::GAP;

/// One piece of a strip.
#[derive(Clone, Debug)]
struct Piece<'r> {
    name: &'r str,
    key: PhaseKey,
    share: f64,
}

/// Shares of the wall time, with a legend. Empty without phases.
pub(in crate::report) fn phase_shares(phases: &[PhaseLine]) -> String {
    let pieces = pieces(phases);
    if pieces.is_empty() {
        return String::new();
    }
    format!(
        "<figure class=\"strip\">{}<div class=\"legend\">{}</div></figure>",
        strip(&pieces, 1.0, None),
        legend(&pieces)
    )
}

/// The same without a legend, one phase clear and the others faint. Empty where the phase is not among them.
pub(in crate::report) fn one_phase_share(phases: &[PhaseLine], phase: &str) -> String {
    let pieces = pieces(phases);
    let Some(piece) = pieces.iter().find(|piece| piece.name == phase) else { return String::new() };
    let text = format!("{phase} {}", percent(piece.share));
    let key = one_key(&piece.key, &text);
    format!("<figure class=\"strip\">{}<div class=\"legend\">{key}</div></figure>", strip(&pieces, 1.0, Some(phase)))
}

/// Phases of one step, by name and time; `width` (0 to 1) is how much of the line they fill.
pub(in crate::report) fn step_shares(names: &[String], parts_ns: &[u64], width: f64) -> String {
    let total = parts_ns.iter().fold(0_u64, |sum, ns| sum.saturating_add(*ns));
    if total == 0 {
        return String::new();
    }
    let keys = phase_keys(names.iter().map(String::as_str));
    let piece = |((name, key), ns): ((&'_ String, PhaseKey), &u64)| {
        let share = *ns as f64 / total as f64;
        let text = format!("{name} {} ({})", duration(*ns), percent(share));
        if share > 0.0 { part(&key, share, &text, false) } else { String::new() }
    };
    let parts: String = names.iter().zip(keys).zip(parts_ns).map(piece).collect();
    format!("<figure class=\"strip\"><div style=\"width:{:.1}%\">{parts}</div></figure>", width * 100.0)
}

/// The mean step of several runs on one scale, a strip each, with one legend.
pub(in crate::report) fn mean_step_shares(runs: &[(&str, &[PhaseLine])]) -> String {
    let mean = |phases: &[PhaseLine]| phases.iter().find(|line| line.name == "period")?.durations.mean_ns;
    let most = runs.iter().filter_map(|(_, phases)| mean(phases)).fold(0.0, f64::max);
    let mut out = "<figure class=\"strip\">".to_owned();
    let mut known: Vec<Piece<'_>> = Vec::new();
    for (name, phases) in runs {
        let Some(mean) = mean(phases).filter(|_| most > 0.0) else { continue };
        let pieces = pieces(phases);
        let _ = write!(out, "<small>{}: {} a step</small>", escaped(name), duration(mean.round() as u64));
        out += &strip(&pieces, mean / most, None);
        for piece in pieces {
            if !known.iter().any(|other| other.name == piece.name) {
                known.push(piece);
            }
        }
    }
    if known.is_empty() {
        return String::new();
    }
    let names: String = known.iter().map(|piece| one_key(&piece.key, piece.name)).collect();
    out + &format!("<div class=\"legend\">{names}</div></figure>")
}

/// The phases that have a share; the whole step and its period have none.
fn pieces(phases: &[PhaseLine]) -> Vec<Piece<'_>> {
    let lines = || phases.iter().filter(|line| !matches!(line.name.as_str(), "period" | "step"));
    let keys = phase_keys(lines().map(|line| line.name.as_str()));
    let shared = lines().zip(keys).filter_map(|(line, key)| Some((line, key, line.share?)));
    shared.map(|(line, key, share)| Piece { name: &line.name, key, share }).collect()
}

fn strip(pieces: &[Piece<'_>], width: f64, clear: Option<&str>) -> String {
    let piece = |piece: &Piece<'_>| {
        let text = format!("{} {}", piece.name, percent(piece.share));
        part(&piece.key, piece.share, &text, clear.is_some_and(|name| name != piece.name))
    };
    let parts: String = pieces.iter().filter(|piece| piece.share > 0.0).map(piece).collect();
    format!("<div style=\"width:{:.1}%\">{parts}</div>", width * 100.0)
}

/// A piece of a strip, with its letter where that fits.
fn part(key: &PhaseKey, share: f64, text: &str, is_faint: bool) -> String {
    let letter = if share >= 0.03 { escaped(&key.letter.to_string()) } else { String::new() };
    let (class, off) = (&key.class, if is_faint { " off" } else { "" });
    format!("<i class=\"{class}{off}\" style=\"flex:{share:.5} 0 0\" title=\"{}\">{letter}</i>", escaped(text))
}

fn legend(pieces: &[Piece<'_>]) -> String {
    pieces.iter().map(|piece| one_key(&piece.key, &format!("{} {}", piece.name, percent(piece.share)))).collect()
}

pub(in crate::report) fn one_key(key: &PhaseKey, text: &str) -> String {
    let letter = escaped(&key.letter.to_string());
    format!("<span class=\"key\"><i class=\"{}\">{letter}</i>{}</span>", key.class, escaped(text))
}

/// A phase's letter and class.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::report) struct PhaseKey {
    pub letter: char,
    pub class: String,
}

/// The keys of the phases with these names, in the report's order, which is the screen's.
pub(in crate::report) fn phase_keys<'a>(names: impl IntoIterator<Item = &'a str>) -> Vec<PhaseKey> {
    let looks = phase_style::assign_letters(names.into_iter().map(|name| (name != GAP).then_some(name)));
    let key = |(letter, hue): (char, Hue)| PhaseKey {
        letter,
        class: match hue {
            Hue::Standard(at) => format!("p{at}"),
            Hue::Gap => "gap".to_owned(),
            Hue::Other(nth) => format!("o{}", nth % phase_style::DARK.others.len()),
        },
    };
    looks.into_iter().map(key).collect()
}
