//! The key table with a person's own keys in it.
//!
//! An action may be given other keys than the table's. Where such a key already does something else, the person's choice
//! wins. Ctrl-C always quits, so there is always a way out.

use std::borrow::Cow;

use super::command::Command;
use super::keys::{BINDINGS, Binding, Key};
use super::situation::Situation;

/// What always quits.
const WAY_OUT: Key = Key::Ctrl('c');
/// The action that it does.
const QUIT: &str = "quit";

/// Keys for an action: the action's name, and the keys.
pub type Override = (String, Vec<Key>);

/// Why a choice of keys cannot be.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KeyMapError {
    /// No action has this name.
    #[error("there is no action {0}: `gnntop config print` lists them")]
    UnknownAction(String),
    /// Ctrl-C was given to something else than quitting.
    #[error("Ctrl-C always quits: give {0} another key")]
    TakesWayOut(String),
}

/// A line of the key table with the keys that it really has.
#[derive(Clone, Debug)]
pub struct BoundAction {
    /// The line of the table.
    pub binding: &'static Binding,
    /// Its keys.
    pub keys: Cow<'static, [Key]>,
    /// Their names.
    pub name: Cow<'static, str>,
    /// Keys and word for the footer.
    pub footer: Option<(Cow<'static, str>, &'static str)>,
    is_own: bool,
}

/// All keys, as a person wants them.
#[derive(Clone, Debug)]
pub struct KeyMap {
    rows: Vec<BoundAction>,
}

impl Default for KeyMap {
    fn default() -> Self {
        Self { rows: BINDINGS.iter().map(BoundAction::new).collect() }
    }
}

impl BoundAction {
    fn new(binding: &'static Binding) -> Self {
        let footer = binding.footer.map(|(keys, word)| (Cow::Borrowed(keys), word));
        Self { binding, keys: Cow::Borrowed(binding.keys), name: Cow::Borrowed(binding.name), footer, is_own: false }
    }

    fn set_keys(&mut self, keys: Vec<Key>) {
        let names: Vec<String> = keys.iter().map(Key::to_string).collect();
        self.name = Cow::Owned(names.join("  "));
        self.footer =
            self.footer.take().map(|(_, word)| (Cow::Owned(names.first().cloned().unwrap_or_default()), word));
        self.keys = Cow::Owned(keys);
    }

    fn is_pressed(&self, key: Key, situation: &Situation) -> bool {
        self.keys.contains(&key) && situation.allows(self.binding.when)
    }
}

impl KeyMap {
    /// The key table with these actions' keys changed.
    ///
    /// # Errors
    /// If there is no such action, or Ctrl-C is given to one that does not quit.
    pub fn with_overrides(overrides: &[Override]) -> Result<Self, KeyMapError> {
        let mut map = Self::default();
        for (action, keys) in overrides {
            map.set(action, keys)?;
        }
        Ok(map)
    }

    fn set(&mut self, action: &str, keys: &[Key]) -> Result<(), KeyMapError> {
        let mut keys = keys.to_vec();
        match (action == QUIT, keys.contains(&WAY_OUT)) {
            (true, false) => keys.push(WAY_OUT),
            (false, true) => return Err(KeyMapError::TakesWayOut(action.to_owned())),
            _ => (),
        }
        let is_meant = |row: &BoundAction| row.binding.action() == action;
        let Some(first) = self.rows.iter().position(is_meant) else {
            return Err(KeyMapError::UnknownAction(action.to_owned()));
        };
        // Lines that would say the same twice are one now.
        let when = self.rows[first].binding.when;
        let mut at = 0;
        self.rows.retain(|row| {
            at += 1;
            at - 1 == first || !is_meant(row) || row.binding.when != when
        });
        for row in &mut self.rows {
            if is_meant(row) {
                row.set_keys(keys.clone());
                row.is_own = true;
            } else if row.binding.when == when && row.keys.iter().any(|key| keys.contains(key)) && !row.is_own {
                row.set_keys(row.keys.iter().filter(|key| !keys.contains(key)).copied().collect());
            }
        }
        Ok(())
    }

    /// All lines, in the order of the table.
    pub fn rows(&self) -> &[BoundAction] {
        &self.rows
    }

    /// What a key does in this situation; `None` if it does nothing.
    pub fn command(&self, key: Key, situation: &Situation) -> Option<Command> {
        let own = self.rows.iter().filter(|row| row.is_own);
        let others = self.rows.iter().filter(|row| !row.is_own);
        own.chain(others).find(|row| row.is_pressed(key, situation)).map(|row| row.binding.command)
    }

