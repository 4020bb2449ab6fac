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

    /// The part that names must have to be shown; empty if all are.
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

    /// Asks whether to leave the view, and what to do with the program.
    pub(super) fn ask_leaving(&mut self) {
        self.open = Some(Prompt::new(Question::Leaving, String::new()));
    }

    /// Asks whether to trace the next steps.
    pub(super) fn ask_trace(&mut self) {
        self.open = Some(Prompt::new(Question::Trace, String::new()));
    }

    /// The open question that a single key answers, if it is one of those.
    pub(super) fn awaits_a_key(&self) -> Option<Question> {
        let open = self.open.as_ref()?.question;
        matches!(open, Question::Leaving | Question::Trace).then_some(open)
    }

    /// Answers a question that a single key answers. Ctrl-C again leaves the program alone, so that no two of them ever end it.
    pub(super) fn press_once(&mut self, question: Question, key: Key) -> Option<Effect> {
        let answer = match (question, key) {
            (Question::Leaving, Key::Char('d')) | (_, Key::Ctrl('c')) => Some(Effect::Quit),
            (Question::Leaving, Key::Char('w')) => Some(Effect::Wait),
            (Question::Leaving, Key::Char('s')) => Some(Effect::Stop),
            (Question::Trace, Key::Enter) => Some(Effect::Trace { after_slow: false }),
            (Question::Trace, Key::Char('s')) => Some(Effect::Trace { after_slow: true }),
            (_, Key::Esc) => None,
            _ => return None,
        };
        self.open = None;
        answer
    }

    /// Shows all names; whether that is news.
    pub(super) fn clear_filter(&mut self) -> bool {
        !std::mem::take(&mut self.filter).is_empty()
    }

    /// Types a key into the open question. A complete answer may move a source that is at `position_ns`.
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
            Question::Leaving | Question::Trace => return None,
            Question::Position => match prompt::parse_position(&prompt.text, position_ns) {
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
