//! Copies to a device while it computes: a ring of page-locked buffers, each with its place on the device. While the
//! device computes with one, the next is filled and sent.
//!
//! Three things wait for each other. A buffer is written again only after its contents were copied; its place on the
//! device is written again only after all computing with it has ended; and a copy is used only after it has arrived.
//! The host waits for the first and the last, the copies wait for the second.

use candle_core::{Result, bail};

/// What copies.
pub(crate) trait CopyEngine {
    /// Page-locked memory of the host.
    type Host;
    /// Memory of the device.
    type Device;
    /// A point in the order of copies, or of computing.
    type Event;

    /// Memory on both sides for this many values. Copies may write it from then on.
    fn allocate(&self, values: usize) -> Result<(Self::Host, Self::Device)>;

    /// The host's side, to be written.
    fn values<'a>(&self, host: &'a mut Self::Host) -> Result<&'a mut [f32]>;

    /// Submits a copy of the first `values`, after all copies before it; the event marks its end.
    fn copy(&self, host: &Self::Host, device: &mut Self::Device, values: usize) -> Result<Self::Event>;

    /// The end of all computing submitted so far.
    fn computed(&self) -> Result<Self::Event>;

    /// Makes copies submitted from now on wait.
    fn copies_wait(&self, event: &Self::Event) -> Result<()>;

    /// Waits.
    fn host_waits(&self, event: &Self::Event) -> Result<()>;
}

/// A ring of buffers.
pub(crate) struct Ring<E: CopyEngine> {
    engine: E,
    slots: Vec<Slot<E>>,
    /// Buffers filled and taken since the beginning.
    filled: usize,
    taken: usize,
}

struct Slot<E: CopyEngine> {
    memory: Option<(E::Host, E::Device)>,
    capacity: usize,
    values: usize,
    /// End of the last copy from here.
    copied: Option<E::Event>,
    /// End of the computing with it.
    used: Option<E::Event>,
}

impl<E: CopyEngine> Ring<E> {
    /// A ring of this many buffers, at least 2, which take memory when they are first filled.
    pub(crate) fn new(engine: E, buffers: usize) -> Self {
        let slot = || Slot { memory: None, capacity: 0, values: 0, copied: None, used: None };
        Self { engine, slots: (0..buffers.max(2)).map(|_| slot()).collect(), filled: 0, taken: 0 }
    }

    /// Has `write` fill the next buffer with this many values, and submits their copy.
    ///
    /// # Errors
    /// All buffers are filled already, there is not enough memory, or the device refuses.
    pub(crate) fn fill(&mut self, values: usize, write: impl FnOnce(&mut [f32])) -> Result<()> {
        // One buffer is in use, or was taken last.
        if self.filled - self.taken + 1 > self.slots.len() - usize::from(self.taken > 0) {
            bail!("all {} buffers are filled; take one first", self.slots.len());
        }
        let index = self.filled % self.slots.len();
        let slot = &mut self.slots[index];
        if let Some(copied) = slot.copied.take() {
            self.engine.host_waits(&copied)?;
        }
        if slot.capacity < values || slot.memory.is_none() {
            // Some room, so that slightly different batches do not each take new memory.
            let capacity = values + values / 4;
            slot.memory = None;
            slot.memory = Some(self.engine.allocate(capacity)?);
            (slot.capacity, slot.used) = (capacity, None);
        }
        let Some((host, device)) = &mut slot.memory else { bail!("a buffer has no memory") };
        write(&mut self.engine.values(host)?[..values]);
        if let Some(used) = slot.used.take() {
            self.engine.copies_wait(&used)?;
        }
        slot.copied = Some(self.engine.copy(host, device, values)?);
        slot.values = values;
        self.filled += 1;
        Ok(())
    }

    /// Whether a filled buffer can be taken.
    pub(crate) fn is_filled(&self) -> bool {
        self.filled > self.taken
    }

