//! Documents as Markdown, with GitHub's tables.

use super::blocks::{Block, Card, Document, StepNote};

impl Document {
    /// As Markdown, without figures.
    pub fn to_markdown(&self) -> String {
        let mut out = format!("# {}\n", escaped(&self.title));
        self.about.iter().for_each(|line| out += &format!("\n{}\n", escaped(line)));
        self.blocks.iter().for_each(|block| write(&mut out, block));
        out
    }
}

fn write(out: &mut String, block: &Block) {
    match block {
        Block::Heading(text) => *out += &format!("\n## {}\n\n", escaped(text)),
        Block::Paragraph(text) => *out += &format!("\n{}\n\n", escaped(text)),
        Block::List(lines) => lines.iter().for_each(|line| *out += &format!("- {}\n", escaped(line))),
        Block::Table { rows, .. } | Block::Facts(rows) => table(out, rows),
        Block::Picture { .. } => (),
        Block::Verdict(parts) => *out += &format!("\n**{}**\n", escaped(&parts.join("; "))),
        Block::Findings(cards) => cards.iter().for_each(|one| card(out, one)),
        Block::Steps(notes) => notes.iter().for_each(|note| step(out, note)),
        Block::Folded { line, short, all } => {
            short.iter().for_each(|block| write(out, block));
            *out += &format!("\n{}:\n\n", escaped(line));
            all.iter().for_each(|block| write(out, block));
        }
        Block::Columns(columns) => columns.iter().flatten().for_each(|block| write(out, block)),
    }
}

fn card(out: &mut String, card: &Card) {
    let share = if card.share.is_empty() { String::new() } else { format!(", {}", escaped(&card.share)) };
    let title = escaped(&card.title);
    *out += &format!("- **{title}** ({}{share}): {}\n", card.confidence, escaped(&card.summary));
    card.evidence.iter().for_each(|line| *out += &format!("  - {}\n", escaped(line)));
    card.advice.iter().for_each(|line| *out += &format!("  - try: {}\n", escaped(line)));
}

fn step(out: &mut String, note: &StepNote) {
    let sentences = note.sentences.join("; ");
    *out += &format!("- {}, {}: {}\n", escaped(&note.title), escaped(&note.time), escaped(&sentences));
}

fn table(out: &mut String, rows: &[Vec<String>]) {
    let Some(head) = rows.first() else { return };
    let line = |row: &Vec<String>| {
        format!("| {} |\n", row.iter().map(|cell| escaped(cell)).collect::<Vec<String>>().join(" | "))
    };
    *out += &format!("\n{}|{}\n", line(head), "---|".repeat(head.len()));
    rows.iter().skip(1).for_each(|row| *out += &line(row));
}

/// The text, with everything escaped that Markdown would interpret.
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
