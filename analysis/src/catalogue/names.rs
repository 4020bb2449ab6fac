//! How a program's own name is found by what a figure makes of it. A program may have hundreds of thousands of names.

use std::collections::HashMap;

/// A name as figures have it: without spaces, so that no shell needs quotes.
pub(super) fn slug(name: &str) -> String {
    slug_chars(name).collect()
}

fn slug_chars(name: &str) -> impl Iterator<Item = char> + '_ {
    name.chars().map(|c| if c.is_whitespace() { '_' } else { c })
}

/// The one of a few things with this name: exactly, else the first whose name is the same but for `_` in place of spaces.
pub(super) fn find_named<T>(all: impl IntoIterator<Item = T>, text: impl Fn(&T) -> &str, name: &str) -> Option<T> {
    let name_as_slug = slug(name);
    let alike = all.into_iter().filter(|one| {
        #[cfg(test)]
        COMPARED.set(COMPARED.get() + 1);
        slug_chars(text(one)).eq(name_as_slug.chars())
    });
    alike.min_by_key(|one| text(one) != name)
}

/// The same of any number of things, without a look at all of them for each name.
pub(super) struct ByName<'a, T>(HashMap<String, Vec<(&'a str, T)>>);

impl<'a, T> FromIterator<(&'a str, T)> for ByName<'a, T> {
    fn from_iter<I: IntoIterator<Item = (&'a str, T)>>(named: I) -> Self {
        let mut all: HashMap<String, Vec<(&str, T)>> = HashMap::new();
        named.into_iter().for_each(|(text, one)| all.entry(slug(text)).or_default().push((text, one)));
        Self(all)
    }
}

impl<T> ByName<'_, T> {
    /// The one with this name, as [`find_named`] has it.
    pub fn get(&self, name: &str) -> Option<&T> {
        find_named(self.0.get(&slug(name))?, |(text, _)| text, name).map(|(_, one)| one)
    }
}

#[cfg(test)]
thread_local! {
    /// How many names were compared.
    pub(super) static COMPARED: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}