    /// Waits until the oldest filled buffer has arrived, and returns its place on the device and its number of values.
    /// The one taken before is returned to the ring: computing with it must have been submitted.
    ///
    /// # Errors
    /// No buffer is filled, or the device refuses.
    pub(crate) fn take(&mut self) -> Result<(&E::Device, usize)> {
        if !self.is_filled() {
            bail!("no buffer is filled");
        }
        let count = self.slots.len();
        if let Some(before) = self.taken.checked_sub(1) {
            self.slots[before % count].used = Some(self.engine.computed()?);
        }
        let slot = &mut self.slots[self.taken % count];
        self.taken += 1;
        if let Some(copied) = slot.copied.take() {
            self.engine.host_waits(&copied)?;
        }
        match &slot.memory {
            Some((_, device)) => Ok((device, slot.values)),
            None => bail!("a buffer has no memory"),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::collections::VecDeque;
    use std::rc::Rc;

    use super::*;

    /// Copies and computing as two queues, worked off only when the host waits for them: the latest possible moment for
    /// a device. Places on the device are numbered.
    #[derive(Clone, Default)]
    struct Simulated(Rc<RefCell<State>>);

    #[derive(Default)]
    struct State {
        copies: VecDeque<Work>,
        computing: VecDeque<Work>,
        done: Vec<bool>,
        places: Vec<Rc<RefCell<Vec<f32>>>>,
        /// What computing read, in its order.
        read: Vec<Vec<f32>>,
        host_waits: usize,
    }

    enum Work {
        Copy { from: Rc<RefCell<Vec<f32>>>, to: Rc<RefCell<Vec<f32>>>, values: usize },
        Read { from: Rc<RefCell<Vec<f32>>>, values: usize },
        Reach(usize),
        WaitFor(usize),
    }

    impl State {
        fn event(&mut self) -> usize {
            self.done.push(false);
            self.done.len() - 1
        }

        /// Works off a queue up to an event of it.
        fn reach(&mut self, event: usize) {
            while !self.done[event] {
                let in_copies = self.copies.iter().any(|work| matches!(work, Work::Reach(other) if *other == event));
                let work = if in_copies { self.copies.pop_front() } else { self.computing.pop_front() };
                match work.expect("an event that nothing reaches") {
                    Work::Copy { from, to, values } => {
                        to.borrow_mut()[..values].copy_from_slice(&from.borrow()[..values])
                    }
                    Work::Read { from, values } => self.read.push(from.borrow()[..values].to_vec()),
                    Work::Reach(other) => self.done[other] = true,
                    Work::WaitFor(other) => self.reach(other),
                }
            }
        }
    }

    struct HostMemory {
        memory: Rc<RefCell<Vec<f32>>>,
        /// What the ring writes; page-locked memory from the next copy on.
        written: Vec<f32>,
    }

    impl CopyEngine for Simulated {
        type Host = HostMemory;
        type Device = Rc<RefCell<Vec<f32>>>;
        type Event = usize;

        fn allocate(&self, values: usize) -> Result<(HostMemory, Self::Device)> {
            let place = Rc::new(RefCell::new(vec![f32::NAN; values]));
            self.0.borrow_mut().places.push(Rc::clone(&place));
            let memory = Rc::new(RefCell::new(vec![0.0; values]));
            Ok((HostMemory { memory, written: vec![0.0; values] }, place))
        }

        fn values<'a>(&self, host: &'a mut HostMemory) -> Result<&'a mut [f32]> {
            Ok(&mut host.written)
        }

        fn copy(&self, host: &HostMemory, device: &mut Self::Device, values: usize) -> Result<usize> {
            // A pending copy reads what is there when it runs.
            host.memory.borrow_mut().clone_from(&host.written);
            let mut state = self.0.borrow_mut();
            state.copies.push_back(Work::Copy { from: Rc::clone(&host.memory), to: Rc::clone(device), values });
            let event = state.event();
            state.copies.push_back(Work::Reach(event));
            Ok(event)
        }

        fn computed(&self) -> Result<usize> {
            let mut state = self.0.borrow_mut();
            let event = state.event();
            state.computing.push_back(Work::Reach(event));
            Ok(event)
        }

        fn copies_wait(&self, event: &usize) -> Result<()> {
            self.0.borrow_mut().copies.push_back(Work::WaitFor(*event));
            Ok(())
        }

        fn host_waits(&self, event: &usize) -> Result<()> {
            let mut state = self.0.borrow_mut();
            state.host_waits += 1;
            state.reach(*event);
            Ok(())
        }
    }

    impl Simulated {
        /// Asks the device to read what it was given.
        fn compute(&self, (place, values): (&Rc<RefCell<Vec<f32>>>, usize)) {
            self.0.borrow_mut().computing.push_back(Work::Read { from: Rc::clone(place), values });
        }

        fn finish(&self) {
            let end = self.computed().unwrap();
            self.host_waits(&end).unwrap();
        }
    }

    fn batch(number: usize) -> Vec<f32> {
        (0..3 + number % 5).map(|index| (number * 10 + index) as f32).collect()
    }

    fn fill(ring: &mut Ring<Simulated>, number: usize) -> Result<()> {
        let values = batch(number);
        ring.fill(values.len(), |out| out.copy_from_slice(&values))
    }

    #[test]
    fn computing_reads_every_batch_as_it_was_filled_however_late_the_device_is() {
        for buffers in [2, 3] {
            let engine = Simulated::default();
            let mut ring = Ring::new(engine.clone(), buffers);
            fill(&mut ring, 0).unwrap();
            for number in 0..20 {
                engine.compute(ring.take().unwrap());
                fill(&mut ring, number + 1).unwrap();
            }
            engine.finish();
            let read = engine.0.borrow().read.clone();
            assert_eq!(read, (0..20).map(batch).collect::<Vec<_>>(), "{buffers} buffers");
        }
    }

    #[test]
    fn the_next_copy_is_asked_for_while_the_device_computes() {
        let engine = Simulated::default();
        let mut ring = Ring::new(engine.clone(), 2);
        fill(&mut ring, 0).unwrap();
        engine.compute(ring.take().unwrap());
        let waits = engine.0.borrow().host_waits;
        fill(&mut ring, 1).unwrap();
        let state = engine.0.borrow();
        // No one waited, the device has not read the first yet, and the second is being copied.
        assert_eq!((state.host_waits, state.read.len(), state.copies.len()), (waits, 0, 2));
    }

    #[test]
    fn a_ring_refuses_more_than_it_holds_and_less_than_it_has() {
        let mut ring = Ring::new(Simulated::default(), 2);
        assert!(!ring.is_filled() && ring.take().is_err());
        fill(&mut ring, 0).unwrap();
        fill(&mut ring, 1).unwrap();
        assert!(fill(&mut ring, 2).is_err());
        ring.take().unwrap();
        // One is in use and one waits; there are no others.
        assert!(fill(&mut ring, 2).is_err());
        ring.take().unwrap();
        fill(&mut ring, 2).unwrap();
        assert!(ring.is_filled());
    }

    #[test]
    fn memory_is_taken_again_only_for_larger_batches() {
        let engine = Simulated::default();
        let mut ring = Ring::new(engine.clone(), 2);
        for values in [8, 8, 9, 10, 10, 4, 40] {
            ring.fill(values, |out| out.fill(1.0)).unwrap();
            assert_eq!(ring.take().unwrap().1, values);
        }
        assert_eq!(engine.0.borrow().places.len(), 3);
    }
}
