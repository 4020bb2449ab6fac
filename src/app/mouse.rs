//! What the mouse does with what it points at.

use super::action::Effect;
use super::command::Command;
use super::input::{Gesture, Key, Target};
use super::keymap::KeyMap;
use super::situation::When;
use super::state::App;
use super::view::{LineKind, Panel, View};

/// Lines that one turn of the wheel scrolls.
const WHEEL_LINES: i32 = 3;

impl App {
    /// Does what the mouse asks for.
    pub(super) fn handle_gesture(&mut self, gesture: Gesture, on: Target) -> Option<Effect> {
        self.dirty = true;
        match (gesture, on) {
            (Gesture::Press, on) => return self.press_on(on),
            (Gesture::Drag, Target::Step(to)) => self.axes.drag_to(to, self.run.store().steps()),
            (Gesture::Drag, _) => (),
            (Gesture::Wheel { up }, on) => return self.turn_wheel(up, on),
        }
        None
    }

    fn press_on(&mut self, on: Target) -> Option<Effect> {
        self.axes.forget_press();
        match on {
            Target::View(view) if !self.sessions.has_nothing_open() => self.navigation.show(view),
            Target::Panel(panel) => self.navigation.set_focus(panel),
            Target::Line(line) => return self.press_line(line),
            Target::Phase(slot) => {
                self.navigation.set_focus(Panel::Phases);
                self.presentation.toggle_highlight(slot);
            }
            Target::Step(ordinal) => self.press_step(ordinal),
            Target::Body | Target::View(_) => (),
        }
        None
    }

    /// Selects a line; opens the session that was selected already.
    fn press_line(&mut self, line: usize) -> Option<Effect> {
        let view = self.view();
        match view.lines() {
            LineKind::Sessions | LineKind::Runs if self.line(view) == line => return self.open_selected(),
            LineKind::Ranks => self.select_rank(line),
            _ => {
                self.navigation.set_line(view, line);
                self.on_line_change();
            }
        }
        None
    }

    /// Selects a step; shows the one that was selected already.
    fn press_step(&mut self, ordinal: u64) {
        self.navigation.set_focus(Panel::Steps);
        if self.axes.press(ordinal, self.run.store().steps()) {
            self.navigation.toggle(View::Step);
        }
    }

    /// Zooms if there is an axis, else scrolls.
    fn turn_wheel(&mut self, up: bool, on: Target) -> Option<Effect> {
        let situation = self.situation();
        let has_lines = situation.allows(When::Lines);
        let is_list = matches!(on, Target::Line(_) | Target::Phase(_) | Target::Panel(Panel::Phases));
        let zoom = KeyMap::default().command(Key::Char(if up { '+' } else { '-' }), &situation);
        match zoom {
            Some(zoom) if !(is_list && has_lines) => self.execute(zoom),
            _ if has_lines => self.execute(Command::Scroll { lines: if up { -WHEEL_LINES } else { WHEEL_LINES } }),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::app::{Action, update};
    use gnntop_analysis::source::{SourceState, Status};
    use gnntop_fixtures::{TrainingRun, each_item};

    fn app() -> App {
        let mut app = App::new(false);
        each_item(&TrainingRun { steps: 100, ..TrainingRun::default() }.bytes(), |item| app.run.apply(item));
        update(&mut app, Action::Resized { width: 80, height: 24 });
        let status = Status { state: SourceState::Running, live: true, ..Status::default() };
        update(&mut app, Action::Polled { status, changed: true });
        app
    }

    fn point(app: &mut App, gesture: Gesture, on: Target) {
        assert_eq!(update(app, Action::Mouse { gesture, on }), None);
    }

    fn press(app: &mut App, on: Target) {
        point(app, Gesture::Press, on);
    }

    #[test]
    fn press_shows_view_focuses_panel_and_selects_step() {
        let mut app = app();
        press(&mut app, Target::Panel(Panel::Hardware));
        assert_eq!(app.focus(), Panel::Hardware);
        press(&mut app, Target::View(View::Tracks));
        assert_eq!(app.view(), View::Tracks);
        press(&mut app, Target::View(View::Overview));
        press(&mut app, Target::Step(95));
        assert_eq!((app.window().cursor(), app.focus()), (Some(95), Panel::Steps));
        press(&mut app, Target::Step(95));
        assert_eq!(app.view(), View::Step, "a second press shows it in full");
        press(&mut app, Target::Body);
        assert_eq!(app.window().cursor(), Some(95), "nothing lies there");
    }

    #[test]
    fn a_drag_selects_a_range_either_way() {
        let mut app = app();
        press(&mut app, Target::Step(80));
        point(&mut app, Gesture::Drag, Target::Step(90));
        assert_eq!(app.window().range(), Some(80..91));
        point(&mut app, Gesture::Drag, Target::Step(70));
        assert_eq!(app.window().range(), Some(70..81));
        point(&mut app, Gesture::Drag, Target::Body);
        assert_eq!(app.window().range(), Some(70..81), "outside the bars it stays");
        press(&mut app, Target::Step(75));
        assert_eq!((app.window().range(), app.view()), (None, View::Overview), "a press begins anew");
        press(&mut app, Target::Body);
        point(&mut app, Gesture::Drag, Target::Step(90));
        assert_eq!(app.window().range(), None, "what began elsewhere selects nothing");
    }

    #[test]
    fn press_on_legend_toggles_highlight() {
        let mut app = app();
        let slots: Vec<_> = app.run.store().phases().iter().map(|phase| phase.slot).collect();
        press(&mut app, Target::Phase(slots[0]));
        press(&mut app, Target::Phase(slots[1]));
        assert_eq!(app.highlight(), Some(slots[1]));
        press(&mut app, Target::Phase(slots[1]));
        assert_eq!(app.highlight(), None);
        press(&mut app, Target::Phase(slots[0]));
        update(&mut app, Action::Key(Key::Esc));
        assert_eq!(app.highlight(), None);
    }

    #[test]
    fn the_wheel_zooms_bars_and_scrolls_lists() {
        let mut app = app();
        let wheel = |app: &mut App, up, on| point(app, Gesture::Wheel { up }, on);
        wheel(&mut app, false, Target::Panel(Panel::Steps));
        let width = app.axes.columns();
        assert_eq!(app.window().per_column(app.run.store().steps(), width), 2);
        wheel(&mut app, true, Target::Step(99));
        assert_eq!(app.window().per_column(app.run.store().steps(), width), 1);
        press(&mut app, Target::View(View::Tracks));
        update(&mut app, Action::Key(Key::Char('?')));
        wheel(&mut app, false, Target::Body);
        assert_eq!(app.line(View::Help), 3);
        wheel(&mut app, true, Target::Body);
        assert_eq!(app.line(View::Help), 0);
    }
}
