//! Documents as one HTML file: style and figures inside, no script, nothing fetched.

use super::blocks::{Block, Document};
use super::markup::escaped;

const STYLE: &str = "\
body{font:15px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem;color:#222;background:#fff}\
h1{font-size:1.5rem}h2{font-size:1.15rem;margin-top:2rem}\
table{border-collapse:collapse;font-size:13px;display:block;overflow-x:auto}\
th,td{padding:.2rem .6rem;border-bottom:1px solid #ddd;text-align:right;vertical-align:top}\
th:first-child,td:first-child,.facts td{text-align:left}\
svg{width:100%;height:auto;font:12px system-ui,sans-serif;margin:.5rem 0}\
@media print{body{margin:0;max-width:none}h2{break-after:avoid}table,svg{break-inside:avoid}}";

impl Document {
    /// As one HTML file with its figures and style inside and no script.
    pub fn to_html(&self) -> String {
        write(self)
    }
}

fn write(document: &Document) -> String {
    let title = escaped(&document.title);
    let mut out = format!(
        "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" \
         content=\"width=device-width\">\n<title>{title}</title>\n<style>{STYLE}</style></head>\n<body>\n<h1>{title}</h1>\n"
    );
    for (at, block) in document.blocks.iter().enumerate() {
        match block {
            Block::Heading(text) => out += &format!("<h2>{}</h2>\n", escaped(text)),
            Block::Paragraph(text) => out += &format!("<p>{}</p>\n", escaped(text)),
            Block::List(lines) => {
                let items: String = lines.iter().map(|line| format!("<li>{}</li>\n", escaped(line))).collect();
                out += &format!("<ul>\n{items}</ul>\n");
            }
            Block::Table(rows) => table(&mut out, rows, at == 0),
            Block::Figure(svg) => out += &format!("{svg}\n"),
        }
    }
    out + "</body></html>\n"
}

fn table(out: &mut String, rows: &[Vec<String>], is_facts: bool) {
    *out += if is_facts { "<table class=\"facts\">\n" } else { "<table>\n" };
    for (at, row) in rows.iter().enumerate() {
        let tag = if at == 0 { "th" } else { "td" };
        let cells: String = row.iter().map(|cell| format!("<{tag}>{}</{tag}>", escaped(cell))).collect();
        *out += &format!("<tr>{cells}</tr>\n");
    }
    *out += "</table>\n";
}
