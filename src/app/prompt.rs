//! The one question the screen asks: which time of a replay to go to.

use crate::source::Control;

/// Longest answer taken, in characters.
const LONGEST: usize = 16;

/// An answer as it is being typed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Prompt {
    /// What was typed so far.
    pub text: String,
    /// What was wrong with it when it was last given.
    pub complaint: Option<&'static str>,
}

impl Prompt {
    pub(super) fn push(&mut self, c: char) {
        self.complaint = None;
        let fits = c.is_ascii_digit() || matches!(c, ':' | '.' | '%' | 's');
        if fits && self.text.len() < LONGEST {
            self.text.push(c);
        }
    }

    pub(super) fn pop(&mut self) {
        self.complaint = None;
        self.text.pop();
    }

    /// What the answer asks of the source: `50%`, `90` or `90s`, `1:30`, `1:00:00`.
    ///
    /// # Errors
    /// Says what to type where the answer is none of these.
    pub(super) fn answer(&self) -> Result<Control, &'static str> {
        const COMPLAINT: &str = "type 90, 1:30 or 50%";
        if let Some(percent) = self.text.strip_suffix('%') {
            let percent: f64 = percent.parse().map_err(|_| COMPLAINT)?;
            return Ok(Control::SeekShare((percent / 100.0).clamp(0.0, 1.0)));
        }
        seconds(self.text.trim_end_matches('s')).map(|s| Control::Seek((s * 1e9) as u64)).ok_or(COMPLAINT)
    }
}

/// Seconds in `[[h:]m:]s`.
fn seconds(text: &str) -> Option<f64> {
    if text.split(':').count() > 3 {
        return None;
    }
    text.split(':').try_fold(0.0, |sum, part| Some(sum * 60.0 + part.parse::<f64>().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(text: &str) -> Result<Control, &'static str> {
        let mut prompt = Prompt::default();
        text.chars().for_each(|c| prompt.push(c));
        prompt.answer()
    }

    #[test]
    fn times_and_shares() {
        assert_eq!(answer("90"), Ok(Control::Seek(90_000_000_000)));
        assert_eq!(answer("90s"), Ok(Control::Seek(90_000_000_000)));
        assert_eq!(answer("1:30"), Ok(Control::Seek(90_000_000_000)));
        assert_eq!(answer("1:00:00.5"), Ok(Control::Seek(3_600_500_000_000)));
        assert_eq!(answer("25%"), Ok(Control::SeekShare(0.25)));
        assert_eq!(answer("250%"), Ok(Control::SeekShare(1.0)));
    }

    #[test]
    fn nonsense_is_answered_with_what_to_type() {
        for text in ["", "%", ":", "1:2:3:4", "1..5"] {
            assert!(answer(text).is_err(), "{text}");
        }
    }

    #[test]
    fn an_answer_has_an_end() {
        let mut prompt = Prompt::default();
        (0..1000).for_each(|_| prompt.push('9'));
        assert_eq!(prompt.text.len(), LONGEST);
        assert!(prompt.answer().is_ok());
        prompt.push('x');
        assert!(!prompt.text.contains('x'));
    }
}
