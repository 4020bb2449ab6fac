//! Other sessions: the choice of what to look at, living, ended or recorded, and the one that is compared with the one shown.

use std::path::Path;
use std::time::Duration;

use super::questions::Questions;
use gnntop_analysis::comparison::{Comparison, compare};
use gnntop_analysis::ranks::Run;
use gnntop_analysis::source::Status;
use gnntop_analysis::source::catalog::CatalogEntry;
use gnntop_analysis::store::Store;

/// The entries to choose from.
#[derive(Clone, Debug, Default)]
pub(super) struct SessionChoice {
    /// Whether there can be a choice at all.
    is_offered: bool,
    /// Whether nothing has been chosen yet.
    is_first: bool,
    entries: Vec<CatalogEntry>,
    problem: Option<String>,
}

impl SessionChoice {
    /// A choice that a person may make at any time, or must make as nothing is open yet.
    pub(super) fn new(nothing_is_open: bool) -> Self {
        Self { is_offered: true, is_first: nothing_is_open, ..Self::default() }
    }

    /// Whether a person may choose another session.
    pub(super) fn is_offered(&self) -> bool {
        self.is_offered
    }

    /// Whether nothing has been opened yet, so that there is nothing to return to.
    pub(super) fn has_nothing_open(&self) -> bool {
        self.is_first
    }

    /// What can be opened and passes the filter, in the order of the catalog.
    pub(super) fn entries(&self, filter: &Questions) -> Vec<&CatalogEntry> {
        let passes = |entry: &&CatalogEntry| filter.passes(&entry.name) || filter.passes(&entry.command);
        self.entries.iter().filter(passes).collect()
    }

    /// The entry at `at` of those that pass the filter, else the last one.
    pub(super) fn entry(&self, at: usize, filter: &Questions) -> Option<&CatalogEntry> {
        let entries = self.entries(filter);
        entries.get(at).or(entries.last()).copied()
    }

    /// The line of the entry with this path.
    pub(super) fn line_of(&self, path: &Path, filter: &Questions) -> Option<usize> {
        self.entries(filter).iter().position(|entry| entry.path == path)
    }

    /// Why there may be more than is listed.
    pub(super) fn problem(&self) -> Option<&str> {
        self.problem.as_deref()
    }

    /// Takes the new list of what can be opened; keeps the old one if that is unknown.
    pub(super) fn set_entries(&mut self, listed: Result<Vec<CatalogEntry>, String>) {
        self.problem = listed.as_ref().err().cloned();
        if let Ok(entries) = listed {
            self.entries = entries;
        }
    }

    /// One of them is open now.
    pub(super) fn set_opened(&mut self) {
        self.is_first = false;
    }
}

/// Percentiles that the view shows besides the mean, if there is room.
const PERCENTILES: [f64; 3] = [50.0, 90.0, 99.0];
/// Comparing takes tens of milliseconds, so it is repeated only when the number of steps has grown by this factor...
const MORE: f64 = 1.05;
/// ...or when there are new ones at all after this long.
const REST: Duration = Duration::from_secs(2);

/// A session to compare with.
#[derive(Default)]
pub struct ComparedSession {
    /// Its history. Its source writes it; the compare view reads the selected rank.
    pub run: Run,
    status: Status,
    comparison: Option<(Comparison, ComparedState)>,
}

/// What was compared, and when.
struct ComparedState {
    at: Duration,
    ranks: [Option<u32>; 2],
    steps: [u64; 2],
}

impl ComparedState {
    fn new(runs: [&Run; 2], now: Duration) -> Self {
        Self { at: now, ranks: runs.map(Run::rank), steps: runs.map(|run| run.store().steps().total()) }
    }

    /// Whether what is seen now is worth comparing again.
    fn is_outdated(&self, now: &Self) -> bool {
        let more = |(before, now): (&u64, &u64)| now < before || *now as f64 >= MORE * *before as f64 && now > before;
        let has_more = self.steps.iter().zip(&now.steps).any(more);
        let has_news = self.steps != now.steps && now.at >= self.at + REST;
        self.ranks != now.ranks || has_more || has_news
    }
}

impl ComparedSession {
    /// The history of the session, or of the rank, to compare with.
    pub fn store(&self) -> &Store {
        self.run.store()
    }

    /// The status of its source.
    pub fn status(&self) -> &Status {
        &self.status
    }

    /// How the session that is shown, as B, compares with this one, as A; `None` before the view was shown.
    pub fn comparison(&self) -> Option<&Comparison> {
        self.comparison.as_ref().map(|(comparison, _)| comparison)
    }

    /// Its source was asked.
    pub(super) fn set_status(&mut self, status: Status) {
        self.status = status;
    }

