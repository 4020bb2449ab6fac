//! Texts that a form refers to by number, in bounded memory.

use std::collections::HashMap;
use std::io;

/// Bytes of text that a form keeps. A recording that a program made has far fewer; one that is made to fill the memory is
/// refused.
const MAX_TEXT: usize = 16 << 20;
/// What a text takes beside its bytes.
const EACH: usize = 64;

/// Texts, each with the number that it got when it first came.
#[derive(Default)]
pub(super) struct Interner {
    numbers: HashMap<String, u32>,
    bytes: usize,
}

impl Interner {
    /// The number of a text, and whether it is new.
    ///
    /// # Errors
    /// When there are too many.
    pub(super) fn intern(&mut self, text: &str) -> io::Result<(u32, bool)> {
        if let Some(number) = self.numbers.get(text) {
            return Ok((*number, false));
        }
        self.bytes += text.len() + EACH;
        if self.bytes > MAX_TEXT {
            let words =
                "the recording has too many different names for this format: export a part with --steps or --from";
            return Err(io::Error::other(words));
        }
        let number = self.numbers.len() as u32;
        self.numbers.insert(text.to_owned(), number);
        Ok((number, true))
    }

    /// The number of a text.
    pub(super) fn get(&self, text: &str) -> Option<u32> {
        self.numbers.get(text).copied()
    }

    /// All texts in the order of their numbers.
    pub(super) fn all(&self) -> Vec<&str> {
        let mut all: Vec<(&String, &u32)> = self.numbers.iter().collect();
        all.sort_by_key(|(_, number)| **number);
        all.into_iter().map(|(text, _)| text.as_str()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_beyond_the_limit_is_refused() {
        let mut texts = Interner::default();
        assert_eq!((texts.intern("a").unwrap(), texts.intern("a").unwrap()), ((0, true), (0, false)));
        let refused = (0..1_000_000).find_map(|n| texts.intern(&format!("name {n}")).err()).unwrap();
        assert!(refused.to_string().contains("too many different names"));
        assert_eq!((texts.get("name 0"), texts.all()[1]), (Some(1), "name 0"));
    }
}
