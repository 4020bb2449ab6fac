//! Which view fills the screen, which views are below it, their positions, and which panel has the focus.

use super::command::Command;
use super::view::{LineExtent, Panel, View};

/// Where a person is on the screen.
#[derive(Clone, Debug, Default)]
pub(super) struct Navigation {
    /// Views that were left for the one shown, which is the last. The overview is below all of them.
    views: Vec<View>,
    focus: Panel,
    /// Position of each view: the selected line or, if nothing can be selected, how far it is scrolled.
    lines: [usize; View::ALL.len()],
    /// Last line of each view, when it was last drawn.
    extent: Option<(View, LineExtent)>,
}

impl Navigation {
    /// What fills the screen.
    pub(super) fn view(&self) -> View {
        self.views.last().copied().unwrap_or_default()
    }

    /// The main view that is shown, or that is below the shown one. A main view has its own key.
    pub(super) fn main_view(&self) -> View {
        self.views.iter().rev().find(|view| view.key().is_some()).copied().unwrap_or_default()
    }

    /// Whether only the overview is below the view shown.
    pub(super) fn is_alone(&self) -> bool {
        self.views.len() < 2
    }

    /// Shows a view and closes all others.
    pub(super) fn show(&mut self, view: View) {
        self.views.clear();
        self.views.extend((view != View::Overview).then_some(view));
    }

    /// Shows a view on top of the one shown.
    pub(super) fn open(&mut self, view: View) {
        self.views.retain(|below| *below != view);
        self.views.push(view);
    }

    /// Shows a view on top of the one shown, from its first line on, or leaves it.
    pub(super) fn toggle(&mut self, view: View) {
        if self.view() == view {
            self.leave();
        } else {
            self.open(view);
        }
        self.set_line(view, 0);
    }

    /// Leaves the view that is shown for the one below it.
    pub(super) fn leave(&mut self) {
        self.views.pop();
    }

    /// The panel of the overview with the focus.
    pub(super) fn focus(&self) -> Panel {
        self.focus
    }

    pub(super) fn set_focus(&mut self, panel: Panel) {
        self.focus = panel;
    }

    /// Focuses the next panel, or the one before.
    pub(super) fn turn_focus(&mut self, forward: bool) {
        let at = Panel::ALL.iter().position(|panel| *panel == self.focus).unwrap_or(0);
        let by = if forward { 1 } else { Panel::ALL.len() - 1 };
        self.focus = Panel::ALL[(at + by) % Panel::ALL.len()];
    }

    /// Position of a view, which may be beyond its last line by now.
    pub(super) fn line(&self, view: View) -> usize {
        self.lines[view.index()]
    }

    pub(super) fn set_line(&mut self, view: View, line: usize) {
        self.lines[view.index()] = line;
    }

    /// Takes in how far the lines of the view that is shown go, now that it was drawn; nowhere without lines.
    pub(super) fn drawn(&mut self, extent: Option<LineExtent>) {
        self.extent = Some((self.view(), extent.unwrap_or_default()));
    }

    fn extent(&self) -> Option<LineExtent> {
        self.extent.filter(|(view, _)| *view == self.view()).map(|(_, extent)| extent)
    }

    /// The last line that can be selected in the view shown; unbounded if it was not drawn yet.
    pub(super) fn last_line(&self) -> usize {
        self.extent().map_or(usize::MAX, |extent| extent.last)
    }

    /// Where the text about the selected line is after a page more, or less, from `at` on.
    pub(super) fn turn_text(&self, at: usize, down: bool) -> usize {
        let (last, page) = self.extent().map_or((0, 1), |extent| extent.text);
        let at = at.min(last);
        if down { (at + page).min(last) } else { at.saturating_sub(page) }
    }

    /// Whether a command scrolls down, and by how many lines; `None` if it does not scroll.
    pub(super) fn scrolling(&self, command: Command) -> Option<(bool, usize)> {
        Some(match command {
            Command::Scroll { lines } => (lines > 0, lines.unsigned_abs() as usize),
            Command::ScrollPage { down } => (down, self.extent().map_or(1, |extent| extent.page)),
            Command::ScrollEnd { bottom } => (bottom, usize::MAX),
            _ => return None,
        })
    }

    /// Moves the view that is shown by lines.
    pub(super) fn scroll(&mut self, down: bool, lines: usize) {
        let (view, last) = (self.view(), self.last_line());
        let at = self.line(view).min(last);
        self.set_line(view, if down { at.saturating_add(lines).min(last) } else { at.saturating_sub(lines) });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_end_where_the_drawing_ended() {
        let mut navigation = Navigation::default();
        navigation.open(View::Memory);
        navigation.drawn(Some(LineExtent { last: 7, page: 5, ..LineExtent::default() }));
        navigation.scroll(true, usize::MAX);
        assert_eq!(navigation.line(View::Memory), 7);
        navigation.scroll(false, 1);
        assert_eq!(navigation.line(View::Memory), 6, "the next press is seen");
        assert_eq!(navigation.scrolling(Command::ScrollPage { down: true }), Some((true, 5)));
    }

    #[test]
    fn extent_of_one_view_does_not_apply_to_another() {
        let mut navigation = Navigation::default();
        navigation.open(View::Memory);
        navigation.drawn(Some(LineExtent { last: 0, page: 1, ..LineExtent::default() }));
        navigation.open(View::Help);
        navigation.scroll(true, 3);
        assert_eq!(navigation.line(View::Help), 3);
    }
}
