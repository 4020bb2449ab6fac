//! The question that is open, and the filter that one of them sets: which names are shown, all or those with a given part.

use super::action::Effect;
use super::key::Key;
use super::prompt::{self, Prompt, Question};
use gnntop_analysis::source::Control;

/// What is asked, and which names are shown.
#[derive(Clone, Debug, Default)]
pub(super) struct Questions {
    open: Option<Prompt>,
    filter: String,
}

impl Questions {
    /// The open question, if one is asked.
    pub(super) fn open(&self) -> Option<&Prompt> {
        self.open.as_ref()
    }

    /// The part that names must have to be shown; empty where all are.
    pub(super) fn filter(&self) -> &str {
        match &self.open {
            // While it is being typed it holds already.
            Some(prompt) if prompt.question == Question::Filter => &prompt.text,
            _ => &self.filter,
        }
    }

    /// Whether a filter is set, that is: not only being typed.
    pub(super) fn has_filter(&self) -> bool {
        !self.filter.is_empty()
    }

    /// Whether something with this name is shown.
    pub(super) fn passes(&self, name: &str) -> bool {
        let filter = self.filter();
        filter.is_empty() || name.to_lowercase().contains(&filter.to_lowercase())
    }

    /// Asks where to go.
    pub(super) fn ask_position(&mut self) {
        self.open = Some(Prompt::new(Question::Position, String::new()));
    }

    /// Asks for a filter, beginning with the one that is set.
    pub(super) fn ask_filter(&mut self) {
        self.open = Some(Prompt::new(Question::Filter, self.filter.clone()));
    }

    /// Asks whether the view is to be left, and what is to become of the program.
    pub(super) fn ask_leaving(&mut self) {
        self.open = Some(Prompt::new(Question::Leaving, String::new()));
    }

    /// Whether that is asked.
    pub(super) fn is_leaving(&self) -> bool {
        self.open.as_ref().is_some_and(|prompt| prompt.question == Question::Leaving)
    }

    /// Answers that, which a single key does. Ctrl-C again leaves the program alone, so that no two of them ever end it.
    pub(super) fn press_leaving(&mut self, key: Key) -> Option<Effect> {
        let answer = match key {
            Key::Char('d') | Key::Ctrl('c') => Some(Effect::Quit),
            Key::Char('w') => Some(Effect::Wait),
            Key::Char('s') => Some(Effect::Stop),
            Key::Esc => None,
            _ => return None,
        };
        self.open = None;
        answer
    }

    /// Shows all names; whether that is news.
    pub(super) fn clear_filter(&mut self) -> bool {
        !std::mem::take(&mut self.filter).is_empty()
    }

    /// Types a key into the open question. The answer, once it is given, may be for a source that stands at `position_ns`.
    pub(super) fn press(&mut self, key: Key, position_ns: u64) -> Option<Control> {
        let prompt = self.open.as_mut()?;
        match key {
            Key::Char(c) => prompt.push(c),
            Key::Backspace => prompt.pop(),
            Key::Esc => {
                if prompt.question == Question::Filter {
                    self.filter.clear();
                }
                self.open = None;
            }
            Key::Enter => return self.answer(position_ns),
            _ => (),
        }
        None
    }

    fn answer(&mut self, position_ns: u64) -> Option<Control> {
        let prompt = self.open.as_mut()?;
        let control = match prompt.question {
            Question::Filter => {
                self.filter = std::mem::take(&mut prompt.text);
                None
            }
            // A key is the answer.
            Question::Leaving => return None,
            Question::Position => match prompt::position(&prompt.text, position_ns) {
                Ok(control) => Some(control),
                Err(complaint) => {
                    prompt.complaint = Some(complaint);
                    return None;
                }
            },
        };
        self.open = None;
        control
    }
}
