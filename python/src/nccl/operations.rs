//! The operations in flight of one communicator: what NCCL reports about each, until its kernel has ended.
//!
//! NCCL reports that an operation starts when the host submits it, and that it stops right after that. When the GPU does it
//! is reported for its kernel, channel by channel, by a polling thread: an operation begins with its first channel and ends
//! with its last.

/// Most operations in flight; further ones are not timed, but counted.
const ROOM: usize = 256;
/// Operations without their own kernel, such as copies, are forgotten once this many later ones have begun.
const FORGOTTEN_AFTER: u64 = 64;

/// Operations by NCCL's names for them; the last one stands for all unknown ones.
const OPERATIONS: [(&str, &str); 13] = [
    ("AllReduce", "all-reduce"),
    ("AllGather", "all-gather"),
    ("ReduceScatter", "reduce-scatter"),
    ("Broadcast", "broadcast"),
    ("Reduce", "reduce"),
    ("Send", "send"),
    ("Recv", "receive"),
    ("SendRecv", "send and receive"),
    ("AlltoAll", "all-to-all"),
    ("AllToAll", "all-to-all"),
    ("Gather", "gather to one rank"),
    ("Scatter", "scatter from one rank"),
    ("", "other collective"),
];

/// Number of kinds of operations.
pub(super) const KINDS: usize = OPERATIONS.len();

/// The kind of the operation with this NCCL name.
pub(super) fn kind_from_name(function: &[u8]) -> usize {
    OPERATIONS.iter().position(|(name, _)| name.as_bytes() == function).unwrap_or(KINDS - 1)
}

/// gnntop's name for it.
pub(super) fn display_name(kind: usize) -> &'static str {
    OPERATIONS[kind.min(KINDS - 1)].1
}

/// Bytes of a value of this type; `None` if it is unknown.
pub(super) fn datatype_bytes(datatype: &[u8]) -> Option<u64> {
    match datatype.strip_prefix(b"nccl")? {
        b"Int8" | b"Uint8" | b"Float8e4m3" | b"Float8e5m2" => Some(1),
        b"Float16" | b"Bfloat16" => Some(2),
        b"Int32" | b"Uint32" | b"Float32" => Some(4),
        b"Int64" | b"Uint64" | b"Float64" => Some(8),
        _ => None,
    }
}

/// A handle of an operation: its slot, and which of the slot's uses it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Ticket {
    pub(super) place: u16,
    pub(super) number: u32,
}

/// The work of an operation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Work {
    /// Kind of operation, from [`kind_from_name`].
    pub(super) kind: usize,
    /// Bytes of this rank, if the data type is known.
    pub(super) bytes: Option<u64>,
    /// Channels of its kernel; 0 if not reported.
    pub(super) channels: u32,
}

/// A finished operation. Times are ticks.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct FinishedOperation {
    pub(super) work: Work,
    pub(super) begin: u64,
    pub(super) end: u64,
}

/// An operation in flight.
#[derive(Clone, Copy, Debug)]
struct Operation {
    work: Work,
    number: u32,
    /// Number of earlier operations of the communicator.
    order: u64,
    handed_over: u64,
    begun: u32,
    ended: u32,
    /// When its first channel was seen to have begun, and its last one to have ended.
    begin: u64,
    end: u64,
    /// The same by the GPU's clock, in nanoseconds; 0 if not reported.
    gpu_begin_ns: u64,
    gpu_end_ns: u64,
}

impl Operation {
    /// When it began and ended. Its end is detected within microseconds; its duration by the GPU's clock is the most exact.
    fn finish_times(&self, ns_per_tick: f64) -> FinishedOperation {
        let gpu = if self.gpu_begin_ns == 0 { 0 } else { self.gpu_end_ns.saturating_sub(self.gpu_begin_ns) };
        let most = self.end.saturating_sub(self.handed_over);
        let ticks = (gpu as f64 / ns_per_tick) as u64;
        let begin = if gpu > 0 && ticks <= most { self.end - ticks } else { self.begin };
        FinishedOperation { work: self.work, begin, end: self.end }
    }

