//! Messages along edges on a device: their sums and extrema over the edges of each node, and one row for each edge. The
//! same three kernels as in [`kernels`](crate::kernels), see there.

use std::ops::Range;

use bytemuck::NoUninit;
use candle_core::{DType, Device, Result, Tensor, bail};

use super::edges::{Edges, Walk, list};
use super::kernel::{Address, Grid, Kernel, Module, wide};
use super::machine::{Memory, View, launch};
use super::work::{WorkArguments, grid_of, pack_for, work};
use gnntop_data::graph::{Columns, Direction, EdgeOp, Endpoint, Extreme};

/// Rows, and whose they are.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Operand<'a> {
    pub(crate) rows: View<'a>,
    pub(crate) at: Endpoint,
}

/// The messages of all edges, as [`kernels::Messages`](crate::kernels::Messages).
#[derive(Debug, Clone, Copy)]
pub(crate) struct Messages<'a> {
    pub(crate) op: EdgeOp,
    pub(crate) columns: Columns,
    pub(crate) lhs: Operand<'a>,
    /// Where `op` reads it.
    pub(crate) rhs: Option<Operand<'a>>,
    /// Whether `rhs` has one value for all columns of a head.
    pub(crate) per_head: bool,
    /// A factor of each message, in the type of the sums: of targets or of edges.
    pub(crate) scale: Option<Operand<'a>>,
    /// The edges that hold an extremum, `[targets, columns]`. Then only what these edges carry counts, and `lhs` is of
    /// the targets.
    pub(crate) holders: Option<View<'a>>,
}

impl<'a> Messages<'a> {
    /// Messages that are the rows of one operand, `[rows, total]`.
    pub(crate) fn copies(total: usize, lhs: Operand<'a>) -> Self {
        let columns = Columns::flat(total);
        Self { op: EdgeOp::CopyLhs, columns, lhs, rhs: None, per_head: false, scale: None, holders: None }
    }

    fn dtype(&self) -> DType {
        self.lhs.rows.dtype()
    }
}

/// Edges in the order in which a kernel visits them.
#[derive(Clone, Copy)]
pub(super) struct Directed<'a> {
    pub(super) device: &'a Device,
    pub(super) memory: &'a Tensor,
    pub(super) walk: &'a Walk,
    pub(super) direction: Direction,
    /// The target of each edge, if edges are visited one by one and not node by node.
    pub(super) targets: Option<&'a Range<usize>>,
}

impl<'a> Directed<'a> {
    pub(super) fn new(edges: &'a Edges, direction: Direction) -> Self {
        let walk = match direction {
            Direction::Incoming => &edges.incoming,
            Direction::Outgoing => &edges.outgoing,
        };
        Self { device: &edges.device, memory: edges.memory(), walk, direction, targets: None }
    }

    /// The end of the edges by which they are listed.
    fn own(self) -> Endpoint {
        if self.direction == Direction::Incoming { Endpoint::Destination } else { Endpoint::Source }
    }

    /// How the row of an operand is found from a position in the list of a node.
    fn found(self, at: Endpoint) -> Result<(At, Address)> {
        let in_list = |range| Ok((At::List, list(self.memory, range)?));
        match at {
            Endpoint::Edge => self.walk.number.as_ref().map_or(Ok((At::Position, Address::NONE)), in_list),
            _ if at == self.own() => self.targets.map_or(Ok((At::Node, Address::NONE)), in_list),
            _ => in_list(&self.walk.other),
        }
    }

    /// Number of rows of an operand there.
    fn count(self, at: Endpoint) -> usize {
        match at {
            Endpoint::Edge => self.walk.edges,
            _ if at == self.own() => self.walk.nodes,
            _ => self.walk.others,
        }
    }
}

/// `At` of messages.cuh.
#[derive(Debug, Clone, Copy, PartialEq, Eq, NoUninit)]
#[repr(u32)]
enum At {
    Node,
    List,
    Position,
}

#[derive(Debug, Clone, Copy, NoUninit)]
#[repr(C)]
struct RowsArguments {
    data: Address,
    list: Address,
    at: At,
    unused: u32,
}

const NO_ROWS: RowsArguments = RowsArguments { data: Address::NONE, list: Address::NONE, at: At::Node, unused: 0 };

#[derive(Debug, Clone, Copy, NoUninit)]
#[repr(C)]
struct MessagesArguments {
    lhs: RowsArguments,
    rhs: RowsArguments,
    scale: RowsArguments,
    holders: Address,
    edge: Address,
    op: u32,
    per_head: u32,
    heads: u32,
    width: u32,
}

#[derive(Clone, Copy, NoUninit)]
#[repr(C)]
struct SumArguments {
    messages: MessagesArguments,
    work: WorkArguments,
    out: Address,
    partial: Address,
    mean: u32,
    unused: u32,
}