    /// Compares again if there is enough new data. Returns whether it did.
    pub(super) fn compare_with(&mut self, shown: &Run, now: Duration) -> bool {
        let seen = ComparedState::new([&self.run, shown], now);
        let is_new = self.comparison.as_ref().is_none_or(|(_, before)| before.is_outdated(&seen));
        if is_new {
            self.comparison = Some((compare(&[&self.run], &[shown], &PERCENTILES), seen));
        }
        is_new
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;
    use crate::app::keys::Key;
    use crate::app::{Action, App, Effect, Gesture, Target, View, update};
    use gnntop_analysis::source::catalog::EntryKind;
    use gnntop_fixtures::{TrainingRun, each_item};

    fn entry(name: &str) -> CatalogEntry {
        let (pid, command, age) = (None, String::new(), None);
        let path = PathBuf::from(name);
        CatalogEntry {
            kind: EntryKind::Recording,
            name: name.to_owned(),
            pid,
            command,
            size_bytes: 1,
            age,
            started: None,
            folder: None,
            latest: None,
            path,
        }
    }

    fn choosing(names: &[&str]) -> App {
        let mut app = App::new(false);
        app.offer_sessions(true);
        list(&mut app, names);
        app
    }

    fn list(app: &mut App, names: &[&str]) {
        let entries = names.iter().map(|name| entry(name)).collect();
        update(app, Action::SessionsListed(Ok(entries)));
    }

    fn press(app: &mut App, key: Key) -> Option<Effect> {
        update(app, Action::Key(key))
    }

    #[test]
    fn enter_opens_the_selected_session() {
        let mut app = choosing(&["a", "b", "c"]);
        assert_eq!(app.view(), View::Sessions);
        press(&mut app, Key::Down);
        assert_eq!(press(&mut app, Key::Enter), Some(Effect::Open(entry("b"))));
        update(&mut app, Action::Opened);
        assert_eq!(app.view(), View::Overview);
        assert_eq!(press(&mut app, Key::Char('O')), Some(Effect::ListSessions), "again, by key");
        assert_eq!(app.view(), View::Sessions);
        assert_eq!(press(&mut app, Key::Esc), None);
        assert_eq!(app.view(), View::Overview, "back to what was open");
    }

    #[test]
    fn selection_stays_when_sessions_are_added() {
        let mut app = choosing(&["a", "b"]);
        press(&mut app, Key::Down);
        list(&mut app, &["new", "a", "b", "c"]);
        assert_eq!(press(&mut app, Key::Enter), Some(Effect::Open(entry("b"))));
        list(&mut app, &[]);
        assert_eq!(press(&mut app, Key::Enter), None, "nothing is there any more");
        update(&mut app, Action::SessionsListed(Err("is gone".to_owned())));
        assert_eq!(app.sessions_problem(), Some("is gone"));
    }

    #[test]
    fn filter_and_mouse_select_a_session() {
        let mut app = choosing(&["pna", "gat", "gcn"]);
        for key in [Key::Char('/'), Key::Char('g'), Key::Char('c'), Key::Enter] {
            press(&mut app, key);
        }
        assert_eq!(press(&mut app, Key::Enter), Some(Effect::Open(entry("gcn"))));
        press(&mut app, Key::Esc);
        let mut point = |line| update(&mut app, Action::Mouse { gesture: Gesture::Press, on: Target::Line(line) });
        assert_eq!(point(1), None, "selects");
        assert_eq!(point(1), Some(Effect::Open(entry("gat"))), "opens");
    }

    #[test]
    fn escape_without_open_session_quits_the_choice() {
        let mut app = choosing(&["a"]);
        assert_eq!(press(&mut app, Key::Esc), Some(Effect::Quit));
        let mut app = choosing(&["a"]);
        press(&mut app, Key::Char('2'));
        assert_eq!(app.view(), View::Sessions);
    }

    #[test]
    fn sessions_key_without_choice_does_nothing() {
        let mut app = App::new(false);
        assert_eq!(press(&mut app, Key::Char('O')), None);
        assert_eq!(app.view(), View::Overview);
    }

    #[test]
    fn comparison_is_repeated_after_enough_new_steps() {
        let run = |steps| {
            let mut run = Run::default();
            each_item(&TrainingRun { steps, ..TrainingRun::default() }.bytes(), |item| run.apply(item));
            run
        };
        let mut other = ComparedSession { run: run(50), ..ComparedSession::default() };
        let at = Duration::from_secs;
        assert!(other.compare_with(&run(100), at(0)), "at first");
        assert!(!other.compare_with(&run(100), at(9)), "nothing is new");
        assert!(!other.compare_with(&run(101), at(1)), "little is new");
        assert!(other.compare_with(&run(101), at(2)), "but it is old");
        assert!(other.compare_with(&run(110), at(3)), "much is new");
        assert!(other.compare_with(&run(20), at(3)), "after a jump back");
        assert_eq!(other.comparison().unwrap().sides.each_ref().map(|side| side.steps), [50, 20], "what is shown is B");
    }
}
