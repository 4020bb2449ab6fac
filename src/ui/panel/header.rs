//! The two rows at the top: which run this is, its state, and what it is doing, in words.

use std::time::Duration;

use gnntop_wire::{Mode, SessionInfo};
use ratatui::style::Style;

use crate::app::{SourceState, Transport};
use crate::ui::scene::Scene;
use crate::ui::sheet::{Sheet, clip, width};
use crate::ui::theme::Theme;
use gnntop_analysis::figures::{count, elapsed, elapsed_time, quantity, timecode};
use gnntop_analysis::findings::{FindingKind, Number};

/// Draws the header.
pub fn draw(sheet: &mut Sheet<'_>, scene: &Scene<'_>) {
    let (state, style) = state(scene);
    let end = draw_facts(sheet, scene, &state, style);
    draw_identity(&mut sheet.part(0, 0, end, 1), scene);
    if sheet.height() > 1 {
        let room = sheet.width().saturating_sub(2);
        let whole = fitting(&verdict(scene), room);
        sheet.text(1, 1, &clip(&whole, room, scene.theme), scene.theme.strong());
    }
}

/// What the run is doing, in words; what to do if nothing is known about it.
pub fn verdict(scene: &Scene<'_>) -> String {
    let (verdict, status) = (scene.app.verdict(), scene.app.status());
    match &status.state {
        _ if scene.is_hardware_only() => status.hint.clone().unwrap_or_default(),
        // Of a replay, the state says that.
        SourceState::Ended(_) if status.transport.is_some() && !verdict.is_empty() => verdict.to_owned(),
        SourceState::Ended(why) if !why.is_empty() && verdict.is_empty() => why.clone(),
        // What bounds the run stays also where there is room for one part alone.
        SourceState::Ended(why) if !why.is_empty() => match verdict.split_once("; ") {
            Some((bound, rest)) => format!("{bound}; {why}; {rest}"),
            None => format!("{verdict}; {why}"),
        },
        _ => verdict.to_owned(),
    }
}

/// As many of a verdict's parts as fit, whole, and how many more the findings have. At least the first one.
fn fitting(verdict: &str, room: u16) -> String {
    let parts: Vec<&str> = verdict.split("; ").collect();
    let shown = |n: usize| match parts.len() - n {
        0 => verdict.to_owned(),
        left => format!("{}; {left} more: key 8", parts[..n].join("; ")),
    };
    let fits = |n: &usize| width(&shown(*n)) <= room;
    (1..=parts.len()).rev().find(fits).map_or_else(|| verdict.to_owned(), shown)
}

/// The run's state in a few words, and how to highlight it.
pub fn state(scene: &Scene<'_>) -> (String, Style) {
    let (app, theme) = (scene.app, scene.theme);
    let status = app.status();
    if let Some(transport) = &status.transport {
        return match &status.state {
            SourceState::Ended(why) if !why.is_empty() => (format!("{} {why}", theme.text("■", "#")), theme.warning()),
            _ => (replay(transport, theme), theme.accent()),
        };
    }
    if let Some(time) = app.frozen_for() {
        return (format!("{} frozen {}", theme.text("❚❚", "||"), ago(time)), theme.warning());
    }
    match &status.state {
        SourceState::Waiting => ("waiting".to_owned(), theme.warning()),
        SourceState::Ended(_) => (format!("{} ended", theme.text("■", "#")), theme.warning()),
        SourceState::Running => match (app.silent_for(), standstill_ns(scene)) {
            (Some(time), _) => (format!("silent for {}", elapsed_time(time)), theme.warning()),
            (None, Some(ns)) => (format!("no step for {}", elapsed(ns)), theme.warning()),
            (None, None) => (format!("{} live", theme.text("●", "*")), theme.good()),
        },
    }
}

/// For how long the run has hung, in nanoseconds; `None` if it does not.
fn standstill_ns(scene: &Scene<'_>) -> Option<u64> {
    let found = &scene.app.findings().found;
    let hang = found.iter().find(|finding| finding.kind == FindingKind::Hang)?;
    Some(hang.fact(Number::Lasting)? as u64)
}

fn ago(time: Duration) -> String {
    format!("{} ago", elapsed_time(time))
}

