//! Where a path leads.

use std::collections::BTreeSet;

use super::modules::{Modules, Name};

/// Re-exports of re-exports: deeper ones are taken for a loop.
const DEEPEST: usize = 24;

impl Modules {
    /// The files that define what `path` names within `module`. None where it leads to a module as such, or out of the
    /// crate.
    pub fn definers(&self, module: usize, path: &[String]) -> BTreeSet<String> {
        let mut files = BTreeSet::new();
        for (end, rest_is_item) in self.ends(module, path, DEEPEST) {
            if rest_is_item {
                files.insert(self.0[end].file.clone());
            }
        }
        files
    }

    /// The modules to which `path` leads, each with whether it names an item of that module.
    fn ends(&self, module: usize, path: &[String], deepest: usize) -> Vec<(usize, bool)> {
        let Some((first, rest)) = path.split_first() else { return vec![(module, false)] };
        let Some(deepest) = deepest.checked_sub(1) else { return Vec::new() };
        match first.as_str() {
            "crate" => self.ends(0, rest, deepest),
            "self" => self.ends(module, rest, deepest),
            "super" => self.0[module].parent.map_or(Vec::new(), |parent| self.ends(parent, rest, deepest)),
            name => self.named(module, name, rest, deepest),
        }
    }

    fn named(&self, module: usize, name: &str, rest: &[String], deepest: usize) -> Vec<(usize, bool)> {
        let here = &self.0[module];
        let Some(meanings) = here.names.get(name) else {
            let globs = here.globs.iter().filter(|glob| glob.first().is_some_and(|first| first != name));
            let places = globs.flat_map(|glob| self.ends(module, glob, deepest)).filter(|(_, is_item)| !is_item);
            let path: Vec<String> = [&[name.to_owned()], rest].concat();
            return places
                .filter(|(place, _)| *place != module)
                .flat_map(|(place, _)| self.ends(place, &path, deepest))
                .collect();
        };
        let lead = |meaning: &Name| match meaning {
            Name::Defined => vec![(module, true)],
            Name::Module(child) => self.ends(*child, rest, deepest),
            // A crate's name, brought in under the same name.
            Name::Used(path) if path.len() == 1 && path[0] == name => Vec::new(),
            Name::Used(path) => self.ends(module, &[path.as_slice(), rest].concat(), deepest),
        };
        // A function may have a module's name; what comes after it is the module's.
        let is_module = |meaning: &&Name| matches!(meaning, Name::Module(_));
        if !rest.is_empty() && meanings.iter().any(|meaning| is_module(&meaning)) {
            return meanings.iter().filter(is_module).flat_map(lead).collect();
        }
        meanings.iter().flat_map(lead).collect()
    }
}
