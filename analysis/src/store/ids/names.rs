//! The meaning of a session's name ids, and where each name's figures are kept. Every table is bounded.

use gnntop_wire::{NameId, NameKind};

use super::phases::{PhaseSlot, Phases};

/// Most bytes of text of all names together.
const MAX_TEXT_BYTES: usize = 16 << 20;

/// Where the spans of a name go. It is looked up for every span, so it is small and in a dense table.
#[derive(Clone, Copy, Debug)]
pub(in crate::store) struct Route {
    /// Index in the span statistics, or [`Route::UNASSIGNED`].
    pub statistics: u32,
    /// The phase's slot, once a span of this name was a phase.
    pub slot: Option<PhaseSlot>,
    pub is_phase: bool,
}

impl Route {
    pub(in crate::store) const UNASSIGNED: u32 = u32::MAX;
    const NEW: Self = Self { statistics: Self::UNASSIGNED, slot: None, is_phase: false };
}

/// The names of a session by id.
#[derive(Clone, Debug, Default)]
pub(in crate::store) struct NameTable {
    texts: Vec<Option<(NameKind, Box<str>)>>,
    routes: Vec<Route>,
    text_bytes: usize,
    capacity: usize,
}

impl NameTable {
    pub(in crate::store) fn new(capacity: usize) -> Self {
        Self { capacity, ..Self::default() }
    }

    /// Most names that it can hold.
    pub(in crate::store) fn capacity(&self) -> usize {
        self.capacity
    }

    /// All defined names: id, kind and text.
    pub(in crate::store) fn all(&self) -> impl Iterator<Item = (u32, NameKind, &str)> {
        let texts = (0..).zip(&self.texts);
        texts.filter_map(|(id, text)| text.as_ref().map(|(kind, text)| (id, *kind, &**text)))
    }

    /// Defines a name; `false` if there is no room for it.
    pub(in crate::store) fn define(&mut self, id: NameId, kind: NameKind, text: String) -> bool {
        let Some(index) = self.reserve(id) else { return false };
        let before = self.texts[index].as_ref().map_or(0, |(_, text)| text.len());
        if self.text_bytes - before + text.len() > MAX_TEXT_BYTES {
            return false;
        }
        self.text_bytes = self.text_bytes - before + text.len();
        self.texts[index] = Some((kind, text.into_boxed_str()));
        self.routes[index].is_phase = kind == NameKind::Phase;
        true
    }

    /// Makes room for an id; `None` if it is beyond the limit.
    fn reserve(&mut self, id: NameId) -> Option<usize> {
        let index = id.0 as usize;
        if index >= self.capacity {
            return None;
        }
        if index >= self.routes.len() {
            self.routes.resize(index + 1, Route::NEW);
            self.texts.resize(index + 1, None);
        }
        Some(index)
    }

    /// Takes the places of names' statistics from names that another store has for the same stream.
    pub(in crate::store) fn take_statistics_from(&mut self, other: &Self) {
        for (own, route) in self.routes.iter_mut().zip(&other.routes) {
            own.statistics = route.statistics;
        }
    }

    /// The text of a name; `None` if it was never defined or there was no room.
    pub(in crate::store) fn text(&self, id: NameId) -> Option<&str> {
        self.texts.get(id.0 as usize)?.as_ref().map(|(_, text)| &**text)
    }

    pub(in crate::store) fn kind(&self, id: NameId) -> Option<NameKind> {
        self.texts.get(id.0 as usize)?.as_ref().map(|(kind, _)| *kind)
    }

    #[inline]
    pub(in crate::store) fn route(&self, id: NameId) -> Option<Route> {
        self.routes.get(id.0 as usize).copied()
    }

    /// The route of a name, mutably, even if it is not defined yet. `None` beyond the limit.
    pub(in crate::store) fn route_mut(&mut self, id: NameId) -> Option<&mut Route> {
        let index = self.reserve(id)?;
        self.routes.get_mut(index)
    }
}

/// Assigns a name its phase.
#[cold]
pub(in crate::store) fn assign_slot(names: &mut NameTable, phases: &mut Phases, name: NameId) -> PhaseSlot {
    let slot = phases.slot(names.text(name).unwrap_or_default());
    if let Some(route) = names.route_mut(name) {
        route.slot = Some(slot);
    }
    slot
}
