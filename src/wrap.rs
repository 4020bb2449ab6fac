//! Text cut between words into lines, for the screen and for reports. White space of any kind counts as one space, so that
//! no text makes lines of its own, and a word longer than a line has one to itself.

use textwrap::{Options, WordSeparator, WordSplitter, WrapAlgorithm, fill, wrap};

/// Text in lines of at most `columns` columns.
pub fn wrapped(text: &str, columns: usize) -> Vec<String> {
    let text = one_line(text);
    if text.is_empty() { Vec::new() } else { wrap(&text, options(columns)).into_iter().map(Into::into).collect() }
}

/// Text behind `first`, in lines of at most `columns` columns; the lines after the first one begin with `rest`.
pub fn hanging(first: &str, rest: &str, text: &str, columns: usize) -> String {
    fill(&one_line(text), options(columns).initial_indent(first).subsequent_indent(rest))
}

fn options<'a>(columns: usize) -> Options<'a> {
    Options::new(columns)
        .break_words(false)
        .word_separator(WordSeparator::AsciiSpace)
        .word_splitter(WordSplitter::NoHyphenation)
        .wrap_algorithm(WrapAlgorithm::FirstFit)
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_cut_between_words() {
        assert_eq!(wrapped("a bc def", 4), ["a bc", "def"]);
        assert_eq!(wrapped("前向 传播 x", 5), ["前向", "传播", "x"], "columns, not characters");
        assert_eq!(wrapped("long words stay", 2), ["long", "words", "stay"]);
        assert_eq!(wrapped("all-reduce", 5), ["all-reduce"], "a hyphen is no end of a word");
        assert_eq!(wrapped("a\nb", 9), ["a b"], "no line of its own");
        assert!(wrapped("", 9).is_empty());
    }

    #[test]
    fn text_hangs_behind_what_it_is_about() {
        assert_eq!(hanging("- ", "  ", "a bc def", 6), "- a bc\n  def");
    }
}
