//! Documents as Markdown, in the form of tables that GitHub has.

use super::blocks::{Block, Document};

impl Document {
    /// As Markdown, without figures.
    pub fn to_markdown(&self) -> String {
        write(self)
    }
}

fn write(document: &Document) -> String {
    let mut out = format!("# {}\n", escaped(&document.title));
    for block in &document.blocks {
        match block {
            Block::Heading(text) => out += &format!("\n## {}\n\n", escaped(text)),
            Block::Paragraph(text) => out += &format!("\n{}\n\n", escaped(text)),
            Block::List(lines) => lines.iter().for_each(|line| out += &format!("- {}\n", escaped(line))),
            Block::Table(rows) => table(&mut out, rows),
            Block::Figure(_) => (),
        }
    }
    out
}

fn table(out: &mut String, rows: &[Vec<String>]) {
    let Some(head) = rows.first() else { return };
    let line = |row: &Vec<String>| {
        format!("| {} |\n", row.iter().map(|cell| escaped(cell)).collect::<Vec<String>>().join(" | "))
    };
    *out += &format!("\n{}|{}\n", line(head), "---|".repeat(head.len()));
    rows.iter().skip(1).for_each(|row| *out += &line(row));
}

/// The text without anything that Markdown would read as its own.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if matches!(c, '|' | '<' | '>' | '*' | '_' | '`' | '[' | ']' | '\\' | '#') {
            out.push('\\');
        }
        out.push(if c.is_control() { ' ' } else { c });
    }
    out
}
