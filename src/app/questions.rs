//! The questions that the screen asks in its last row, their answers, and the filter that one of them sets: which names are
//! shown, all or those with a given part.

use super::action::Effect;
use super::input::Key;
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

    /// Shows only names with this part.
    pub(super) fn set_filter(&mut self, filter: String) {
        self.filter = filter;
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
            Question::Position => match parse_position(&prompt.text, position_ns) {
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

/// Longest answer taken, in characters.
const LONGEST: usize = 32;

/// What is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Question {
    /// Where in the replay to go.
    Position,
    /// Which names to show.
    Filter,
    /// Whether to leave, and what to do with the program.
    Leaving,
    /// Which steps to trace.
    Trace,
}

impl Question {
    /// The question, in words.
    pub fn text(self) -> &'static str {
        match self {
            Self::Position => "go to",
            Self::Filter => "filter",
            Self::Leaving => "leave",
            Self::Trace => "trace",
        }
    }

    /// What to type.
    pub fn hint(self) -> &'static str {
        match self {
            Self::Position => "90, 1:30, +5, -5, 50%, step 120 or end, then Enter",
            Self::Filter => "part of a name, then Enter; Esc shows all",
            Self::Leaving => "d detach, it continues   s stop it   w wait for its end   Esc stay",
            Self::Trace => "Enter the next 5 steps, which slows them down   s after a slow step   Esc no",
        }
    }

    /// Whether an answer may contain this character.
    fn takes(self, c: char) -> bool {
        match self {
            // A word that means nothing gets a complaint, and is not swallowed.
            Self::Position => c.is_ascii_alphanumeric() || matches!(c, ':' | '.' | '%' | '#' | '+' | '-' | ' '),
            Self::Filter => !c.is_control(),
            Self::Leaving | Self::Trace => false,
        }
    }
}

/// An answer as it is being typed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Prompt {
    /// What is asked.
    pub question: Question,
    /// What was typed so far.
    pub text: String,
    /// What was wrong with it when it was last given.
    pub complaint: Option<&'static str>,
}

impl Prompt {
    pub(super) fn new(question: Question, text: String) -> Self {
        Self { question, text, complaint: None }
    }

    pub(super) fn push(&mut self, c: char) {
        self.complaint = None;
        if self.question.takes(c) && self.text.chars().count() < LONGEST {
            self.text.push(c);
        }
    }

    /// What to type next, or what is wrong with what was typed.
    pub fn hint(&self) -> String {
        if let Some(complaint) = self.complaint {
            return complaint.to_owned();
        }
        let number = self.text.trim();
        let is_number = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
        if self.question == Question::Position && is_number {
            return format!("{number} seconds; for the step: step {number}");
        }
        self.question.hint().to_owned()
    }

    pub(super) fn pop(&mut self) {
        self.complaint = None;
        self.text.pop();
    }
}

/// Where an answer about a position sends a replay that is at `position_ns`: `50%`, `90` or `90s`, `1:30`, `1:00:00`,
/// forward or back with a sign, `step 120` or `#120` for a step, and `end`.
///
/// # Errors
/// If the answer is not one of these, says what to type.
pub(super) fn parse_position(text: &str, position_ns: u64) -> Result<Control, &'static str> {
    const COMPLAINT: &str = "type 90, 1:30, +5, -5, 50%, step 120 or end";
    let text = text.trim();
    if text.eq_ignore_ascii_case("end") {
        return Ok(Control::SeekShare(1.0));
    }
    if let Some(percent) = text.strip_suffix('%') {
        let percent: f64 = percent.parse().map_err(|_| COMPLAINT)?;
        return Ok(Control::SeekShare((percent / 100.0).clamp(0.0, 1.0)));
    }
    if let Some(step) = text.strip_prefix("step").or(text.strip_prefix('#')) {
        return step.trim_start().trim_start_matches('#').parse().map(Control::SeekStep).map_err(|_| COMPLAINT);
    }
    // A float beyond the range saturates.
    let ns = |text: &str| parse_seconds(text.trim_end_matches('s')).map(|s| (s * 1e9) as u64).ok_or(COMPLAINT);
    Ok(Control::Seek(match (text.strip_prefix('+'), text.strip_prefix('-')) {
        (Some(on), _) => position_ns.saturating_add(ns(on)?),
        (_, Some(back)) => position_ns.saturating_sub(ns(back)?),
        _ => ns(text)?,
    }))
}

