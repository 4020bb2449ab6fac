//! The findings of the run, the selected place of a finding, and the way from a finding to its steps.

use gnntop_analysis::findings::{
    EndedFinding, Finding, FindingKind, Findings, HeadlinePart, Judgement, NotEnough, Occurrence,
};
use gnntop_analysis::store::StepTable;

/// The findings of the run, and the selected one.
#[derive(Debug, Default)]
pub(super) struct FindingsState {
    judgement: Judgement,
    /// The judgement in the parts of one line.
    verdict: Vec<HeadlinePart>,
    /// Where the selected place of the selected finding begins; the longest one where `None`.
    place: Option<u64>,
    /// The first line shown of the text about the selected line.
    text_line: usize,
}

/// A line of the findings view.
#[derive(Clone, Copy, Debug)]
pub enum FindingLine<'a> {
    /// The findings.
    Found(&'a Finding),
    /// Findings that were certain a while ago and are gone.
    Over(&'a EndedFinding),
    /// All findings without enough evidence to decide.
    NotEnough(&'a [NotEnough]),
}

impl FindingsState {
    /// The judgement in the parts of a line. Empty before the first data.
    pub(super) fn verdict(&self) -> &[HeadlinePart] {
        &self.verdict
    }

    pub(super) fn judgement(&self) -> &Judgement {
        &self.judgement
    }

    pub(super) fn findings(&self) -> &Findings {
        &self.judgement.findings
    }

    /// The lines of the findings view: what was found, the most severe first, what is over, then one for all that could not be
    /// looked for.
    pub(super) fn lines(&self) -> Vec<FindingLine<'_>> {
        let found = self.findings().found.iter().map(FindingLine::Found);
        let over = self.findings().over.iter().map(FindingLine::Over);
        // Without steps, every kind would have the same line.
        let has_steps = self.judgement.steps() > 0;
        let not_enough = Some(self.findings().not_enough.as_slice()).filter(|some| has_steps && !some.is_empty());
        found.chain(over).chain(not_enough.map(FindingLine::NotEnough)).collect()
    }

    /// The line at `at`, else the last one.
    pub(super) fn line(&self, at: usize) -> Option<FindingLine<'_>> {
        let lines = self.lines();
        lines.get(at).or(lines.last()).copied()
    }

    /// The places of the finding in line `at`, the longest first, and which of them is selected.
    pub(super) fn places(&self, at: usize) -> (Vec<&Occurrence>, usize) {
        let Some(FindingLine::Found(finding)) = self.line(at) else { return (Vec::new(), 0) };
        let places = finding.longest_places();
        let is_selected = |place: &&Occurrence| Some(place.ordinals.start) == self.place;
        let at = places.iter().position(is_selected).unwrap_or(0);
        (places, at)
    }

    /// Whether the finding in line `at` has a place to go to.
    pub(super) fn has_place_at(&self, at: usize) -> bool {
        matches!(self.line(at), Some(FindingLine::Found(finding)) if !finding.places.is_empty())
    }

    /// Whether any finding has a place to go to.
    pub(super) fn has_any_place(&self) -> bool {
        self.findings().found.iter().any(|finding| !finding.places.is_empty())
    }

    /// Takes a new judgement. Returns the line to which the content of line `at` has moved; `None` without news.
    pub(super) fn take(&mut self, judgement: Judgement, at: usize) -> Option<usize> {
        if judgement == self.judgement {
            return None;
        }
        let selected = self.line(at).map(identity);
        self.verdict = judgement.parts();
        self.judgement = judgement;
        let is_selected = |line: &FindingLine<'_>| selected == Some(identity(*line));
        Some(self.lines().iter().position(is_selected).unwrap_or(at))
    }

    /// Selects a shorter place of the finding in line `at`, or a longer one.
    pub(super) fn move_place(&mut self, forward: bool, at: usize) {
        let (places, nth) = self.places(at);
        let to = if forward { (nth + 1).min(places.len().saturating_sub(1)) } else { nth.saturating_sub(1) };
        self.place = places.get(to).map(|place| place.ordinals.start);
    }

    /// Begins at the longest place and the first line of the text again, as another finding is selected.
    pub(super) fn forget_place(&mut self) {
        (self.place, self.text_line) = (None, 0);
    }

    /// The first line shown of the text about the selected line, perhaps beyond its last.
    pub(super) fn text_line(&self) -> usize {
        self.text_line
    }

    pub(super) fn set_text_line(&mut self, line: usize) {
        self.text_line = line;
    }

    /// The step at which the selected place of the finding in line `at` begins.
    pub(super) fn place_step(&self, at: usize) -> Option<u64> {
        let (places, nth) = self.places(at);
        places.get(nth).map(|place| place.ordinals.start)
    }

    /// The nearest step after `from`, or before it, at which a finding begins, and what it is.
    pub(super) fn nearest(&self, from: u64, forward: bool, steps: &StepTable) -> Option<(u64, String)> {
        let places = self.findings().found.iter().flat_map(|finding| finding.places.iter().map(move |p| (finding, p)));
        // Of steps that are known only together, one is selected: the next search must not return to it.
        let known = |at: u64| steps.known_row(at).map(|row| row.ordinal());
        let places = places.filter_map(|(finding, place)| Some((known(place.ordinals.start)?, finding, place)));
        let next = if forward {
            places.filter(|(at, ..)| *at > from).min_by_key(|(at, ..)| *at)
        } else {
            places.filter(|(at, ..)| *at < from).min_by_key(|(at, ..)| std::cmp::Reverse(*at))
        };
        next.map(|(at, finding, place)| (at, format!("{}: {}", finding.kind.title(), place.sentence)))
    }
}

