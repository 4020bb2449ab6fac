//! What a device did, apart from what the host did.

use gnntop_wire::{DeviceSpan, NameId, Span, TrackId};

use super::contents::Store;
use super::feed::BlockState;
use super::ids::names::assign_slot;

impl Store {
    /// Adds what a device did, separate from what the host did; its boxes have their own track.
    pub(super) fn add_device_span(&mut self, state: &mut BlockState, track: TrackId, span: &DeviceSpan) {
        let slot = match self.names.route(span.name) {
            Some(route) if route.is_phase => {
                route.slot.or_else(|| Some(assign_slot(&mut self.names, &mut self.phases, span.name)))
            }
            _ => None,
        };
        let Some(device) = self.device.as_mut().filter(|device| device.track() == track) else {
            self.losses.events_not_kept += 1;
            return;
        };
        device.note_error(span.error_ns);
        if span.name == NameId::NONE {
            device.step(span, self.phases.slots());
            return;
        }
        slot.into_iter().for_each(|slot| device.phase(slot, span));
        state.spans += 1;
        let DeviceSpan { name, start_ns, end_ns, step, .. } = *span;
        let span = Span { name, start_ns, end_ns, step };
        if state.wants_spans {
            self.add_box(state, &span);
        }
    }
}
