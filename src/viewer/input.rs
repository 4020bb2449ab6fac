//! Input from the terminal: events, which become actions of the app.

use termina::Event;
use termina::escape::osc::{ColorOrQuery, DynamicColorNumber, Osc};
use termina::event::{KeyCode, KeyEvent, KeyEventKind, Modifiers, MouseButton, MouseEvent, MouseEventKind};

use crate::app::keys::Key;
use crate::app::{Action, Background, Gesture};
use crate::ui::Spot;

/// The app's action for an event, given the spots that were drawn; `None` if it means nothing.
pub fn action(event: &Event, spots: &[Spot]) -> Option<Action> {
    match event {
        Event::Key(event) => key(event).map(Action::Key),
        Event::Mouse(event) => mouse(event, spots),
        Event::Osc(Osc::ChangeDynamicColors(DynamicColorNumber::TextBackgroundColor, colors)) => {
            colors.iter().find_map(background).map(Action::BackgroundDetected)
        }
        _ => None,
    }
}

/// The key that was pressed; `None` for releases and for keys that mean nothing here.
fn key(event: &KeyEvent) -> Option<Key> {
    if event.kind == KeyEventKind::Release {
        return None;
    }
    let ctrl = event.modifiers.contains(Modifiers::CONTROL);
    Some(match event.code {
        KeyCode::Char(c) if ctrl => Key::Ctrl(c.to_ascii_lowercase()),
        KeyCode::Char(c) if !event.modifiers.intersects(Modifiers::ALT | Modifiers::SUPER) => Key::Char(c),
        KeyCode::Enter => Key::Enter,
        KeyCode::Escape => Key::Esc,
        KeyCode::Backspace => Key::Backspace,
        KeyCode::BackTab => Key::BackTab,
        KeyCode::Tab if event.modifiers.contains(Modifiers::SHIFT) => Key::BackTab,
        KeyCode::Tab => Key::Tab,
        KeyCode::Left => Key::Left,
        KeyCode::Right => Key::Right,
        KeyCode::Up => Key::Up,
        KeyCode::Down => Key::Down,
        KeyCode::PageUp => Key::PageUp,
        KeyCode::PageDown => Key::PageDown,
        KeyCode::Home => Key::Home,
        KeyCode::End => Key::End,
        _ => return None,
    })
}

/// What the mouse did, and on what. Only the left button and the wheel mean anything.
fn mouse(event: &MouseEvent, spots: &[Spot]) -> Option<Action> {
    let gesture = match event.kind {
        MouseEventKind::Down(MouseButton::Left) => Gesture::Press,
        MouseEventKind::Drag(MouseButton::Left) => Gesture::Drag,
        MouseEventKind::ScrollUp => Gesture::Wheel { up: true },
        MouseEventKind::ScrollDown => Gesture::Wheel { up: false },
        _ => return None,
    };
    // What was drawn later is on top.
    let on = spots.iter().rev().find(|spot| spot.area.contains((event.column, event.row).into()));
    on.map(|spot| Action::Mouse { gesture, on: spot.target })
}

/// Whether a colour is dark, by its luma as ITU-R BT.601 has it.
fn background(color: &ColorOrQuery) -> Option<Background> {
    let ColorOrQuery::Color(color) = color else { return None };
    let luma = 299 * u32::from(color.red) + 587 * u32::from(color.green) + 114 * u32::from(color.blue);
    Some(if luma >= 128_000 { Background::Light } else { Background::Dark })
}

#[cfg(test)]
mod tests {
    use ratatui::layout::Rect;
    use termina::Parser;

    use super::*;
    use crate::app::{Target, View};

    fn actions(bytes: &str, spots: &[Spot]) -> Vec<Action> {
        let mut parser = Parser::default();
        parser.parse(bytes.as_bytes(), false);
        std::iter::from_fn(|| parser.pop()).filter_map(|event| action(&event, spots)).collect()
    }

    #[test]
    fn keys_keep_their_modifiers() {
        let keys = |bytes| actions(bytes, &[]);
        assert_eq!(keys("G\u{3}"), [Action::Key(Key::Char('G')), Action::Key(Key::Ctrl('c'))]);
        assert_eq!(keys("\u{1b}[Z\t"), [Action::Key(Key::BackTab), Action::Key(Key::Tab)]);
        assert_eq!(keys("\u{1b}q\u{1b}[15~"), [], "function keys, and what Alt is not split from");
        assert_eq!(keys("\u{1b}[5~\u{1b}[H\u{7f}"), [Key::PageUp, Key::Home, Key::Backspace].map(Action::Key));
    }

    #[test]
    fn mouse_targets_the_last_drawn_spots() {
        let below = Spot { area: Rect::new(0, 0, 80, 24), target: Target::View(View::Overview) };
        let above = Spot { area: Rect::new(10, 5, 1, 3), target: Target::Step(7) };
        let spots = [below, above];
        let mouse = |gesture, on| Action::Mouse { gesture, on };
        assert_eq!(actions("\u{1b}[<0;11;6M", &spots), [mouse(Gesture::Press, Target::Step(7))]);
        assert_eq!(actions("\u{1b}[<32;11;8M", &spots), [mouse(Gesture::Drag, Target::Step(7))]);
        assert_eq!(actions("\u{1b}[<64;1;1M", &spots), [mouse(Gesture::Wheel { up: true }, below.target)]);
        assert_eq!(actions("\u{1b}[<2;11;6M", &spots), [], "the right button");
        assert_eq!(actions("\u{1b}[<0;100;100M", &spots), [], "nothing lies there");
    }

    #[test]
    fn background_is_parsed_from_terminal_answer() {
        let seen = |answer| actions(answer, &[]);
        assert_eq!(seen("\u{1b}]11;rgb:ffff/ffff/dddd\u{1b}\\"), [Action::BackgroundDetected(Background::Light)]);
        assert_eq!(seen("\u{1b}]11;rgb:0000/2b2b/3636\u{7}"), [Action::BackgroundDetected(Background::Dark)]);
        assert_eq!(seen("\u{1b}]10;rgb:ffff/ffff/ffff\u{7}"), [], "the colour of text");
    }
}