fn replay(transport: &Transport, theme: &Theme) -> String {
    let Transport { position_ns, total_ns, speed, paused, looping, repeated: part, seeking, .. } = transport;
    let sign = match (seeking, paused) {
        (true, _) => "seeking",
        (_, true) => theme.text("❚❚", "||"),
        _ => theme.text("▶", ">"),
    };
    let total = total_ns.map(|total| format!(" of {}", timecode(total))).unwrap_or_default();
    let looping = match part {
        (Some(from), Some(to)) => format!(", part {} to {}", timecode(*from), timecode(*to)),
        (Some(from), None) => format!(", part from {}", timecode(*from)),
        _ if *looping => ", looping".to_owned(),
        _ => String::new(),
    };
    format!("{sign} replay {}x at {}{total}{looping}", quantity(*speed), timecode(*position_ns))
}

/// Draws state, epoch, step and time at the right, as far as they fit; returns the column where they begin.
fn draw_facts(sheet: &mut Sheet<'_>, scene: &Scene<'_>, state: &str, style: Style) -> u16 {
    let theme = scene.theme;
    let separator = theme.text(" │ ", " | ");
    let mut facts = vec![(state.to_owned(), style)];
    if scene.store.session().is_inference() {
        facts.push((Mode::Inference.as_str().to_owned(), theme.plain()));
    }
    // Of the run: which step is selected is said where it is shown.
    if let Some(row) = scene.store.steps().last() {
        facts.push((format!("epoch {}", count(row.epoch())), theme.plain()));
        facts.push((format!("step {}", count(row.step().0)), theme.plain()));
    }
    facts.push((elapsed(scene.store.elapsed_ns()), theme.plain()));
    let total = |facts: &[(String, Style)]| facts.iter().map(|(text, _)| width(text) + width(separator)).sum::<u16>();
    // The run's name needs room, too.
    let room = sheet.width().saturating_sub(sheet.width() / 3);
    while facts.len() > 1 && total(&facts) > room {
        facts.pop();
    }
    let start = sheet.width().saturating_sub(total(&facts));
    let mut x = start;
    for (i, (text, style)) in facts.iter().enumerate() {
        if i > 0 {
            x = sheet.text(x, 0, separator, theme.dim());
        }
        x = sheet.text(x, 0, &clip(text, sheet.width().saturating_sub(x), theme), *style);
    }
    start
}

/// Which process it is and, of several ranks, which one.
fn process(info: &SessionInfo) -> String {
    let place = info.place.as_ref().filter(|place| place.ranks > 1 || place.rank > 0);
    let rank = place.map(|place| format!("rank {}/{}, ", place.rank, place.ranks));
    // An imported recording has no process.
    let pid = if info.pid > 0 { format!("pid {} on ", info.pid) } else { String::new() };
    format!("{}{pid}{}", rank.unwrap_or_default(), info.host)
}

fn draw_identity(sheet: &mut Sheet<'_>, scene: &Scene<'_>) {
    let theme = scene.theme;
    let mut x = 1;
    if sheet.width() >= 40 {
        x = sheet.text(x, 0, "gnntop", theme.accent()) + 2;
    }
    let (name, process) = match scene.store.session().info() {
        Some(info) => (info.name.clone(), process(info)),
        None => (scene.app.status().title.clone(), String::new()),
    };
    let room = sheet.width().saturating_sub(x + 2);
    // The name may be anything; the process is worth a part of the row, where there is one.
    let process_room = if room >= 24 { (width(&process) + 2).min(room * 3 / 5) } else { 0 };
    let name_room = if process_room > 0 { room - process_room } else { room };
    x = sheet.text(x, 0, &clip(&name, name_room, theme), theme.strong());
    if process_room > 2 {
        sheet.text(x + 2, 0, &clip(&process, process_room - 2, theme), theme.dim());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_verdict_is_cut_between_its_parts() {
        let verdict = "backward-bound (52 %); data wait 16 %; 2 spikes (worst 7.8 x median)";
        assert_eq!(fitting(verdict, 80), verdict);
        assert_eq!(fitting(verdict, 60), "backward-bound (52 %); data wait 16 %; 1 more: key 8");
        assert_eq!(fitting(verdict, 40), "backward-bound (52 %); 2 more: key 8");
        assert_eq!(fitting(verdict, 10), verdict, "then it is clipped");
        assert_eq!(fitting("", 10), "");
    }
}
