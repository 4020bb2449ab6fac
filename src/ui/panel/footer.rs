//! The last row: what is missing from the picture, which keys do something here, and what the viewer itself costs.

use crate::app::keys::{self, Binding, FooterPlace};
use crate::app::{Command, LineExtent, When};
use crate::ui::scene::Scene;
use crate::ui::sheet::{Sheet, clip, width};

/// Draws the footer.
pub fn draw(sheet: &mut Sheet<'_>, scene: &Scene<'_>) {
    let theme = scene.theme;
    if let Some(prompt) = scene.app.prompt() {
        let x = sheet.text(1, 0, &format!("{}: {}_", prompt.question.text(), prompt.text), theme.strong());
        sheet.text(x + 2, 0, &prompt.hint(), theme.dim());
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
    let mut keys = FooterKeys::new(sheet.extent(), scene);
    let (whole, beside) = (sheet.width().saturating_sub(x), end.saturating_sub(x));
    if keys.needed(1) > whole {
        keys.shorten();
    }
    // Keys that matter now come before what the viewer costs.
    let (room, between) = match (keys.needed(BETWEEN) <= beside, keys.needed(BETWEEN) <= whole) {
        (true, _) => (beside, BETWEEN),
        (_, true) => (whole, BETWEEN),
        _ => (whole, if keys.needed(1) <= whole { 1 } else { BETWEEN }),
    };
    if room == beside {
        sheet.text(end + 1, 0, &cost, theme.dim());
    }
    keys.draw(&mut sheet.part(x, 0, room, 1), scene, between);
}

/// Columns between two keys, where there is room.
const BETWEEN: u16 = 2;

/// Keys that do something now, in the order in which they are drawn.
struct FooterKeys(Vec<FooterKey>);

struct FooterKey {
    name: String,
    word: &'static str,
    place: FooterPlace,
}

impl FooterKey {
    fn width(&self) -> u16 {
        width(&self.name) + 1 + width(self.word)
    }

    fn is_elsewhere(&self) -> bool {
        self.place == FooterPlace::Elsewhere
    }
}

impl FooterKeys {
    fn new(extent: Option<LineExtent>, scene: &Scene<'_>) -> Self {
        let situation = scene.app.situation();
        // A key that turns pages is of no use where all of the text is shown.
        let fits = extent.is_some_and(|extent| extent.text.0 == 0);
        let is_useless = |bound: &Binding| {
            fits && (bound.when, bound.command) == (When::Findings, Command::ScrollPage { down: true })
        };
        let available = scene.app.keymap().available(&situation).filter(|bound| !is_useless(bound.binding));
        let shown = available.filter_map(|bound| {
            let (name, word) = bound.footer.as_ref()?;
            let name = if scene.theme.ascii() { keys::ascii(name) } else { name.to_string() };
            Some(FooterKey { name, word, place: bound.binding.place })
        });
        let mut shown: Vec<FooterKey> = shown.collect();
        shown.sort_by_key(|key| (key.place != FooterPlace::Always, key.is_elsewhere()));
        Self(shown)
    }

    /// Shows the letters instead of the arrow keys, which are words if only ASCII is drawn.
    fn shorten(&mut self) {
        for key in self.0.iter_mut().filter(|key| key.name == keys::ASCII_ARROWS) {
            key.name = keys::ARROW_LETTERS.to_owned();
        }
    }

    /// Columns for those that matter now.
    fn needed(&self, between: u16) -> u16 {
        let now = self.0.iter().filter(|key| !key.is_elsewhere());
        now.map(|key| key.width() + between).sum::<u16>().saturating_sub(between)
    }

    fn draw(&self, sheet: &mut Sheet<'_>, scene: &Scene<'_>, between: u16) {
        let mut by_place: Vec<(usize, &FooterKey)> = self.0.iter().enumerate().collect();
        by_place.sort_by_key(|(_, key)| key.place);
        let mut room = sheet.width() + between;
        let mut fits = vec![false; self.0.len()];
        for (at, key) in by_place {
            fits[at] = key.width() + between <= room;
            room -= if fits[at] { key.width() + between } else { 0 };
        }
        let mut x = 0;
        for (key, _) in self.0.iter().zip(fits).filter(|(_, fits)| *fits) {
            x = sheet.text(x, 0, &key.name, scene.theme.accent());
            x = sheet.text(x + 1, 0, key.word, scene.theme.dim()) + between;
        }
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
    let mut warnings = scene.store.losses().describe();
    warnings.extend(scene.app.status().warnings());
    warnings.extend(scene.app.run.notes());
    (!warnings.is_empty()).then(|| warnings.join("; "))
}
