//! The screen: draws the app, changes nothing.
//!
//! ```text
//!  gnntop  pna  pid 4711 on thebox            live | epoch 3 | step 1,234 | 2m 05s    header.rs
//!  Backward-bound: 52 % of the time; data wait 12 %; 4 spikes; p99 2.9 x p50
//! ▌1 overview  2 steps  3 latency  4 memory  5 hardware  6 energy  7 tracks          tabs.rs
//! ▌steps  a column a step ──────────────────────── 23.4 steps/s | 3.0 k graphs/s      steps.rs (step_chart, scale, bars, epochs, flags, labels)
//!  60 ms┤                          ▲
//!  30 ms┤▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓
//!       │░░░▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒
//! ─phases  since the start ─── last ───── p50 ───── p90 ───── p99 ───── max ─ share   phases.rs
//!  ░░ F  forward            17.1 ms   17.0 ms   18.2 ms   21.0 ms   40.3 ms   38 %
//! ─hardware ──────────────────────────────────────────────────────────────────────    hardware.rs (strip_items, spark)
//!  cpu      ▅▆▆▇▆  1.92 cores               machine  ▆▇▇▇▇  1.97 of 2 cores
//!  q quit  ? help  Space freeze  ← step  Enter detail            viewer 0.8 %  9 MiB  footer.rs
//! ```
//!
//! Between header and footer stands one of ten views, each a file in `views/` with one draw function; the one above is
//! `views/overview.rs`. A selected step's detail (`step_detail.rs`), the program's output (`log.rs`) and the keys
//! (`help.rs`) take a view's place. Below 30 columns or 6 rows a few words remain (`tiny.rs`).
//!
//! Beside the drawing: `run.rs` is the main loop, `terminal.rs` and `signals.rs` hold the terminal, `theme.rs` has the
//! looks, `sheet.rs` keeps panels inside their edges.

mod bars;
mod braille;
mod curve;
mod epochs;
mod flags;
mod footer;
mod hardware;
mod header;
mod help;
mod histogram;
mod input;
mod keyboard;
mod labels;
mod lanes;
mod log;
mod own_cost;
mod percentiles;
mod phases;
mod plan;
mod readout;
mod run;
mod scale;
mod scene;
mod sheet;
mod signals;
mod spans;
mod spark;
mod spots;
mod step_chart;
mod step_detail;
mod steps;
mod strip_items;
mod strips;
mod tabs;
mod tail;
mod terminal;
pub mod theme;
mod time_axis;
mod tiny;
mod views;
mod watches;

pub use run::{Outcome, ScreenOptions, run_choice, run_comparison, run_screen};
pub use spots::Spot;

use ratatui::buffer::Buffer;

use crate::app::{App, Target};
use scene::{OpenPhase, Scene, Title};
use sheet::Sheet;
use theme::Theme;

/// Screens with fewer rows have no row of views.
const TABS_FROM: u16 = 12;

/// Draws the whole screen into `buffer`, in the palette that the app has chosen. Says what the mouse can point at, what
/// lies on top last.
pub fn draw(app: &App, theme: &Theme, buffer: &mut Buffer) -> Vec<Spot> {
    let theme = &theme.wearing(app.palette()).on(app.background());
    let scene = Scene::new(app, theme);
    draw_screen(&scene, buffer);
    if theme.ascii() {
        keep_to_ascii(buffer);
    }
    scene.spots.into_vec()
}

/// Replaces what names and units bring along.
fn keep_to_ascii(buffer: &mut Buffer) {
    for cell in buffer.content.iter_mut().filter(|cell| !cell.symbol().is_ascii()) {
        let plain = match cell.symbol() {
            "µ" => 'u',
            "°" => ' ',
            _ => '?',
        };
        cell.set_char(plain);
    }
}

fn draw_screen(scene: &Scene<'_>, buffer: &mut Buffer) {
    let mut screen = Sheet::new(buffer, buffer.area);
    if screen.width() < tiny::WIDTH || screen.height() < tiny::HEIGHT {
        return tiny::draw(&mut screen, scene);
    }
    let frame = Frame::of(screen.height());
    header::draw(&mut screen.part(0, 0, u16::MAX, frame.header), scene);
    if frame.tabs > 0 {
        tabs::draw(&mut screen.part(0, frame.header, u16::MAX, 1), scene);
    }
    let body = screen.area(0, frame.header + frame.tabs, u16::MAX, u16::MAX);
    scene.spots.offer(body, Target::Body);
    views::draw(&mut screen.rows(frame.header + frame.tabs, frame.footer), scene);
    let footer_row = screen.height() - frame.footer;
    footer::draw(&mut screen.rows(footer_row, 0), scene);
}

/// Rows of what stands around the views.
struct Frame {
    header: u16,
    tabs: u16,
    footer: u16,
}

impl Frame {
    fn of(height: u16) -> Self {
        Self {
            header: if height >= 5 { 2 } else { 1 },
            tabs: u16::from(height >= TABS_FROM),
            footer: u16::from(height >= 8),
        }
    }
}
