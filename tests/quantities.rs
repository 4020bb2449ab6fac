//! What is measured has one name: outside the table of quantities and imports, no code spells it.

use std::fs;
use std::path::Path;

use gnntop_wire::{Metric, Quantity};

use crate::imports::texts;
use crate::{crate_of, members};

/// Where the names may stand: in the member with the table, where tables of others are read, and where figures are listed,
/// whose names the catalogue reads.
const MAY_SPELL: [&str; 3] = ["wire/src", "src/import", "src/study/tables.rs"];

/// Whether code compares or makes the name of something measured with this text: a whole name, one with a place for the
/// number, or its beginning or end up to a dot.
fn is_name(text: &str) -> bool {
    let numbered = with_numbers(text);
    let begin = text.split('{').next().unwrap_or_default();
    numbered.parse::<Metric>().is_ok() || Quantity::ALL.iter().any(|quantity| is_part(begin, quantity.text()))
}

/// Whether `part` is `known`, its beginning with the dot after it, or its end with a dot in it.
fn is_part(part: &str, known: &str) -> bool {
    let is_begin = part.ends_with('.') && known.starts_with(part);
    let is_end =
        part.contains('.') && known.strip_suffix(part).is_some_and(|rest| rest.is_empty() || is_whole(rest, part));
    is_begin || is_end
}

fn is_whole(rest: &str, part: &str) -> bool {
    rest.ends_with('.') || part.starts_with('.')
}

/// The text with a number in place of each `{...}`.
fn with_numbers(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('{') {
        out.push_str(before);
        out.push('0');
        rest = after.split_once('}').map_or("", |(_, after)| after);
    }
    out + rest
}

#[test]
fn no_code_spells_what_is_measured() {
    let mut found = String::new();
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    for source in members().iter().map(|(_, dir)| dir.join("src")) {
        for (file, texts) in texts(&source.join("lib.rs")) {
            let path = source.join(file);
            let path = path.strip_prefix(root).unwrap();
            if MAY_SPELL.iter().any(|place| path.starts_with(place)) {
                continue;
            }
            let names = texts.iter().filter(|text| is_name(text));
            names.for_each(|text| found += &format!("{}: {text:?}\n", path.display()));
        }
    }
    assert!(found.is_empty(), "name it by gnntop_wire::Quantity:\n{found}");
}

#[test]
fn quantity_names_are_found_in_every_form() {
    let code = r#"
        const NAME: &str = "process.rss";
        fn f(gpu: u32, text: &str) -> String {
            if text.starts_with("gpu.") || text.ends_with(".energy") || matches!(text, "memory.used") { g("cpu.N.energy") }
            format!("gpu.{gpu}.{text}") + &format!("machine.cpu.{gpu}.busy")
        }
    "#;
    let dir = crate_of(&[("lib.rs", code)]);
    let seen = |dir: &Path| texts(&dir.join("lib.rs")).remove("lib.rs").unwrap();
    let texts = seen(dir.path());
    assert_eq!((texts.len(), texts.iter().filter(|text| is_name(text)).count()), (7, 7), "{texts:?}");
    let fine = r#"
        /// `process.rss`
        fn f() { g("process", "rss of a process.", "memory", "{}.{}", "a.rss", "process.rss is a name", "cpu", ".", "") }
        #[cfg(test)]
        mod tests { const NAME: &str = "process.rss"; }
    "#;
    fs::write(dir.path().join("lib.rs"), fine).unwrap();
    let texts = seen(dir.path());
    assert_eq!((texts.len(), texts.iter().find(|text| is_name(text))), (9, None), "{texts:?}");
}
