//! The last row: what is missing from the picture, which keys do something here, and what the viewer itself costs.

use crate::app::{Bound, keys};
use crate::ui::scene::Scene;
use crate::ui::sheet::{Sheet, clip, width};

/// Draws the footer.
pub fn draw(sheet: &mut Sheet<'_>, scene: &Scene<'_>) {
    let theme = scene.theme;
    if let Some(prompt) = scene.app.prompt() {
        let complaint = prompt.complaint.unwrap_or(prompt.question.hint());
        let x = sheet.text(1, 0, &format!("{}: {}_", prompt.question.text(), prompt.text), theme.strong());
        sheet.text(x + 2, 0, complaint, theme.dim());
        return;
    }
    let mut x = 1;
    if let Some(warning) = warning(scene) {
        let text = format!(" {warning} ");
        x = sheet.text_within(x, 0, sheet.width() / 2, &clip(&text, sheet.width() / 2, theme), theme.alarm()) + 2;
    }
    if let Some(notice) = scene.app.notice() {
        let room = sheet.width().saturating_sub(x + 1);
        let style = if scene.app.notice_is_problem() { theme.alarm() } else { theme.strong() };
        sheet.text(x, 0, &clip(notice, room, theme), style);
        return;
    }
    if !scene.app.filter().is_empty() {
        let text = format!("/{}", scene.app.filter());
        x = sheet.text(x, 0, &clip(&text, sheet.width() / 4, theme), theme.warning()) + 2;
    }
    let cost = cost(scene);
    let end = sheet.width().saturating_sub(width(&cost) + 2);
    draw_keys(&mut sheet.part(x, 0, end.saturating_sub(x), 1), scene);
    sheet.text(end + 1, 0, &cost, theme.dim());
}

fn draw_keys(sheet: &mut Sheet<'_>, scene: &Scene<'_>) {
    let theme = scene.theme;
    let mut x = 0;
    let situation = scene.app.situation();
    let mut shown: Vec<&Bound> = scene.app.keymap().available(&situation).collect();
    shown.sort_by_key(|bound| bound.binding.place);
    for bound in shown {
        let Some((name, word)) = &bound.footer else { continue };
        let name = if theme.ascii() { keys::ascii(name) } else { name.to_string() };
        if x + width(&name) + width(word) + 1 > sheet.width() {
            continue;
        }
        x = sheet.text(x, 0, &name, theme.accent());
        x = sheet.text(x + 1, 0, word, theme.dim()) + 2;
    }
}

fn cost(scene: &Scene<'_>) -> String {
    let cost = scene.app.cost();
    let mut parts = Vec::new();
    parts.extend(cost.cpu_percent.map(|cpu| format!("{cpu:.1} %")));
    parts.extend(cost.rss_bytes.map(|rss| format!("{:.0} MiB", rss as f64 / (1 << 20) as f64)));
    if parts.is_empty() { String::new() } else { format!("viewer {}", parts.join(" ")) }
}

/// What a person must know about missing data; `None` when all is there.
fn warning(scene: &Scene<'_>) -> Option<String> {
    let mut warnings = scene.store.losses().in_words();
    warnings.extend(scene.app.status().warnings());
    warnings.extend(scene.app.run.notes());
    (!warnings.is_empty()).then(|| warnings.join("; "))
}
