//! What the mouse does, and what it can point at: the screen knows where it drew what.

use super::view::{Panel, View};
use gnntop_analysis::store::PhaseSlot;

/// What the mouse did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Gesture {
    /// The button went down.
    Press,
    /// The mouse moved with the button down.
    Drag,
    /// The wheel turned.
    Wheel {
        /// Away from the person.
        up: bool,
    },
}

/// Something on the screen that the mouse can point at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// A view's place in the row of views.
    View(View),
    /// What fills the screen between header and footer, where nothing else is.
    Body,
    /// A panel of the overview.
    Panel(Panel),
    /// A step's bar, by the step's ordinal.
    Step(u64),
    /// A phase in the legend, by its slot in the store.
    Phase(PhaseSlot),
    /// A line of the view that is shown.
    Line(usize),
}