    fn is_idle(&self) -> bool {
        self.begun > 0 && self.begun == self.ended
    }

    /// Whether all of its channels have ended.
    fn is_over(&self) -> bool {
        self.is_idle() && self.work.channels > 0 && self.ended >= self.work.channels
    }
}

/// See the [module](self).
pub(super) struct Operations {
    places: Vec<Option<Operation>>,
    numbers: u32,
    order: u64,
    ns_per_tick: f64,
    /// Number of operations for which there was no room.
    pub(super) untimed: u64,
}

impl Operations {
    pub(super) fn new(ns_per_tick: f64) -> Self {
        Self { places: vec![None; ROOM], numbers: 0, order: 0, ns_per_tick, untimed: 0 }
    }

    /// The host submits an operation; `None` if too many are in flight.
    pub(super) fn start(&mut self, work: Work, now: u64) -> Option<Ticket> {
        let Some(place) = self.places.iter().position(Option::is_none) else {
            self.untimed += 1;
            return None;
        };
        self.numbers = self.numbers.wrapping_add(1);
        self.order += 1;
        let (number, order) = (self.numbers, self.order);
        let operation = Operation {
            work,
            number,
            order,
            handed_over: now,
            begun: 0,
            ended: 0,
            begin: 0,
            end: 0,
            gpu_begin_ns: 0,
            gpu_end_ns: 0,
        };
        self.places[place] = Some(operation);
        Some(Ticket { place: place as u16, number })
    }

    fn get(&mut self, ticket: Ticket) -> Option<&mut Operation> {
        let operation = self.places.get_mut(usize::from(ticket.place))?.as_mut()?;
        (operation.number == ticket.number).then_some(operation)
    }

    /// A channel of its kernel has begun; returns whether the operation is known. Calls `done` with operations that this
    /// shows to be finished.
    pub(super) fn begin_channel(
        &mut self,
        ticket: Ticket,
        now: u64,
        gpu_ns: u64,
        done: impl FnMut(FinishedOperation),
    ) -> bool {
        let Some(operation) = self.get(ticket) else { return false };
        operation.begun += 1;
        if operation.begun == 1 {
            (operation.begin, operation.gpu_begin_ns) = (now, gpu_ns);
            let order = operation.order;
            self.settle_before(order, done);
        } else {
            operation.gpu_begin_ns = operation.gpu_begin_ns.min(gpu_ns);
        }
        true
    }

    /// Notes the GPU's clock at a channel's end.
    pub(super) fn channel_ended_at(&mut self, ticket: Ticket, gpu_ns: u64) {
        if let Some(operation) = self.get(ticket) {
            operation.gpu_end_ns = operation.gpu_end_ns.max(gpu_ns);
        }
    }

    /// A channel has ended; returns the operation if this was its last channel.
    pub(super) fn end_channel(&mut self, ticket: Ticket, now: u64) -> Option<FinishedOperation> {
        let ns_per_tick = self.ns_per_tick;
        let operation = self.get(ticket)?;
        operation.ended = (operation.ended + 1).min(operation.begun);
        operation.end = now;
        let is_over = operation.is_over();
        let done = operation.finish_times(ns_per_tick);
        is_over.then(|| {
            self.places[usize::from(ticket.place)] = None;
            done
        })
    }

    /// Operations run in order: one whose channels have all ended is finished when a later one begins, whatever number of
    /// channels it was said to have.
    fn settle_before(&mut self, order: u64, mut done: impl FnMut(FinishedOperation)) {
        for place in &mut self.places {
            let Some(operation) = place else { continue };
            if operation.order < order && operation.is_idle() {
                done(operation.finish_times(self.ns_per_tick));
                *place = None;
            } else if operation.begun == 0 && operation.order + FORGOTTEN_AFTER < order {
                self.untimed += 1;
                *place = None;
            }
        }
    }

