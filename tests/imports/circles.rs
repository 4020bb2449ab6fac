//! Circles of files: sets in which each file leads to every other (strongly connected components; Tarjan, Depth-first
//! search and linear graph algorithms, SIAM J. Comput. 1972).

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use super::Arrows;

/// Files that import each other in a loop, with the arrows among them.
pub struct Circle(pub Arrows);

impl fmt::Display for Circle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let files: BTreeSet<&String> = self.0.keys().collect();
        writeln!(
            f,
            "a circle of {}: {}",
            files.len(),
            files.iter().map(|f| f.as_str()).collect::<Vec<_>>().join(", ")
        )?;
        for (from, targets) in &self.0 {
            for (to, names) in targets {
                writeln!(f, "  {from} -> {to}: {}", names.join(", "))?;
            }
        }
        Ok(())
    }
}

/// All circles, each with the names that tie it.
pub fn circles(arrows: &Arrows) -> Vec<Circle> {
    let mut search = Search::over(arrows);
    arrows.keys().for_each(|file| search.visit(file));
    search.found.into_iter().map(|files| Circle(within(arrows, &files))).collect()
}

/// The arrows that begin and end among these files.
fn within(arrows: &Arrows, files: &BTreeSet<String>) -> Arrows {
    let inside = |targets: &BTreeMap<String, Vec<String>>| {
        targets.iter().filter(|(to, _)| files.contains(*to)).map(|(to, names)| (to.clone(), names.clone())).collect()
    };
    arrows.iter().filter(|(from, _)| files.contains(*from)).map(|(from, to)| (from.clone(), inside(to))).collect()
}

struct Search<'a> {
    arrows: &'a Arrows,
    /// When each file was first met, and the earliest file on the path that it leads back to.
    met: BTreeMap<&'a str, (usize, usize)>,
    path: Vec<&'a str>,
    found: Vec<BTreeSet<String>>,
}

impl<'a> Search<'a> {
    fn over(arrows: &'a Arrows) -> Self {
        Self { arrows, met: BTreeMap::new(), path: Vec::new(), found: Vec::new() }
    }

    fn visit(&mut self, file: &'a str) {
        if self.met.contains_key(file) {
            return;
        }
        let number = self.met.len();
        self.met.insert(file, (number, number));
        self.path.push(file);
        let mut earliest = number;
        for to in self.arrows.get(file).into_iter().flat_map(BTreeMap::keys) {
            self.visit(to);
            if self.path.contains(&to.as_str()) {
                earliest = earliest.min(self.met[to.as_str()].1);
            }
        }
        self.met.insert(file, (number, earliest));
        if earliest == number {
            let begin = self.path.iter().position(|on_path| *on_path == file).expect("a file is on its own path");
            let circle: BTreeSet<String> = self.path.split_off(begin).into_iter().map(str::to_owned).collect();
            if circle.len() > 1 {
                self.found.push(circle);
            }
        }
    }
}
