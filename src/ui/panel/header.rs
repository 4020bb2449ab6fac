//! The two rows at the top: which run this is, its state, and what it is doing, in words.

use std::time::Duration;

use gnntop_wire::{Mode, SessionInfo};
use ratatui::style::Style;

use crate::app::{SourceState, Transport};
use crate::ui::scene::Scene;
use crate::ui::sheet::{Sheet, clip, width};
use crate::ui::theme::Theme;
use gnntop_analysis::figures::{count, elapsed, elapsed_time, lasting, quantity, timecode};
use gnntop_analysis::findings::{FindingKind, HeadlinePart, Number};

/// Draws the header.
pub fn draw(sheet: &mut Sheet<'_>, scene: &Scene<'_>) {
    let (state, style) = state(scene);
    let end = draw_facts(sheet, scene, &state, style);
    draw_identity(&mut sheet.part(0, 0, end, 1), scene);
    if sheet.height() > 1 {
        let room = sheet.width().saturating_sub(2);
        let whole = fitting(&parts(scene), scene.app.findings().found.len(), room);
        sheet.text(1, 1, &clip(&whole, room, scene.theme), scene.theme.strong());
    }
}

/// What the run is doing, in words; what to do if nothing is known about it.
pub fn verdict(scene: &Scene<'_>) -> String {
    parts(scene).into_iter().map(|part| part.text).collect::<Vec<String>>().join("; ")
}

/// The parts of these words, the most important first.
fn parts(scene: &Scene<'_>) -> Vec<HeadlinePart> {
    let (mut parts, status) = (scene.app.verdict().to_vec(), scene.app.status());
    match &status.state {
        _ if scene.is_hardware_only() => vec![HeadlinePart::note(status.hint.clone().unwrap_or_default())],
        // Of a replay, the state says that.
        SourceState::Ended(_) if status.transport.is_some() && !parts.is_empty() => parts,
        // What is wrong stays also where there is room for one part alone.
        SourceState::Ended(why) if !why.is_empty() => {
            parts.insert(parts.len().min(1), HeadlinePart::note(why.clone()));
            parts
        }
        _ => parts,
    }
}

/// As many of a verdict's parts as fit, whole. If a finding is left out, how many more the list has, of `all`. At least the first part.
fn fitting(parts: &[HeadlinePart], all: usize, room: u16) -> String {
    let shown = |n: usize| {
        let (shown, left) = parts.split_at(n);
        let mut texts: Vec<String> = shown.iter().map(|part| part.text.clone()).collect();
        let named: usize = shown.iter().map(|part| part.findings).sum();
        let is_cut = left.iter().any(|part| part.findings > 0);
        texts.extend(is_cut.then(|| format!("{} more: key 8", all.saturating_sub(named).max(1))));
        texts.join("; ")
    };
    let fits = |n: &usize| width(&shown(*n)) <= room;
    (1..=parts.len()).rev().find(fits).map_or_else(|| shown(parts.len()), shown)
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
            (None, Some(ns)) => (format!("no step for {}", lasting(ns)), theme.warning()),
            // The picture stays where it is while a step is selected.
            (None, None) if app.window().cursor().is_some() => {
                (format!("{} live, Esc follows", theme.text("●", "*")), theme.good())
            }
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
    let left_ns = scene.store.progress().and_then(|progress| progress.left_ns);
    let left = left_ns.map(|ns| format!(", {} left", elapsed(ns))).filter(|left| total(&facts) + width(left) <= room);
    if let Some((time, _)) = facts.last_mut() {
        time.extend(left);
    }
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

/// Which process it is and, of several ranks, which one: in full, without the host, and the rank or process alone.
fn process(info: &SessionInfo) -> [String; 3] {
    let place = info.place.as_ref().filter(|place| place.ranks > 1 || place.rank > 0);
    let rank = place.map(|place| format!("rank {}/{}", place.rank, place.ranks));
    // An imported recording has no process.
    let pid = (info.pid > 0).then(|| format!("pid {}", info.pid));
    let host = pid.as_ref().map_or_else(|| info.host.clone(), |pid| format!("{pid} on {}", info.host));
    let joined = |parts: [Option<String>; 2]| parts.into_iter().flatten().collect::<Vec<String>>().join(", ");
    [joined([rank.clone(), Some(host)]), joined([rank.clone(), pid.clone()]), rank.or(pid).unwrap_or_default()]
}

fn draw_identity(sheet: &mut Sheet<'_>, scene: &Scene<'_>) {
    let theme = scene.theme;
    let mut x = 1;
    if sheet.width() >= 40 {
        x = sheet.text(x, 0, "gnntop", theme.accent()) + 2;
    }
    let (name, forms) = match scene.store.session().info() {
        Some(info) => (info.name.clone(), process(info)),
        None => (scene.app.status().title.clone(), <[String; 3]>::default()),
    };
    let room = sheet.width().saturating_sub(x + 2);
    // The name may be anything; the process is worth a part of the row, where there is one.
    let most = if room >= 24 { (room * 3 / 5).max(room.saturating_sub(width(&name))) } else { 0 };
    let process = forms.into_iter().find(|form| !form.is_empty() && width(form) + 2 <= most).unwrap_or_default();
    let process_room = if process.is_empty() { 0 } else { width(&process) + 2 };
    x = sheet.text(x, 0, &clip(&name, room - process_room, theme), theme.strong());
    if process_room > 0 {
        sheet.text(x + 2, 0, &process, theme.dim());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_verdict_is_cut_between_its_parts_and_counts_the_findings_left_out() {
        let part = |text: &str, findings| HeadlinePart { text: text.to_owned(), findings };
        let parts = [
            part("memory grows", 1),
            part("backward-bound (52 %)", 1),
            part("2 spikes (7.8 %)", 1),
            part("gap 6 %", 0),
        ];
        assert_eq!(fitting(&parts, 4, 80), "memory grows; backward-bound (52 %); 2 spikes (7.8 %); gap 6 %");
        assert_eq!(
            fitting(&parts, 4, 60),
            "memory grows; backward-bound (52 %); 2 spikes (7.8 %)",
            "the gap is no finding"
        );
        // The list has a warm-up, too, which no part names.
        assert_eq!(fitting(&parts, 4, 50), "memory grows; backward-bound (52 %); 2 more: key 8");
        assert_eq!(fitting(&parts, 4, 40), "memory grows; 3 more: key 8");
        assert_eq!(fitting(&parts[..1], 1, 10), "memory grows", "then it is clipped");
        assert_eq!(fitting(&[], 0, 10), "");
    }
}