#[derive(Clone, Copy, NoUninit)]
#[repr(C)]
struct ExtremeArguments {
    messages: MessagesArguments,
    work: WorkArguments,
    out: Address,
    holder: Address,
    partial: Address,
    partial_holder: Address,
    is_minimum: u32,
    unused: u32,
}

#[derive(Clone, Copy, NoUninit)]
#[repr(C)]
struct JoinArguments {
    hub_node: Address,
    hub_part: Address,
    start: Address,
    partial: Address,
    partial_holder: Address,
    out: Address,
    holder: Address,
    columns: u64,
    hubs: u32,
    mean: u32,
    is_minimum: u32,
    unused: u32,
}

#[derive(Clone, Copy, NoUninit)]
#[repr(C)]
struct EdgeArguments {
    messages: MessagesArguments,
    out: Address,
    edges: u64,
}

impl Directed<'_> {
    /// An operand for a kernel, checked to have enough rows.
    fn rows(self, operand: Operand<'_>, dtype: DType, width: usize) -> Result<RowsArguments> {
        let (at, list) = self.found(operand.at)?;
        let data = operand.rows.address(dtype, self.count(operand.at) * width)?;
        Ok(RowsArguments { data, list, at, unused: 0 })
    }

    fn messages(self, messages: &Messages<'_>) -> Result<MessagesArguments> {
        let Columns { heads, width } = messages.columns;
        let (dtype, total) = (messages.dtype(), messages.columns.total());
        let (Ok(op_heads), Ok(op_width)) = (u32::try_from(heads), u32::try_from(width)) else {
            bail!("messages of {heads} heads of {width} columns are too wide for a kernel");
        };
        let right = if messages.per_head { heads } else { total };
        let held = self.count(Endpoint::Destination) * total;
        Ok(MessagesArguments {
            lhs: self.rows(messages.lhs, dtype, total)?,
            rhs: messages.rhs.map_or(Ok(NO_ROWS), |rhs| self.rows(rhs, dtype, right))?,
            scale: messages.scale.map_or(Ok(NO_ROWS), |scale| self.rows(scale, wide(dtype), 1))?,
            holders: messages.holders.map_or(Ok(Address::NONE), |holders| holders.address(DType::U32, held))?,
            edge: self.walk.number.as_ref().map_or(Ok(Address::NONE), |number| list(self.memory, number))?,
            op: number_of(messages.op),
            per_head: messages.per_head.into(),
            heads: op_heads,
            width: op_width,
        })
    }
}

/// `Op` of messages.cuh.
fn number_of(op: EdgeOp) -> u32 {
    match op {
        EdgeOp::CopyLhs => 0,
        EdgeOp::CopyRhs => 1,
        EdgeOp::Add => 2,
        EdgeOp::Sub => 3,
        EdgeOp::Mul => 4,
        EdgeOp::Div => 5,
        EdgeOp::Dot => 6,
    }
}

/// How a kernel is specialised: its messages, and how many columns a thread takes at once.
fn variant(messages: &Messages<'_>, packs: &[usize], scaled: bool, out: Address) -> (&'static str, usize) {
    let kind = match messages.op {
        _ if messages.holders.is_some() => return ("general", 1),
        EdgeOp::CopyLhs => "copy",
        EdgeOp::Mul if messages.per_head && scaled => "scaled",
        _ => return ("general", 1),
    };
    let Ok(rows) = messages.lhs.rows.address(messages.dtype(), 0) else { return (kind, 1) };
    (kind, pack_for(packs, messages.columns.width, messages.dtype(), &[rows, out]))
}

impl Directed<'_> {
    fn join(self, columns: usize, out: &Memory, partial: &Memory) -> Result<JoinArguments> {
        Ok(JoinArguments {
            hub_node: list(self.memory, &self.walk.hubs.nodes)?,
            hub_part: list(self.memory, &self.walk.hubs.parts)?,
            start: list(self.memory, &self.walk.start)?,
            partial: partial.address(),
            partial_holder: Address::NONE,
            out: out.address(),
            holder: Address::NONE,
            columns: columns as u64,
            hubs: self.walk.hub_count() as u32,
            mean: 0,
            is_minimum: 0,
            unused: 0,
        })
    }

    /// Adds up the messages of every node of this direction; divides by their number where `mean`.
    pub(super) fn sum(self, messages: &Messages<'_>, mean: bool) -> Result<Memory> {
        let (dtype, total) = (messages.dtype(), messages.columns.total());
        let out = Memory::new(self.device, dtype, self.walk.nodes * total)?;
        let partial = Memory::new(self.device, wide(dtype), self.walk.part_count() * total)?;
        let (kind, pack) = variant(messages, &[1, 2, 4], true, out.address());
        let kernel = Module::Messages.kernel(&format!("sum_rows_{kind}_{pack}"), dtype)?;
        let arguments = SumArguments {
            messages: self.messages(messages)?,
            work: work(self.memory, self.walk)?,
            out: out.address(),
            partial: partial.address(),
            mean: mean.into(),
            unused: 0,
        };
        if total > 0 {
            let grid = grid_of(self.walk.nodes + self.walk.part_count(), total / pack)?;
            // SAFETY: every operand was checked to have a row for each node or edge by which the kernel finds it (`rows`), and `partial` has a row for each part.
            unsafe { launch(self.device, &kernel, grid, &arguments) }?;
        }
        let join = JoinArguments { mean: mean.into(), ..self.join(total, &out, &partial)? };
        self.launch_join(&Module::Messages.kernel("join_sums", dtype)?, &join)?;
        Ok(out)
    }

    fn launch_join(self, kernel: &Kernel, arguments: &JoinArguments) -> Result<()> {
        // SAFETY: `join` was made of the results of this walk, whose hubs and parts are within it.
        unsafe { launch(self.device, kernel, Grid::over(u64::from(arguments.hubs) * arguments.columns), arguments) }
    }
}

