//! Text cut between words into lines, for the screen and for reports. White space of any kind counts as one space, so that
//! a text cannot break lines itself, and a word longer than a line gets its own.

use textwrap::core::Fragment;
use textwrap::wrap_algorithms::wrap_first_fit;
use unicode_width::UnicodeWidthStr;

/// Text in lines of at most `columns` columns.
pub fn wrapped(text: &str, columns: usize) -> Vec<String> {
    let words: Vec<Word<'_>> = text.split_whitespace().map(Word).collect();
    if words.is_empty() { Vec::new() } else { lines(&words, &[columns as f64]) }
}

/// Text after `first`, in lines of at most `columns` columns; the lines after the first one begin with `rest`.
pub fn hanging(first: &str, rest: &str, text: &str, columns: usize) -> String {
    let words: Vec<Word<'_>> = text.split_whitespace().map(Word).collect();
    let room = [first, rest].map(|before| columns.saturating_sub(before.width()) as f64);
    format!("{first}{}", lines(&words, &room).join(&format!("\n{rest}")))
}

/// A word as wide as a terminal draws it, joined emoji included.
#[derive(Debug)]
struct Word<'t>(&'t str);

impl Fragment for Word<'_> {
    fn width(&self) -> f64 {
        self.0.width() as f64
    }

    fn whitespace_width(&self) -> f64 {
        1.0
    }

    fn penalty_width(&self) -> f64 {
        0.0
    }
}

fn lines(words: &[Word<'_>], room: &[f64]) -> Vec<String> {
    let joined = |line: &[Word<'_>]| line.iter().map(|word| word.0).collect::<Vec<_>>().join(" ");
    wrap_first_fit(words, room).into_iter().map(joined).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_cut_between_words() {
        assert_eq!(wrapped("a bc def", 4), ["a bc", "def"]);
        assert_eq!(wrapped("前向 传播 x", 5), ["前向", "传播", "x"], "columns, not characters");
        assert_eq!(wrapped("👩‍💻 👩‍💻", 5), ["👩‍💻 👩‍💻"], "joined emoji are two columns");
        assert_eq!(wrapped("long words stay", 2), ["long", "words", "stay"]);
        assert_eq!(wrapped("all-reduce", 5), ["all-reduce"], "a hyphen is no end of a word");
        assert_eq!(wrapped("a\nb", 9), ["a b"], "no line of its own");
        assert!(wrapped("", 9).is_empty());
    }

    #[test]
    fn hanging_text_is_indented_under_its_label() {
        assert_eq!(hanging("- ", "  ", "a bc def", 6), "- a bc\n  def");
    }
}
