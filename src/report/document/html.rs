//! Documents as one HTML file with style, figures and a short script inside. Nothing is fetched. Without the script the
//! page lacks only the values under the pointer and the keys.

use super::blocks::{Block, Card, Document, StepNote};
use super::markup::escaped;
use crate::phase_style::{DARK, Hexes, LIGHT};
use gnntop_analysis::findings::Severity;

const STYLE: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("page.js");
/// Nothing may be fetched, whatever a recording contains.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'";

impl Document {
    /// As one self-contained HTML file.
    pub fn to_html(&self) -> String {
        let mut body = String::new();
        self.blocks.iter().for_each(|block| write(&mut body, block));
        let script = if body.contains("data-v=") { format!("<script>\n{SCRIPT}</script>\n") } else { String::new() };
        let title = escaped(&self.title);
        let about: String = self.about.iter().map(|line| format!("<p>{}</p>\n", escaped(line))).collect();
        format!(
            "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n\
             <meta http-equiv=\"Content-Security-Policy\" content=\"{POLICY}\">\n\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
             <meta name=\"color-scheme\" content=\"light dark\">\n<title>{title}</title>\n\
             <style>\n:root{{{}}}\n@media screen and (prefers-color-scheme:dark){{:root{{{}}}}}\n{STYLE}</style></head>\n\
             <body>\n<header><h1>{title}</h1>\n{about}</header>\n<main>\n{body}</main>\n\
             <footer>Made by gnntop {}</footer>\n{script}</body></html>\n",
            variables(&LIGHT),
            variables(&DARK),
            env!("CARGO_PKG_VERSION"),
        )
    }
}

/// The colours as CSS variables.
fn variables(hexes: &Hexes) -> String {
    let texts = ["dim", "accent", "good", "warning", "alarm", "series"].map(str::to_owned);
    let named = texts.into_iter().zip(hexes.texts);
    let phases = hexes.phases.iter().enumerate().map(|(at, hex)| (format!("p{at}"), *hex));
    let others = hexes.others.iter().enumerate().map(|(at, hex)| (format!("o{at}"), *hex));
    let gap = std::iter::once(("gap".to_owned(), hexes.gap));
    named.chain(phases).chain(others).chain(gap).map(|(name, hex)| format!("--{name}:#{hex:06x};")).collect()
}

fn write(out: &mut String, block: &Block) {
    match block {
        Block::Heading(text) => *out += &format!("<h2>{}</h2>\n", escaped(text)),
        Block::Paragraph(text) => *out += &format!("<p>{}</p>\n", escaped(text)),
        Block::List(lines) => *out += &list("", lines),
        Block::Table { rows, .. } => table(out, rows, ""),
        Block::Facts(rows) => table(out, rows, " class=\"facts\""),
        Block::Picture { html, .. } => *out += &format!("{html}\n"),
        Block::Verdict(parts) => verdict(out, parts),
        Block::Findings(cards) => cards.iter().for_each(|one| card(out, one)),
        Block::Steps(notes) => steps(out, notes),
        Block::Folded { line, short, all } => {
            short.iter().for_each(|block| write(out, block));
            *out += &format!("<details><summary>{}</summary>\n", escaped(line));
            all.iter().for_each(|block| write(out, block));
            *out += "</details>\n";
        }
        Block::Columns(columns) => {
            *out += "<div class=\"columns\">\n";
            for blocks in columns {
                *out += "<section>\n";
                blocks.iter().for_each(|block| write(out, block));
                *out += "</section>\n";
            }
            *out += "</div>\n";
        }
    }
}

fn list(class: &str, lines: &[String]) -> String {
    let items: String = lines.iter().map(|line| format!("<li>{}</li>\n", escaped(line))).collect();
    let class = if class.is_empty() { String::new() } else { format!(" class=\"{class}\"") };
    if lines.is_empty() { String::new() } else { format!("<ul{class}>\n{items}</ul>\n") }
}

fn verdict(out: &mut String, parts: &[String]) {
    let Some((first, others)) = parts.split_first() else { return };
    let others: String = others.iter().map(|part| format!("<span>{}</span>\n", escaped(part))).collect();
    *out += &format!("<div class=\"verdict\"><strong>{}</strong>\n{others}</div>\n", escaped(first));
}

fn card(out: &mut String, card: &Card) {
    let (class, word) = match card.severity {
        Severity::Major => ("major", "major"),
        Severity::Minor => ("minor", "minor"),
        Severity::Note => ("note", "note"),
    };
    let share = if card.share.is_empty() { String::new() } else { format!("<b>{}</b>", escaped(&card.share)) };
    *out += &format!(
        "<article class=\"finding {class}\">\n<h3><span>{}</span><small>{word}, {}</small>{share}</h3>\n<div>\n<p>{}</p>\n",
        escaped(&card.title),
        card.confidence,
        escaped(&card.summary)
    );
    if let Some((first, others)) = card.advice.split_first() {
        *out += &format!("<p class=\"try\"><b>Try</b> {}</p>\n{}", escaped(first), list("try", others));
    }
    *out += &list("evidence", &card.evidence);
    if !card.steps.is_empty() {
        let link = |(anchor, text): &(String, String)| format!("<a href=\"#{anchor}\">{}</a>", escaped(text));
        let links: Vec<String> = card.steps.iter().map(link).collect();
        *out += &format!("<p class=\"links\">{}</p>\n", links.join(" "));
    }
    *out += &format!("</div>\n{}</article>\n", card.picture);
}

fn steps(out: &mut String, notes: &[StepNote]) {
    *out += "<div class=\"steps\">\n";
    for note in notes {
        let sentences: String = note.sentences.iter().map(|text| format!("<p>{}</p>\n", escaped(text))).collect();
        *out += &format!(
            "<section id=\"{}\" tabindex=\"-1\"><h3>{}<b>{}</b></h3>\n{}{sentences}</section>\n",
            note.anchor,
            escaped(&note.title),
            escaped(&note.time),
            note.picture
        );
    }
    *out += "</div>\n";
}

fn table(out: &mut String, rows: &[Vec<String>], class: &str) {
    let Some((head, rows)) = rows.split_first() else { return };
    let cells = |row: &[String], tag: &str| {
        row.iter().map(|cell| format!("<{tag}>{}</{tag}>", escaped(cell))).collect::<String>()
    };
    *out +=
        &format!("<div class=\"table\" tabindex=\"0\"><table{class}>\n<thead><tr>{}</tr></thead>\n", cells(head, "th"));
    rows.iter().for_each(|row| *out += &format!("<tr>{}</tr>\n", cells(row, "td")));
    *out += "</table></div>\n";
}
