//! Makes text from outside safe to show, whether from a stream, a file name or a program's output.

/// Decodes a text. Invalid UTF-8, control characters (which could drive a terminal) and invisible direction marks (which
/// could make a line read differently than it is) become `U+FFFD`.
pub fn clean(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    text.chars().map(|c| if is_harmful(c) { char::REPLACEMENT_CHARACTER } else { c }).collect()
}

/// Whether a character could drive a terminal, or make a line read differently than it is.
pub fn is_harmful(c: char) -> bool {
    c.is_control() || is_direction_mark(c)
}

/// Whether it is an invisible mark that changes the direction or line breaks of the surrounding text.
pub fn is_direction_mark(c: char) -> bool {
    matches!(c, '\u{061c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}')
}

#[cfg(test)]
mod tests {
    use super::clean;

    #[test]
    fn clean_removes_escape_sequences() {
        assert_eq!(clean(b"\x1b[2Jhello\x07\n"), "\u{fffd}[2Jhello\u{fffd}\u{fffd}");
        assert_eq!(clean("a\u{202e}b".as_bytes()), "a\u{fffd}b");
        assert_eq!(clean("\u{9b}31m".as_bytes()), "\u{fffd}31m");
    }

    #[test]
    fn clean_keeps_text_of_any_script() {
        let text = "forward שלום 前向 🚀 e\u{301}";
        assert_eq!(clean(text.as_bytes()), text);
    }

    #[test]
    fn invalid_utf8_is_replaced() {
        assert_eq!(clean(&[b'a', 0xff, b'b']), "a\u{fffd}b");
    }
}
