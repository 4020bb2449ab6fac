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
    for (at, c) in text.char_indices() {
        // GitHub makes links of bare addresses, and a name in a recording can be one.
        let is_of_address = match c {
            ':' => text[at..].starts_with("://"),
            '.' => text[..at].to_ascii_lowercase().ends_with("www"),
            c => c == '@',
        };
        if is_of_address || matches!(c, '|' | '<' | '>' | '*' | '_' | '`' | '[' | ']' | '\\' | '#') {
            out.push('\\');
        }
        out.push(if c.is_control() { ' ' } else { c });
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bare_address_is_no_link() {
        assert_eq!(escaped("see https://a.example/b, WWW.a.example"), "see https\\://a.example/b, WWW\\.a.example");
        assert_eq!(escaped("ftp://a me@b.example 12:30: 1.5"), "ftp\\://a me\\@b.example 12:30: 1.5");
    }
}
