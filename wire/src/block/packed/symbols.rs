//! Predicts which event comes next: events tend to repeat their earlier order.

use super::coder::Coder;
use super::number::Number;

/// Most symbols of a block; a further one replaces the last.
pub(super) const MAX_SYMBOLS: usize = 1024;
/// Size of the table of what followed a pair of symbols.
const PLACES: usize = 1 << 11;

/// Bits of a kind.
pub(super) const KIND_BITS: u32 = 4;
/// Bits of a form.
pub(super) const FORM_BITS: u32 = 7;

/// What an event is, apart from its numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Symbol {
    /// One of the `KIND`s.
    pub(super) kind: u8,
    /// The form of this kind's numbers, in [`FORM_BITS`].
    pub(super) form: u8,
    /// The id of its name or signal.
    pub(super) id: u32,
}

/// A symbol and the state of its numbers.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Slot {
    pub(super) symbol: Symbol,
    /// Index of its first number.
    pub(super) columns: u32,
    /// Spans that began since this one did, including itself, at its last occurrence.
    pub(super) enclosed: u32,
}

/// The symbols of a block and their usual order.
#[derive(Debug)]
pub(super) struct Symbols {
    slots: Vec<Slot>,
    numbers: Vec<Number>,
    /// By the hash of the last two symbols: the symbol that followed them.
    followers: Box<[u16; PLACES]>,
    last: usize,
    place: usize,
    /// Distance from the expected symbol to the one that came instead.
    pub(super) hop: Number,
    /// The newest symbol. The next new one often has the same kind and form.
    newest: Symbol,
    /// By kind: ids of new symbols, which are usually consecutive.
    ids: [Number; 1 << KIND_BITS],
}

impl Default for Symbols {
    fn default() -> Self {
        let (slots, numbers, followers) = (Vec::new(), Vec::new(), Box::new([0; PLACES]));
        let (hop, newest, ids) = (Number::default(), Symbol::default(), Default::default());
        Self { slots, numbers, followers, last: 0, place: 0, hop, newest, ids }
    }
}

impl Symbols {
    pub(super) fn clear(&mut self) {
        self.slots.clear();
        self.numbers.clear();
        self.followers.fill(0);
        (self.last, self.place) = (0, 0);
        self.hop = Number::default();
        self.newest = Symbol::default();
        self.ids.fill(Number::default());
    }

    /// The slot of the expected next symbol.
    #[inline]
    pub(super) fn expected(&self) -> usize {
        usize::from(self.followers[self.place])
    }

    #[inline]
    pub(super) fn get(&self, slot: usize) -> Option<&Slot> {
        self.slots.get(slot)
    }

    /// The slot and its first `N` numbers.
    #[inline]
    pub(super) fn columns<const N: usize>(&mut self, slot: usize) -> Option<(&mut Slot, &mut [Number; N])> {
        let slot = self.slots.get_mut(slot)?;
        let numbers = self.numbers.get_mut(slot.columns as usize..)?.first_chunk_mut::<N>()?;
        Some((slot, numbers))
    }

    /// Writes or reads a symbol without a slot; `None` if its id is invalid.
    pub(super) fn new_symbol<C: Coder>(&mut self, coder: &mut C, symbol: Symbol) -> Option<Symbol> {
        let Symbol { kind, form, .. } = self.newest;
        let mut new = Symbol { kind, form, id: 0 };
        if !coder.flag((symbol.kind, symbol.form) == (kind, form)) {
            new.kind = coder.plain(u32::from(symbol.kind), KIND_BITS) as u8;
            new.form = coder.plain(u32::from(symbol.form), FORM_BITS) as u8;
        }
        let ids = self.ids.get_mut(usize::from(new.kind))?;
        let id = coder.number(ids, i64::from(symbol.id));
        ids.expected = id.wrapping_add(1);
        new.id = u32::try_from(id).ok()?;
        self.newest = new;
        Some(new)
    }

    /// Adds a slot for a symbol that has none, with this many numbers.
    pub(super) fn introduce(&mut self, symbol: Symbol, columns: usize) -> usize {
        if self.slots.len() < MAX_SYMBOLS {
            let slot = Slot { symbol, columns: self.numbers.len() as u32, enclosed: 1 };
            self.numbers.resize(self.numbers.len() + columns, Number::default());
            self.slots.push(slot);
        } else {
            let slot = &mut self.slots[MAX_SYMBOLS - 1];
            (slot.symbol, slot.enclosed) = (symbol, 1);
            self.numbers.truncate(slot.columns as usize);
            self.numbers.resize(slot.columns as usize + columns, Number::default());
        }
        self.slots.len() - 1
    }

    /// Records that this slot's symbol came.
    #[inline]
    pub(super) fn record_occurrence(&mut self, slot: usize) {
        self.followers[self.place] = slot as u16;
        self.place = (slot ^ self.last << 5) % PLACES;
        self.last = slot;
    }
}
