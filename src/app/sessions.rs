//! The choice of what to look at: living sessions, ended ones, and the recordings of the folder.

use super::{App, Effect, View};
use gnntop_analysis::ranks::Run;
use gnntop_analysis::source::catalog::Entry;

/// What there is to choose from.
#[derive(Clone, Debug, Default)]
pub struct Sessions {
    /// Whether there can be a choice at all.
    is_offered: bool,
    /// Whether nothing has been chosen yet.
    is_first: bool,
    entries: Vec<Entry>,
    problem: Option<String>,
}

impl App {
    /// Lets a person choose another session by key; at once, where nothing is open yet.
    pub fn offer_sessions(&mut self, nothing_is_open: bool) {
        self.sessions = Sessions { is_offered: true, is_first: nothing_is_open, ..Sessions::default() };
        if nothing_is_open {
            self.open(View::Sessions);
        }
    }

    /// What can be opened and passes the filter, in the order of the catalog.
    pub fn entries(&self) -> Vec<&Entry> {
        self.sessions.entries.iter().filter(|entry| self.passes(&entry.name) || self.passes(&entry.command)).collect()
    }

    /// Why there may be more than [`App::entries`].
    pub fn sessions_problem(&self) -> Option<&str> {
        self.sessions.problem.as_deref()
    }

    /// Whether a person may choose another session.
    pub(super) fn offers_sessions(&self) -> bool {
        self.sessions.is_offered
    }

    /// Whether nothing has been opened yet, so that there is nothing to go back to.
    pub(super) fn has_nothing_open(&self) -> bool {
        self.sessions.is_first
    }

    /// Takes in what can be opened now. Who has selected an entry keeps it while others come and go.
    pub(super) fn sessions_listed(&mut self, listed: Result<Vec<Entry>, String>) {
        let selected = self.selected_entry().map(|entry| entry.path.clone());
        let problem = listed.as_ref().err().cloned();
        let entries = listed.unwrap_or_else(|_| std::mem::take(&mut self.sessions.entries));
        // Ages alone are no news worth a frame a second to a screen that does not show them.
        self.dirty |= self.view() == View::Sessions;
        (self.sessions.entries, self.sessions.problem) = (entries, problem);
        let again = selected.and_then(|path| self.entries().iter().position(|entry| entry.path == path));
        if let Some(line) = again {
            self.lines.set(View::Sessions, line);
        }
    }

    fn selected_entry(&self) -> Option<&Entry> {
        let entries = self.entries();
        entries.get(self.line(View::Sessions)).or(entries.last()).copied()
    }

    /// Opens the selected entry.
    pub(super) fn open_selected(&mut self) -> Option<Effect> {
        self.selected_entry().cloned().map(Effect::Open)
    }

    /// Forgets all about the session that was shown: another one is open.
    pub(super) fn opened(&mut self) {
        self.run = Run::default();
        self.views.clear();
        self.window.follow();
        self.filter.clear();
        (self.highlight, self.pressed_step, self.frozen_at, self.prompt) = (None, None, None, None);
        self.sessions.is_first = false;
        (self.judged, self.energy) = Default::default();
        self.lines.set(View::Findings, 0);
        self.heard_at = self.now;
        self.dirty = true;
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;
    use crate::app::keys::Key;
    use crate::app::{Action, Gesture, Target, update};
    use gnntop_analysis::source::catalog::EntryKind;

    fn entry(name: &str) -> Entry {
        let (pid, command, age) = (None, String::new(), None);
        let path = PathBuf::from(name);
        Entry { kind: EntryKind::Recording, name: name.to_owned(), pid, command, size_bytes: 1, age, path }
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
    fn what_is_selected_is_opened() {
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
    fn the_selected_entry_stays_while_others_come() {
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
    fn a_filter_and_the_mouse_choose_too() {
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
    fn with_nothing_open_there_is_nothing_behind_the_choice() {
        let mut app = choosing(&["a"]);
        assert_eq!(press(&mut app, Key::Esc), Some(Effect::Quit));
        let mut app = choosing(&["a"]);
        press(&mut app, Key::Char('2'));
        assert_eq!(app.view(), View::Sessions);
    }

    #[test]
    fn where_none_is_offered_the_key_does_nothing() {
        let mut app = App::new(false);
        assert_eq!(press(&mut app, Key::Char('O')), None);
        assert_eq!(app.view(), View::Overview);
    }
}
