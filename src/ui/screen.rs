//! The whole screen: header, views, the selected view, footer; or a few words if it is too small for them.

use gnntop_wire::text;
use ratatui::buffer::{Buffer, Cell};

use super::panel::{death, footer, header, tabs, tiny};
use super::scene::Scene;
use super::sheet::{Drawn, Sheet};
use super::theme::Theme;
use super::views;
use crate::app::{App, Target, View};

/// Screens with fewer rows have no row of views.
const TABS_FROM: u16 = 12;

/// Draws the whole screen into `buffer`, in the palette that the app has chosen, and says what it learned.
pub fn draw(app: &App, theme: &Theme, buffer: &mut Buffer) -> Drawn {
    let theme = &theme.with_palette(app.palette()).with_background(app.background());
    let scene = Scene::new(app, theme);
    let mut drawn = Drawn::default();
    let area = buffer.area;
    draw_screen(&mut Sheet::new(buffer, &mut drawn, area), &scene);
    disarm(buffer);
    if theme.ascii() {
        keep_to_ascii(buffer);
    }
    drawn
}

/// Takes out what could drive the terminal or turn the direction of a line, wherever it came from: a file's name, an error of
/// the system. Marks without a width hang on the character before them.
fn disarm(buffer: &mut Buffer) {
    let harmful = |cell: &&mut Cell| !cell.symbol().is_ascii() && cell.symbol().contains(text::is_harmful);
    for cell in buffer.content.iter_mut().filter(harmful) {
        let left: String = cell.symbol().chars().filter(|c| !text::is_harmful(*c)).collect();
        cell.set_symbol(if left.is_empty() { " " } else { &left });
    }
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
    if scene.app.view() == View::Runs {
        return draw_table(screen, scene);
    }
    if screen.width() < tiny::WIDTH || screen.height() < tiny::HEIGHT {
        return tiny::draw(screen, scene);
    }
    let frame = ScreenLayout::new(screen.height());
    let top = frame.header + frame.tabs;
    header::draw(&mut screen.part(0, 0, u16::MAX, frame.header), scene);
    if frame.tabs > 0 {
        tabs::draw(&mut screen.part(0, frame.header, u16::MAX, 1), scene);
    }
    let died = death::lines(scene, screen.width(), screen.height());
    death::draw(&mut screen.part(0, top, u16::MAX, died.len() as u16), &died, scene);
    let top = top + died.len() as u16;
    screen.offer(0, top, u16::MAX, u16::MAX, Target::Body);
    views::draw(&mut screen.rows(top, frame.footer), scene);
    let footer_row = screen.height() - frame.footer;
    footer::draw(&mut screen.rows(footer_row, 0), scene);
}

/// The table of runs has the screen for itself: there is no run that a header could be about.
fn draw_table(screen: &mut Sheet<'_>, scene: &Scene<'_>) {
    let footer = ScreenLayout::new(screen.height()).footer;
    views::draw(&mut screen.rows(0, footer), scene);
    let footer_row = screen.height() - footer;
    footer::draw(&mut screen.rows(footer_row, 0), scene);
}

/// Rows around the selected view.
struct ScreenLayout {
    header: u16,
    tabs: u16,
    footer: u16,
}

impl ScreenLayout {
    fn new(height: u16) -> Self {
        Self {
            header: if height >= 5 { 2 } else { 1 },
            tabs: u16::from(height >= TABS_FROM),
            footer: u16::from(height >= 8),
        }
    }
}

#[cfg(test)]
mod tests {
    use ratatui::layout::Rect;

    use super::*;

    #[test]
    fn bidirectional_marks_do_not_reach_the_terminal() {
        let mut buffer = Buffer::empty(Rect::new(0, 0, 8, 1));
        buffer.set_string(0, 0, "a\u{202e}b", ratatui::style::Style::new());
        buffer.content[4].set_symbol("\u{2066}");
        disarm(&mut buffer);
        assert_eq!(buffer.content.iter().map(Cell::symbol).collect::<String>(), "ab      ");
    }
}