/// What identifies a line, whatever its numbers: its kind, and its step or its words.
fn identity(line: FindingLine<'_>) -> (Option<FindingKind>, bool, Option<u64>) {
    match line {
        FindingLine::Found(finding) => {
            (Some(finding.kind), true, finding.places.first().map(|place| place.ordinals.start))
        }
        FindingLine::Over(over) => (Some(over.finding.kind), false, None),
        FindingLine::NotEnough(_) => (None, false, None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::app::keys::Key;
    use crate::app::{Action, App, View, update};
    use gnntop_analysis::findings;
    use gnntop_analysis::source::{SourceState, Status};
    use gnntop_fixtures::{MS, TrainingRun, each_item};

    /// 100 steps in epochs of 25, the last of each a partial batch, with two spikes at the ordinals 40 and 69.
    fn app() -> App {
        let mut app = App::new(false);
        feed(&mut app, vec![(41, "backward", 270 * MS), (70, "backward", 90 * MS)]);
        update(&mut app, Action::Resized { width: 80, height: 24 });
        let status = Status { state: SourceState::Running, live: true, ..Status::default() };
        update(&mut app, Action::Polled { status, changed: true });
        app
    }

    fn feed(app: &mut App, spikes: Vec<(u64, &'static str, u64)>) {
        app.run = Default::default();
        let run = TrainingRun { spikes, ..TrainingRun::default() };
        each_item(&run.bytes(), |item| app.run.apply(item));
        let judgement = findings::judge_newest(app.run.store());
        update(app, Action::FindingsUpdated(Box::new(judgement)));
    }

    fn press(app: &mut App, key: Key) {
        assert_eq!(update(app, Action::Key(key)), None);
    }

    fn selected(app: &App) -> Option<FindingKind> {
        match app.finding_line()? {
            FindingLine::Found(finding) => Some(finding.kind),
            FindingLine::Over(_) | FindingLine::NotEnough(_) => None,
        }
    }

    fn select(app: &mut App, kind: FindingKind) {
        press(app, Key::Char('8'));
        for _ in 0..app.finding_lines().len() {
            if selected(app) != Some(kind) {
                press(app, Key::Down);
            }
        }
        assert_eq!(selected(app), Some(kind));
    }

    #[test]
    fn enter_shows_the_selected_place() {
        let mut app = app();
        select(&mut app, FindingKind::Spike);
        press(&mut app, Key::Enter);
        assert_eq!((app.view(), app.window().cursor()), (View::Steps, Some(40)), "the longest first");
        press(&mut app, Key::Esc);
        assert_eq!(app.view(), View::Findings);
        press(&mut app, Key::Right);
        press(&mut app, Key::Right);
        press(&mut app, Key::Enter);
        assert_eq!(app.window().cursor(), Some(69), "then the shorter one, which is the last");
        press(&mut app, Key::Char('8'));
        press(&mut app, Key::Char('['));
        assert_eq!(app.finding_places().1, 0);
    }

    #[test]
    fn enter_without_a_place_does_nothing() {
        let mut app = app();
        press(&mut app, Key::Char('8'));
        press(&mut app, Key::Char('G'));
        assert_eq!(selected(&app), None, "what could not be looked for stands last");
        press(&mut app, Key::Enter);
        assert_eq!((app.view(), app.window().cursor()), (View::Findings, None));
    }

    #[test]
    fn brackets_select_each_place_with_notice() {
        let mut app = app();
        let mut seen = Vec::new();
        for _ in 0..20 {
            press(&mut app, Key::Char('['));
            seen.extend(app.window().cursor());
        }
        seen.dedup();
        assert_eq!(seen, [99, 74, 69, 49, 40, 24]);
        assert_eq!(app.notice(), Some("no finding before this step"));
        press(&mut app, Key::Char(']'));
        assert_eq!(app.window().cursor(), Some(40));
        assert!(app.notice().is_some_and(|text| text.starts_with("spikes: step 41 took ")), "{:?}", app.notice());
    }

    #[test]
    fn selection_stays_when_findings_are_added() {
        let mut app = app();
        select(&mut app, FindingKind::PartialBatch);
        let before = app.line(View::Findings);
        feed(&mut app, Vec::new());
        assert_eq!(selected(&app), Some(FindingKind::PartialBatch));
        assert_ne!(app.line(View::Findings), before, "though it stands elsewhere");
        update(&mut app, Action::Opened);
        assert_eq!((app.line(View::Findings), app.verdict()), (0, &[][..]));
    }

    #[test]
    fn the_key_of_the_view_begins_at_the_weightiest_finding() {
        let mut app = app();
        select(&mut app, FindingKind::PartialBatch);
        press(&mut app, Key::Char('8'));
        assert_eq!(selected(&app), Some(FindingKind::PartialBatch), "it is shown already");
        press(&mut app, Key::Char('2'));
        press(&mut app, Key::Char('8'));
        assert_eq!((app.line(View::Findings), selected(&app)), (0, Some(FindingKind::Spike)));
    }

    #[test]
    fn only_changed_findings_make_the_screen_dirty() {
        let mut app = app();
        app.drawn(None);
        let same = app.judgement().clone();
        update(&mut app, Action::FindingsUpdated(Box::new(same)));
        assert!(!app.is_dirty());
        feed(&mut app, Vec::new());
        assert!(app.is_dirty());
    }
}