/// Seconds in `[[h:]m:]s`.
fn parse_seconds(text: &str) -> Option<f64> {
    if text.split(':').count() > 3 {
        return None;
    }
    let number = |part: &str| part.bytes().all(|c| c.is_ascii_digit() || c == b'.').then(|| part.parse::<f64>().ok());
    text.split(':').try_fold(0.0, |sum, part| Some(sum * 60.0 + number(part)??))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(text: &str) -> Result<Control, &'static str> {
        let mut prompt = Prompt::new(Question::Position, String::new());
        text.chars().for_each(|c| prompt.push(c));
        parse_position(&prompt.text, 10_000_000_000)
    }

    #[test]
    fn parse_position_reads_times_shares_and_steps() {
        assert_eq!(answer("90"), Ok(Control::Seek(90_000_000_000)));
        assert_eq!(answer("90s"), Ok(Control::Seek(90_000_000_000)));
        assert_eq!(answer("1:30"), Ok(Control::Seek(90_000_000_000)));
        assert_eq!(answer("1:00:00.5"), Ok(Control::Seek(3_600_500_000_000)));
        assert_eq!(answer("25%"), Ok(Control::SeekShare(0.25)));
        assert_eq!(answer("250%"), Ok(Control::SeekShare(1.0)));
        for text in ["#1234", "step 1234", "step1234", "step #1234", " step 1234 "] {
            assert_eq!(answer(text), Ok(Control::SeekStep(1234)), "{text:?}");
        }
        assert_eq!(answer("+2.5"), Ok(Control::Seek(12_500_000_000)));
        assert_eq!(answer("-4"), Ok(Control::Seek(6_000_000_000)));
        assert_eq!(answer("-1:00"), Ok(Control::Seek(0)));
        assert_eq!(answer("end"), Ok(Control::SeekShare(1.0)));
    }

    #[test]
    fn parse_position_rejects_nonsense_with_hint() {
        for text in [
            "",
            "%",
            ":",
            "1:2:3:4",
            "1..5",
            "#",
            "#1.5",
            "+",
            "--1",
            "+-1",
            "1-1",
            "99999999999999999999#",
            "step",
            "step x",
            "s",
            "ende",
            "foo",
        ] {
            assert!(answer(text).is_err(), "{text}");
        }
    }

    #[test]
    fn plain_number_is_said_to_be_seconds() {
        let mut prompt = Prompt::new(Question::Position, String::new());
        assert!(prompt.hint().starts_with("90, 1:30"));
        "100".chars().for_each(|c| prompt.push(c));
        assert_eq!(prompt.hint(), "100 seconds; for the step: step 100");
        prompt.push('%');
        assert!(prompt.hint().starts_with("90, 1:30"));
    }

    #[test]
    fn answer_length_is_limited() {
        let mut prompt = Prompt::new(Question::Position, String::new());
        (0..1000).for_each(|_| prompt.push('9'));
        assert_eq!(prompt.text.len(), LONGEST);
        assert!(parse_position(&prompt.text, 0).is_ok());
        prompt.push('x');
        assert!(!prompt.text.contains('x'));
        let mut prompt = Prompt::new(Question::Filter, String::new());
        (0..1000).for_each(|_| prompt.push('前'));
        prompt.push('\u{1b}');
        assert_eq!(prompt.text.chars().count(), LONGEST);
    }
}
