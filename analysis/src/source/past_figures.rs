//! Splits figures over the whole time before some point in a stream: a session's `past`, or the end of a chunk.

use gnntop_history::SECOND_NS;
use gnntop_wire::past::{PastEntry, PastTotals, Slice};
use gnntop_wire::{Anchor, Definition, Item, SessionInfo, StreamReader};

use crate::stream::Sink;

/// Bytes passed to a reader at a time.
const PIECE_LEN: usize = 256 * 1024;

/// The figures of one session.
#[derive(Debug, Default)]
pub(super) struct PastFigures {
    info: Option<SessionInfo>,
    definitions: Vec<Definition>,
    anchor: Option<Anchor>,
    /// Figures, durations and slow steps.
    figures: Vec<PastEntry>,
    /// Slices that are not finished.
    open: Vec<PastEntry>,
}

impl PastFigures {
    /// All sessions in these bytes; `None` if they are damaged, or lack the figures of one of them.
    pub(super) fn parse_all(bytes: &[u8]) -> Option<Vec<Self>> {
        let (mut all, mut is_damaged) = (Vec::<Self>::new(), false);
        each_item(bytes, |item| match item {
            Item::Segment(info) => all.push(Self { info: Some(info), ..Self::default() }),
            Item::Damage(_) | Item::Newer { .. } => is_damaged = true,
            item => {
                if all.is_empty() {
                    all.push(Self::default());
                }
                all.last_mut().into_iter().for_each(|past| is_damaged |= !past.push(&item));
            }
        });
        let is_whole = !is_damaged && !all.is_empty() && all.iter().all(|past| past.totals().is_some());
        is_whole.then_some(all)
    }

    /// Takes an item; `false` if it does not belong here.
    fn push(&mut self, item: &Item<'_>) -> bool {
        match item {
            Item::Definitions(definitions) => self.definitions.extend_from_slice(definitions),
            Item::Anchor(anchor) => self.anchor = Some(*anchor),
            Item::Past(entries) => {
                for past in entries {
                    if as_slice(past).is_some() { &mut self.open } else { &mut self.figures }.push(past.clone());
                }
            }
            Item::Block(..) | Item::End(_) => return false,
            _ => (),
        }
        true
    }

    /// Figures over the whole time.
    pub(super) fn totals(&self) -> Option<&PastTotals> {
        self.figures.iter().find_map(|past| if let PastEntry::Totals(whole) = past { Some(&**whole) } else { None })
    }

    /// The session's id; 0 if unknown.
    pub(super) fn session_id(&self) -> u128 {
        self.info.as_ref().map_or(0, |info| info.session_id)
    }

    /// Passes on the publisher, the definitions, and figures over the whole time: everything except the slices.
    pub(super) fn apply_figures_to(&mut self, sink: &mut dyn Sink) {
        self.info.take().into_iter().for_each(|info| sink.apply(Item::Segment(info)));
        sink.apply(Item::Definitions(std::mem::take(&mut self.definitions)));
        self.anchor.take().into_iter().for_each(|anchor| sink.apply(Item::Anchor(anchor)));
        sink.apply(Item::Past(std::mem::take(&mut self.figures)));
    }

    /// Passes on the unfinished slices, with seconds from that time on and minutes before it.
    pub(super) fn apply_open_to(&mut self, seconds_from_ns: u64, sink: &mut dyn Sink) {
        self.open.retain(|past| is_wanted(past, seconds_from_ns));
        sink.apply(Item::Past(std::mem::take(&mut self.open)));
    }
}

/// The slice in an entry.
pub(super) fn as_slice(past: &PastEntry) -> Option<&Slice> {
    if let PastEntry::Slice(slice) = past { Some(slice) } else { None }
}

/// Whether it is a slice of a second.
pub(super) fn is_second(slice: &Slice) -> bool {
    slice.to_ns.saturating_sub(slice.from_ns) <= SECOND_NS
}

/// Whether an entry is passed on if seconds replace minutes from then on.
pub(super) fn is_wanted(past: &PastEntry, seconds_from_ns: u64) -> bool {
    as_slice(past).is_none_or(|slice| is_second(slice) == (slice.from_ns >= seconds_from_ns))
}

/// Calls `each` with the items of a whole stream.
pub(super) fn each_item(bytes: &[u8], mut each: impl FnMut(Item<'_>)) {
    let mut reader = StreamReader::new();
    for piece in bytes.chunks(PIECE_LEN) {
        reader.fill(piece);
        while let Some(item) = reader.next() {
            each(item);
        }
    }
    reader.finish();
    while let Some(item) = reader.next() {
        each(item);
    }
}
