//! The page of the documentation that lists every figure.

use std::fmt::Write;

use gnntop_wire::Quantity;

use crate::findings::Number;

use super::row::{Names, Row, listed};
use super::rows::{HARDWARE, SECTIONS, statistics_of};

const HEAD: &str = "\
# Figures

Every number has one name, `SUBJECT.STATISTIC`: in limits (`gnntop check`), in studies and in `gnntop report --csv`. The
sections of a report and its JSON have the same numbers, and `gnntop compare` has those of the steps that it compares.
`gnntop check a.gnntop --list` lists those of a recording with their values. This page is printed from the catalogue
(`analysis/src/catalogue/rows`).

A word in capitals stands for a name. In names that a program gives, write `_` for a space; case, `-` and `_` make no
difference. If such a name reads like one of gnntop's own, put it in quotes: `\"step\".p99`.
p50, p90 and p99 stand for any percentile, such as p99.9.
";

const NUMBERS: &str = "
## Numbers of findings
In JSON, each finding has `facts`: the numbers in its sentences, with their units. `of` says of what one is, such as a
phase or a span. They leave out warm-up and are of the steps that the finding is about, so they are no figures and have
names of their own.

| name | what it is |
|---|---|
";

/// The page as Markdown.
pub fn page() -> String {
    let mut out = HEAD.to_owned();
    for section in &SECTIONS {
        let _ = write!(out, "\n## {}\n| subject | statistics | what it is |\n|---|---|---|\n", section.title);
        for row in section.rows {
            let _ = writeln!(out, "| `{}` | {} | {} |", row.subject, statistics(row), row.about);
        }
        if section.title == HARDWARE {
            quantities(&mut out);
        }
    }
    out += NUMBERS;
    for number in Number::ALL {
        let _ = writeln!(out, "| `{}` | {} |", number.id(), number.about());
    }
    out
}

fn statistics(row: &Row) -> String {
    let name = match row.names {
        Names::Own(example, _) => example,
        Names::None | Names::Program(_) => "name",
    };
    listed(&(row.statistics)(name))
}

/// What sensors measure.
fn quantities(out: &mut String) {
    *out += "\n`N` is a number:\n\n| quantity | statistics |\n|---|---|\n";
    for quantity in Quantity::ALL {
        let _ = writeln!(out, "| `{}` | {} |", quantity.text(), listed(&statistics_of(*quantity)));
    }
}