    /// The communicator closes: operations whose channels have ended are finished.
    pub(super) fn finish(&mut self, done: impl FnMut(FinishedOperation)) {
        self.settle_before(u64::MAX, done);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WORK: Work = Work { kind: 0, bytes: Some(1024), channels: 2 };

    fn operations() -> Operations {
        Operations::new(1.0)
    }

    fn nothing(done: FinishedOperation) {
        panic!("{done:?}");
    }

    #[test]
    fn an_operation_lasts_from_its_first_channel_to_its_last() {
        let mut all = operations();
        let ticket = all.start(WORK, 10).unwrap();
        assert!(all.begin_channel(ticket, 100, 0, nothing) && all.begin_channel(ticket, 105, 0, nothing));
        assert_eq!(all.end_channel(ticket, 300), None);
        assert_eq!(all.end_channel(ticket, 310), Some(FinishedOperation { work: WORK, begin: 100, end: 310 }));
        assert!(!all.begin_channel(ticket, 400, 0, nothing), "it is over");
        assert_eq!(all.end_channel(ticket, 500), None);
    }

    #[test]
    fn gpu_clock_gives_duration_where_it_is_known() {
        let run = |begin_ns: u64, end_ns: u64| {
            let mut all = operations();
            let ticket = all.start(Work { channels: 1, ..WORK }, 10).unwrap();
            all.begin_channel(ticket, 100, begin_ns, nothing);
            all.channel_ended_at(ticket, end_ns);
            all.end_channel(ticket, 310).unwrap()
        };
        assert_eq!(run(7_000, 7_250).begin, 60, "its begin was seen late");
        for (begin_ns, end_ns) in [(0, 7_000), (7_000, 0), (7_000, 6_000), (7_000, 9_000)] {
            assert_eq!(run(begin_ns, end_ns).begin, 100, "{begin_ns} to {end_ns} cannot be");
        }
    }

    #[test]
    fn operation_without_channel_count_ends_at_the_next() {
        let mut all = operations();
        let unknown = Work { channels: 0, ..WORK };
        let (first, second) = (all.start(unknown, 1).unwrap(), all.start(unknown, 2).unwrap());
        all.begin_channel(first, 10, 0, nothing);
        assert_eq!(all.end_channel(first, 20), None);
        let mut done = Vec::new();
        all.begin_channel(second, 30, 0, |over| done.push(over));
        assert_eq!(all.end_channel(second, 40), None);
        all.finish(|over| done.push(over));
        let expected = [(10, 20), (30, 40)].map(|(begin, end)| FinishedOperation { work: unknown, begin, end });
        assert_eq!(done, expected);
    }

    #[test]
    fn operation_without_room_or_kernel_is_counted() {
        let mut all = operations();
        let tickets: Vec<Ticket> = (0..ROOM as u64 + 3).filter_map(|at| all.start(WORK, at)).collect();
        assert_eq!((tickets.len(), all.untimed), (ROOM, 3));
        all.begin_channel(tickets[ROOM - 1], 1_000, 0, nothing);
        assert_eq!(all.untimed, 3 + ROOM as u64 - 1 - FORGOTTEN_AFTER);
        assert!(all.start(WORK, 2_000).is_some());
    }

    #[test]
    fn names_of_operations_and_types_are_parsed() {
        assert_eq!(display_name(kind_from_name(b"AllReduce")), "all-reduce");
        assert_eq!(display_name(kind_from_name(b"Recv")), "receive");
        for unknown in [&b""[..], b"Invalid", b"allreduce"] {
            assert_eq!(display_name(kind_from_name(unknown)), "other collective");
        }
        assert_eq!(datatype_bytes(b"ncclBfloat16"), Some(2));
        for unknown in [&b""[..], b"nccl", b"Float32", b"Unknown"] {
            assert_eq!(datatype_bytes(unknown), None);
        }
    }
}