    /// Why a key does nothing in this situation; `None` if it does something, or nobody would miss it.
    pub fn why_not(&self, key: Key, situation: &Situation) -> Option<String> {
        if self.command(key, situation).is_some() {
            return None;
        }
        let rows = || self.rows.iter().filter(|row| row.keys.contains(&key));
        if rows().next().is_none() {
            let is_typed = matches!(key, Key::Char(_)) && situation.open;
            return is_typed.then(|| format!("{key} does nothing: ? lists the keys"));
        }
        // What is missing here says more than where else the key works.
        let near = rows().filter(|row| row.binding.when.is_near(situation));
        let reason = near.chain(rows()).find_map(|row| row.binding.when.unmet(situation))?;
        Some(format!("{key} does nothing here: {reason}"))
    }

    /// The names of those keys of a line that do it in this situation.
    pub fn name_here(&self, row: &BoundAction, situation: &Situation) -> String {
        let works = |key: &Key| self.command(*key, situation) == Some(row.binding.command);
        let names = row.name.split("  ");
        // A key without a name of its own follows those with one.
        let known = names.zip(row.keys.iter()).filter(|(_, key)| works(key)).map(|(name, _)| name);
        known.collect::<Vec<&str>>().join("  ")
    }

    /// The lines whose keys do something in this situation, in the order of the table.
    pub fn available(&self, situation: &Situation) -> impl Iterator<Item = &BoundAction> {
        let situation = *situation;
        self.rows.iter().filter(move |row| {
            let does_it = |key: &Key| self.command(*key, &situation) == Some(row.binding.command);
            situation.allows(row.binding.when) && row.keys.iter().any(does_it)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::app::App;

    fn with(action: &str, keys: &[&str]) -> Result<KeyMap, KeyMapError> {
        let keys = keys.iter().map(|name| Key::from_name(name).unwrap()).collect();
        KeyMap::with_overrides(&[(action.to_owned(), keys)])
    }

    #[test]
    fn an_action_gets_other_keys() {
        let here = App::default().situation();
        let map = with("help", &["F", "Ctrl-H"]).unwrap();
        assert_eq!(map.command(Key::Char('F'), &here), Some(Command::ToggleHelp));
        assert_eq!(map.command(Key::Ctrl('h'), &here), Some(Command::ToggleHelp));
        assert_eq!(map.command(Key::Char('?'), &here), None);
        let row = map.available(&here).find(|row| row.binding.command == Command::ToggleHelp).unwrap();
        assert_eq!((row.name.as_ref(), row.footer.as_ref().unwrap().0.as_ref()), ("F  Ctrl-H", "F"));
    }

    #[test]
    fn reassigned_key_is_removed_from_its_old_action() {
        let here = App::default().situation();
        let map = with("help", &["q"]).unwrap();
        assert_eq!(map.command(Key::Char('q'), &here), Some(Command::ToggleHelp));
        let quit = map.rows().iter().find(|row| row.binding.command == Command::Quit).unwrap();
        assert_eq!(quit.name, "Ctrl-C");
        // Where it does something else only at times, the choice wins at those times.
        let map = with("pause", &["1"]).unwrap();
        let replay = Situation { replay: true, ..here };
        assert_eq!(map.command(Key::Char('1'), &replay), Some(Command::TogglePause));
        assert!(matches!(map.command(Key::Char('1'), &here), Some(Command::Show(_))));
    }

    #[test]
    fn quit_key_cannot_be_reassigned() {
        let here = App::default().situation();
        let map = with("quit", &["x"]).unwrap();
        assert_eq!(map.command(Key::Ctrl('c'), &here), Some(Command::Quit));
        assert_eq!(map.command(Key::Char('q'), &here), None);
        assert_eq!(with("help", &["Ctrl-C"]).unwrap_err(), KeyMapError::TakesWayOut("help".to_owned()));
        assert_eq!(with("helpp", &["x"]).unwrap_err(), KeyMapError::UnknownAction("helpp".to_owned()));
    }

    #[test]
    fn every_action_can_be_named() {
        for binding in BINDINGS {
            let name = binding.action();
            assert!(name.chars().all(|c| c.is_ascii_lowercase() || c == '-'), "{name}");
            assert!(
                KeyMap::with_overrides(&[(name.to_owned(), vec![Key::Ctrl('c')])]).is_ok() == (name == "quit"),
                "{name}"
            );
        }
    }
}
