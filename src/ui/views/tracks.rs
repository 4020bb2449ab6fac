//! The tracks: what each thread is for, what it told, what is open on it, and what was lost.

use gnntop_wire::TrackRole;

use super::{first_shown, rule};
use crate::app::View;
use crate::figures::{count, duration};
use crate::store::Track;
use crate::ui::Scene;
use crate::ui::sheet::{Sheet, clip};

/// Columns of a figure with the space before it.
const FIGURE: u16 = 11;
/// Columns of the role.
const ROLE: u16 = 10;
/// Figures of each track.
const HEADS: [&str; 4] = ["spans", "steps", "lost", "open"];

/// Draws the view.
pub fn draw(body: &mut Sheet<'_>, scene: &Scene<'_>) {
    let theme = scene.theme;
    let tracks = scene.store.tracks();
    let figures = (body.width().saturating_sub(ROLE + 16) / FIGURE).min(HEADS.len() as u16);
    let name = body.width().saturating_sub(FIGURE * figures + ROLE + 2);
    rule(body, 0, "tracks", "", scene);
    for (i, head) in (1..=figures).zip(HEADS) {
        body.text_ending(0, name + ROLE + i * FIGURE + 1, 0, &format!(" {head} "), theme.plain());
    }
    let first = first_shown(scene.app.line(View::Tracks), tracks.len(), body.height().saturating_sub(1));
    for (y, track) in (1..body.height()).zip(&tracks[first..]) {
        body.text(1, y, &clip(&track.text, name.saturating_sub(2), theme), theme.plain());
        body.text_within(name, y, ROLE, role(track), theme.dim());
        let open = scene.store.open_spans().find(|(open, _)| open.id == track.id);
        let open = open.map(|(_, open)| duration(scene.store.now_ns().saturating_sub(open.since_ns)));
        let lost = track.dropped.saturating_add(track.missed);
        let texts = [count(track.spans), count(track.steps), count(lost), open.unwrap_or_default()];
        for (i, text) in (1..=figures).zip(texts) {
            body.text_ending(name + ROLE, name + ROLE + i * FIGURE, y, &text, theme.plain());
        }
    }
}

fn role(track: &Track) -> &'static str {
    match track.role {
        TrackRole::Training => "training",
        TrackRole::Loader => "loader",
        TrackRole::Sensors => "sensors",
        _ => "other",
    }
}
