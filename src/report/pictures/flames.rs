//! Where in the program the time goes, as flames: the phases, and below each what ran in it, as wide as its share.

use std::collections::BTreeMap;
use std::fmt::Write;

use super::shares::phase_keys;
use crate::report::document::markup::escaped;
use gnntop_analysis::figures::{count, percent};

/// Frames with a smaller share are left out...
const LEAST_SHARE: f64 = 0.004;
/// ...and so are deeper ones, and those beyond this number: the page is to stay small.
const MOST_DEPTH: usize = 40;
const MOST_FRAMES: usize = 800;
/// From this share on there is room for a name.
const NAMED_SHARE: f64 = 0.03;

/// A frame, with the stacks that have it and those that continue below it.
#[derive(Debug, Default)]
struct FlameFrame<'r> {
    count: u64,
    calls: BTreeMap<&'r str, FlameFrame<'r>>,
}

/// A stack with its phase, frames from the innermost on, and how many are like it.
type Stack = (String, Vec<String>, u64);

/// The flames of these stacks, phases in the colours that they have among the names; empty for none.
pub(in crate::report) fn flame_graph<'a>(stacks: &[Stack], phases: impl IntoIterator<Item = &'a str>) -> String {
    let names: Vec<&str> = phases.into_iter().collect();
    let keys = phase_keys(names.iter().copied());
    let class = |phase: &str| names.iter().position(|name| *name == phase).map_or("gap", |at| keys[at].class.as_str());
    let all = tree(stacks);
    if all.count == 0 {
        return String::new();
    }
    let mut drawing = Drawing { out: String::from("<figure class=\"flames\"><ul>"), all: all.count, frames: 0 };
    for (phase, frame) in all.most_frequent() {
        drawing.frame(phase, frame, class(phase), 0);
    }
    drawing.out + "</ul></figure>"
}

/// All stacks, merged from the phase inwards.
fn tree(stacks: &[Stack]) -> FlameFrame<'_> {
    let mut all = FlameFrame::default();
    for (phase, frames, times) in stacks {
        let mut at = &mut all;
        at.count += times;
        for name in std::iter::once(phase).chain(frames.iter().rev()) {
            at = at.calls.entry(name).or_default();
            at.count += times;
        }
    }
    all
}

impl<'r> FlameFrame<'r> {
    fn most_frequent(&self) -> Vec<(&'r str, &Self)> {
        let mut calls: Vec<(&str, &Self)> = self.calls.iter().map(|(name, frame)| (*name, frame)).collect();
        calls.sort_by_key(|(_, frame)| std::cmp::Reverse(frame.count));
        calls
    }
}

struct Drawing {
    out: String,
    /// Number of all stacks.
    all: u64,
    /// Number of frames drawn so far.
    frames: usize,
}

impl Drawing {
    /// Draws a frame and below it what it calls; the room beside that is its own time.
    fn frame(&mut self, name: &str, frame: &FlameFrame<'_>, class: &str, depth: usize) {
        let share = frame.count as f64 / self.all as f64;
        self.frames += 1;
        let text = format!("{name}: {}, {} stacks", percent(share), count(frame.count));
        let shown = if share >= NAMED_SHARE { escaped(name) } else { String::new() };
        let (times, text) = (frame.count, escaped(&text));
        // Writing to a string cannot fail.
        let _ =
            write!(self.out, "<li style=\"flex:{times} 0 0\"><i class=\"{class}\" title=\"{text}\">{shown}</i><ul>");
        let mut left = times;
        for (name, called) in frame.most_frequent() {
            let is_small = (called.count as f64) < LEAST_SHARE * self.all as f64;
            if is_small || depth == MOST_DEPTH || self.frames >= MOST_FRAMES {
                break;
            }
            self.frame(name, called, class, depth + 1);
            left -= called.count;
        }
        if left > 0 && left < times {
            let _ = write!(self.out, "<li style=\"flex:{left} 0 0\"></li>");
        }
        self.out += "</ul></li>";
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stacks(stacks: &[(&str, &[&str], u64)]) -> Vec<Stack> {
        let owned = |frames: &[&str]| frames.iter().map(|frame| (*frame).to_owned()).collect();
        stacks.iter().map(|(phase, frames, times)| ((*phase).to_owned(), owned(frames), *times)).collect()
    }

    #[test]
    fn widths_are_shares_and_callees_are_below() {
        let found = stacks(&[
            ("forward", &["<lambda> (a.py:2)", "main (a.py:9)"], 30),
            ("forward", &["main (a.py:9)"], 10),
            ("gap", &["main (a.py:9)"], 60),
        ]);
        let html = flame_graph(&found, ["forward"]);
        let place = |text: &str| html.find(text).unwrap_or_else(|| panic!("{text} in {html}"));
        assert!(place("title=\"gap: 60 %, 60 stacks\"") < place("title=\"forward: 40 %, 40 stacks\""));
        let lambda = place("flex:30 0 0\"><i class=\"p4\" title=\"&lt;lambda&gt; (a.py:2): 30 %, 30 stacks\"");
        assert!(place("title=\"main (a.py:9): 40 %, 40 stacks\"") < lambda, "{html}");
        assert_eq!(html.matches("flex:10 0 0\"></li>").count(), 1, "main's own time");
        assert_eq!(html.matches("<li").count(), html.matches("</li>").count());
    }

    #[test]
    fn a_page_stays_small_whatever_was_sampled() {
        let deep: Vec<String> = (0..200).map(|at| format!("f{at} (a.py:{at})")).collect();
        let deep: Vec<&str> = deep.iter().map(String::as_str).collect();
        let wide: Vec<String> = (0..500).map(|at| format!("g{at} (b.py:{at})")).collect();
        let mut all: Vec<(&str, &[&str], u64)> = vec![("forward", &deep, 5000)];
        let leaves: Vec<[&str; 1]> = wide.iter().map(|name| [name.as_str()]).collect();
        all.extend(leaves.iter().map(|frames| ("backward", &frames[..], 25)));
        let html = flame_graph(&stacks(&all), []);
        assert!(html.matches("<i ").count() <= MOST_FRAMES && html.len() < 120_000, "{}", html.len());
        assert_eq!(flame_graph(&[], []), "");
    }
}