/// The sums of the messages of every node: of the targets over their incoming edges, or of the sources.
pub(crate) fn sum_rows(edges: &Edges, direction: Direction, messages: &Messages<'_>, mean: bool) -> Result<Memory> {
    Directed::new(edges, direction).sum(messages, mean)
}

/// The extremum of the messages into every target, and the edges that hold it; 0, held by `u32::MAX`, without messages.
pub(crate) fn extreme_rows(edges: &Edges, messages: &Messages<'_>, extreme: Extreme) -> Result<(Memory, Memory)> {
    let directed = Directed::new(edges, Direction::Incoming);
    let (device, walk) = (directed.device, directed.walk);
    let (dtype, total) = (messages.dtype(), messages.columns.total());
    let out = Memory::new(device, dtype, walk.nodes * total)?;
    let holder = Memory::new(device, DType::U32, walk.nodes * total)?;
    let partial = Memory::new(device, wide(dtype), walk.part_count() * total)?;
    let partial_holder = Memory::new(device, DType::U32, walk.part_count() * total)?;
    let (kind, pack) = variant(messages, &[1, 4], false, out.address());
    let kernel = Module::Messages.kernel(&format!("extreme_rows_{kind}_{pack}"), dtype)?;
    let is_minimum = (extreme == Extreme::Min).into();
    let arguments = ExtremeArguments {
        messages: directed.messages(messages)?,
        work: work(directed.memory, walk)?,
        out: out.address(),
        holder: holder.address(),
        partial: partial.address(),
        partial_holder: partial_holder.address(),
        is_minimum,
        unused: 0,
    };
    if total > 0 {
        // SAFETY: as in `sum`; each result has its holder.
        unsafe { launch(device, &kernel, grid_of(walk.nodes + walk.part_count(), total / pack)?, &arguments) }?;
    }
    let (holders, partial_holder) = (holder.address(), partial_holder.address());
    let join = JoinArguments { is_minimum, holder: holders, partial_holder, ..directed.join(total, &out, &partial)? };
    directed.launch_join(&Module::Messages.kernel("join_extremes", dtype)?, &join)?;
    Ok((out, holder))
}

/// The message of every edge, `[edges, columns]`; where `head_sums`, its sum over each head, `[edges, heads]`.
pub(crate) fn edge_rows(edges: &Edges, messages: &Messages<'_>, head_sums: bool) -> Result<Memory> {
    let count = edges.incoming.edges;
    let stored = if head_sums { messages.columns.heads } else { messages.columns.total() };
    let out = Memory::new(&edges.device, messages.dtype(), count * stored)?;
    let by_edge = Directed { targets: Some(edges.targets()), ..Directed::new(edges, Direction::Incoming) };
    let arguments = EdgeArguments { messages: by_edge.messages(messages)?, out: out.address(), edges: count as u64 };
    let (name, grid) = if head_sums {
        let lanes = Grid::lanes_for(messages.columns.width);
        ("dot_rows".to_owned(), Grid::for_rows((count * stored) as u64, lanes)?)
    } else {
        let (kind, pack) = variant(messages, &[1, 4], false, out.address());
        (format!("edge_rows_{kind}_{pack}"), Grid::over((count * stored / pack) as u64))
    };
    // SAFETY: as in `sum`, edge by edge; the result has a row for each edge.
    unsafe { launch(&edges.device, &Module::Messages.kernel(&name, messages.dtype())?, grid, &arguments) }?;
    Ok(out)
}

/// Collects messages at `at`: summed over the edges of each source or target, or one by one for the edges.
pub(crate) fn collect(edges: &Edges, at: Endpoint, messages: &Messages<'_>) -> Result<Memory> {
    match at {
        Endpoint::Source => sum_rows(edges, Direction::Outgoing, messages, false),
        Endpoint::Destination => sum_rows(edges, Direction::Incoming, messages, false),
        Endpoint::Edge => edge_rows(edges, messages, messages.op == EdgeOp::Dot),
    }
}
