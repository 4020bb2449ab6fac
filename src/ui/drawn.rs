//! What a drawing learned: where it put what the mouse can point at, and how far its lines continue.

use ratatui::layout::Rect;

use crate::app::{LineExtent, Target};

/// A part of the screen that means something to the mouse.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spot {
    /// Where it is.
    pub area: Rect,
    /// What it is.
    pub target: Target,
}

/// What a drawing learned.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Drawn {
    /// What the mouse can point at, in the order in which it was drawn: later items are on top.
    pub spots: Vec<Spot>,
    /// How far the view's lines go; `None` if it has none.
    pub extent: Option<LineExtent>,
}
