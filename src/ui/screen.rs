//! The whole screen: header, views, what fills it, footer; or a few words where it is too small for them.

use ratatui::buffer::Buffer;

use super::drawn::Drawn;
use super::panel::{footer, header, tabs, tiny};
use super::scene::Scene;
use super::sheet::Sheet;
use super::theme::Theme;
use super::views;
use crate::app::{App, Target};

/// Screens with fewer rows have no row of views.
const TABS_FROM: u16 = 12;

/// Draws the whole screen into `buffer`, in the palette that the app has chosen, and says what it learned.
pub fn draw(app: &App, theme: &Theme, buffer: &mut Buffer) -> Drawn {
    let theme = &theme.wearing(app.palette()).on(app.background());
    let scene = Scene::new(app, theme);
    let mut drawn = Drawn::default();
    let area = buffer.area;
    draw_screen(&mut Sheet::new(buffer, &mut drawn, area), &scene);
    if theme.ascii() {
        keep_to_ascii(buffer);
    }
    drawn
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

fn draw_screen(screen: &mut Sheet<'_>, scene: &Scene<'_>) {
    if screen.width() < tiny::WIDTH || screen.height() < tiny::HEIGHT {
        return tiny::draw(screen, scene);
    }
    let frame = Frame::of(screen.height());
    let top = frame.header + frame.tabs;
    header::draw(&mut screen.part(0, 0, u16::MAX, frame.header), scene);
    if frame.tabs > 0 {
        tabs::draw(&mut screen.part(0, frame.header, u16::MAX, 1), scene);
    }
    screen.offer(0, top, u16::MAX, u16::MAX, Target::Body);
    views::draw(&mut screen.rows(top, frame.footer), scene);
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
