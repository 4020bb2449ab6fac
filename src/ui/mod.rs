//! The screen: draws the app, changes nothing, and says what it learned.
//!
//! ```text
//!  gnntop  pna  pid 4711 on thebox            live | epoch 3 | step 1,234 | 2m 05s    panel/header.rs
//!  4 spikes (3.1 %); backward-bound (52 %); data wait 12 %
//! ▌1 overview  2 steps  3 latency  4 memory  5 hardware  6 energy  7 tracks          panel/tabs.rs
//! ▌steps  1 step a column ──────────────────────── 23.4 steps/s | 3.0 k graphs/s      panel/steps.rs, chart/step_chart.rs
//!  60 ms┤                          ▲
//!  30 ms┤▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓
//!       │░░░▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒
//! ─phases  since the start ─── last ───── p50 ───── p90 ───── p99 ───── max ─ share   panel/phases.rs
//!  ░░ F  forward            17.1 ms   17.0 ms   18.2 ms   21.0 ms   40.3 ms   38 %
//! ─hardware ──────────────────────────────────────────────────────────────────────    panel/hardware.rs
//!  cpu      ▅▆▆▇▆  1.92 cores               machine  ▆▇▇▇▇  1.97 of 2 cores
//!  q quit  ? help  Space freeze  ← step  Enter detail            viewer 0.8 %  9 MiB  panel/footer.rs
//! ```
//!
//! Between header and footer is one of the views, each a file in `views/` with one draw function; the one above is
//! `views/overview.rs`. Below 30 columns or 6 rows a few words remain (`panel/tiny.rs`).
//!
//! Rooms, each of which knows only those below it: `screen.rs` puts all together; `views/` fill the screen; `panel/` are the
//! parts they are made of; `chart/` are bars, curves, lanes and their axes; `scene.rs`, `sheet.rs`, `theme.rs` and
//! `headings.rs` are what everything is drawn from and on. A drawing gives back where it put what the mouse can point at and
//! how far its lines go.

mod chart;
mod headings;
mod panel;
mod scene;
mod screen;
mod sheet;
pub mod theme;
mod views;

pub use screen::draw;
pub use sheet::{Drawn, Spot};
