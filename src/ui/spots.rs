//! What was drawn where, so that the mouse can point at it. A panel offers its spots while it draws; what is offered
//! later lies on top.

use std::cell::RefCell;

use ratatui::layout::Rect;

use crate::app::Target;

/// A part of the screen that means something to the mouse.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spot {
    /// Where it is.
    pub area: Rect,
    /// What it is.
    pub target: Target,
}

/// All of them, in the order in which they were drawn.
#[derive(Debug, Default)]
pub struct Spots(RefCell<Vec<Spot>>);

impl Spots {
    /// Notes that `target` is drawn in `area`.
    pub fn offer(&self, area: Rect, target: Target) {
        if !area.is_empty() {
            self.0.borrow_mut().push(Spot { area, target });
        }
    }

    /// Everything that was offered.
    pub fn into_vec(self) -> Vec<Spot> {
        self.0.into_inner()
    }
}
