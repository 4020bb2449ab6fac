//! Pairs of nodes, drawn without duplicates straight into rows.
//!
//! Drawing pairs one after the other until enough different ones are found needs a set of all pairs. Here every pair
//! meets at its own random times (a Poisson process whose rate is the probability of the draw), and the graph is the
//! pairs that have met by the time at which there are enough of them: the same distribution. A node's meetings with the
//! nodes before it are independent of all else, so each row is drawn and freed of duplicates by itself.

use std::ops::Range;

use rand::RngExt;
use rand::rngs::Xoshiro256PlusPlus;
use rayon::prelude::*;

use super::super::random::random_stream;
use super::GenerateError;
use super::cumulative::Cumulative;
use super::horizon::draws_for;
use super::published::{EDGES, INSIDE};
use crate::nodes::Csr;

/// How strongly nodes attract edges, overall and within a class.
pub(super) struct Communities<'a> {
    label: &'a [u32],
    weight: Vec<f64>,
    everyone: Cumulative,
    /// Position of each node among those of its class.
    position: Vec<u32>,
    /// Nodes of each class, ascending.
    members: Vec<Vec<u32>>,
    classes: Vec<Cumulative>,
}

impl<'a> Communities<'a> {
    pub(super) fn new(label: &'a [u32], classes: usize, weight: Vec<f64>) -> Self {
        let mut members = vec![Vec::new(); classes];
        let mut position = Vec::with_capacity(label.len());
        for (node, &class) in label.iter().enumerate() {
            let members: &mut Vec<u32> = &mut members[class as usize];
            position.push(members.len() as u32);
            members.push(node as u32);
        }
        let of_class = |nodes: &Vec<u32>| Cumulative::new(nodes.iter().map(|&node| weight[node as usize]));
        let classes = members.iter().map(of_class).collect();
        let everyone = Cumulative::new(weight.iter().copied());
        Self { label, weight, everyone, position, members, classes }
    }

    fn nodes(&self) -> usize {
        self.label.len()
    }

    /// The process of a node's meetings with the nodes before it. Time counts draws of a pair.
    fn row(&self, node: usize) -> Row<'_> {
        let class = self.label[node] as usize;
        let position = self.position[node] as usize;
        let own_class = &self.classes[class];
        let inside = INSIDE * own_class.of_first(position) / own_class.total();
        let outside = (1.0 - INSIDE) * self.everyone.of_first(node) / self.everyone.total();
        let rate = 2.0 * self.weight[node] / self.everyone.total() * (inside + outside);
        Row { communities: self, node, class, position, rate, inside_share: inside / (inside + outside) }
    }

    /// Contiguous ranges of nodes with about equally many meetings.
    fn ranges(&self, count: usize) -> Vec<Range<usize>> {
        let rates: Vec<f64> = (0..self.nodes()).map(|node| self.row(node).rate).collect();
        let share = rates.iter().sum::<f64>() / count as f64;
        let (mut ranges, mut first, mut sum) = (Vec::with_capacity(count + 1), 0, 0.0);
        for (node, rate) in rates.into_iter().enumerate() {
            sum += rate;
            if sum >= share || node + 1 == self.nodes() {
                ranges.push(first..node + 1);
                (first, sum) = (node + 1, 0.0);
            }
        }
        ranges
    }
}

/// A node's process.
struct Row<'a> {
    communities: &'a Communities<'a>,
    node: usize,
    class: usize,
    /// Position of the node in its class.
    position: usize,
    /// Meetings in a unit of time.
    rate: f64,
    /// Share of the meetings that are within the class by intent.
    inside_share: f64,
}

impl Row<'_> {
    /// The node met, for two numbers in `[0, 1)`.
    fn partner(&self, which: f64, mark: f64) -> u32 {
        let communities = self.communities;
        if which < self.inside_share {
            communities.members[self.class][communities.classes[self.class].choose(self.position, mark)]
        } else {
            communities.everyone.choose(self.node, mark) as u32
        }
    }
}

/// First meetings of the nodes of a range with nodes before them.
struct Meetings {
    range: Range<usize>,
    /// Meetings of each node of the range.
    count: Vec<u32>,
    partner: Vec<u32>,
    time: Vec<f32>,
}

/// The graph of the first `pairs` different pairs, in both directions.
pub(super) fn draw(
    communities: &Communities<'_>,
    pairs: usize,
    seed: u64,
    progress: &mut dyn FnMut(f64),
) -> Result<Csr, GenerateError> {
    const DRAWN_SHARE: f64 = 0.75;
    let mut meetings = enough_meetings(communities, pairs, seed, &mut |share| progress(DRAWN_SHARE * share))?;
    let last = time_of(&meetings, pairs);
    keep_until(&mut meetings, last, pairs);
    progress(0.5 * (1.0 + DRAWN_SHARE));
    let graph = both_directions(communities.nodes(), &meetings);
    progress(1.0);
    Ok(graph)
}

/// All first meetings up to a time by which there are `pairs` of them or more.
fn enough_meetings(
    communities: &Communities<'_>,
    pairs: usize,
    seed: u64,
    progress: &mut dyn FnMut(f64),
) -> Result<Vec<Meetings>, GenerateError> {
    const LONGEST: f64 = 256.0;
    let nodes = communities.nodes();
    let too_dense = GenerateError::TooDense { nodes, edges: 2 * pairs };
    if pairs > nodes * nodes.saturating_sub(1) / 2 {
        return Err(too_dense);
    }
    let mut horizon = draws_for(&communities.weight, pairs);
    loop {
        let meetings = meet_until(communities, horizon, seed, progress);
        let found: usize = meetings.iter().map(|meetings| meetings.partner.len()).sum();
        if found >= pairs {
            return Ok(meetings);
        }
        if horizon > LONGEST * pairs as f64 {
            return Err(too_dense);
        }
        horizon *= 1.1;
    }
}

fn meet_until(communities: &Communities<'_>, horizon: f64, seed: u64, progress: &mut dyn FnMut(f64)) -> Vec<Meetings> {
    const RANGES: usize = 256;
    const RANGES_AT_ONCE: usize = 32;
    let ranges = communities.ranges(RANGES);
    let mut all = Vec::with_capacity(ranges.len());
    for group in ranges.chunks(RANGES_AT_ONCE) {
        let met = group.par_iter().map_init(
            || vec![u32::MAX; communities.nodes()],
            |met_by, range| meet_range(communities, range.clone(), horizon, seed, met_by),
        );
        all.extend(met.collect::<Vec<_>>());
        progress(all.len() as f64 / ranges.len() as f64);
    }
    all
}

/// `met_by` holds, for each node, the last row that met it: no need to clear it between rows.
fn meet_range(
    communities: &Communities<'_>,
    range: Range<usize>,
    horizon: f64,
    seed: u64,
    met_by: &mut [u32],
) -> Meetings {
    let expected = |node: usize| (horizon * communities.row(node).rate).min(node as f64);
    let room = range.clone().map(expected).sum::<f64>() as usize + 16;
    let mut meetings = Meetings {
        count: Vec::with_capacity(range.len()),
        partner: Vec::with_capacity(room),
        time: Vec::with_capacity(room),
        range,
    };
    for node in meetings.range.clone() {
        let before = meetings.partner.len();
        meetings.meet(node, &communities.row(node), horizon, &mut random_stream(seed, EDGES, node as u64), met_by);
        meetings.count.push((meetings.partner.len() - before) as u32);
    }
    meetings
}

impl Meetings {
    /// Adds the first meetings of one node.
    fn meet(&mut self, node: usize, row: &Row<'_>, horizon: f64, random: &mut Xoshiro256PlusPlus, met_by: &mut [u32]) {
        if row.rate <= 0.0 {
            return;
        }
        let mut time = 0.0;
        loop {
            time -= (1.0 - random.random::<f64>()).ln() / row.rate;
            if time > horizon {
                break;
            }
            let partner = row.partner(random.random(), random.random());
            if std::mem::replace(&mut met_by[partner as usize], node as u32) != node as u32 {
                self.partner.push(partner);
                self.time.push(time as f32);
            }
        }
    }
}

/// The time of the meeting number `pairs`, counted from 1 in the order of time.
fn time_of(meetings: &[Meetings], pairs: usize) -> f32 {
    const BINS: usize = 1 << 16;
    let end = meetings.iter().flat_map(|meetings| &meetings.time).fold(0.0, |end: f32, &time| end.max(time));
    let bin = |time: f32| ((time / end * BINS as f32) as usize).min(BINS - 1);
    let mut counts = vec![0usize; BINS];
    for &time in meetings.iter().flat_map(|meetings| &meetings.time) {
        counts[bin(time)] += 1;
    }
    let mut rest = pairs;
    let Some(last) = counts.iter().position(|&count| {
        let reached = count >= rest;
        rest -= if reached { 0 } else { count };
        reached
    }) else {
        return end;
    };
    let mut times: Vec<f32> =
        meetings.iter().flat_map(|meetings| &meetings.time).copied().filter(|&time| bin(time) == last).collect();
    times.sort_unstable_by(f32::total_cmp);
    times.get(rest.wrapping_sub(1)).copied().unwrap_or(0.0)
}

/// Keeps the first `pairs` meetings, the last of which is at `last`, and sorts each row by partner.
fn keep_until(meetings: &mut [Meetings], last: f32, pairs: usize) {
    let earlier = |meetings: &Meetings| meetings.time.iter().filter(|&&time| time < last).count();
    let mut at_last = pairs - meetings.par_iter().map(earlier).sum::<usize>().min(pairs);
    // Times are rounded: which of the meetings at the last time are kept goes by their place.
    let quotas: Vec<usize> = meetings
        .iter()
        .map(|meetings| {
            let taken = meetings.time.iter().filter(|&&time| time == last).count().min(at_last);
            at_last -= taken;
            taken
        })
        .collect();
    meetings.par_iter_mut().zip(quotas).for_each(|(meetings, quota)| keep_in_range(meetings, last, quota));
}

fn keep_in_range(meetings: &mut Meetings, last: f32, mut quota: usize) {
    let (mut read, mut kept) = (0, 0);
    for count in &mut meetings.count {
        let first = kept;
        for index in read..read + *count as usize {
            let time = meetings.time[index];
            let at_last = time == last && quota > 0;
            if time < last || at_last {
                quota -= usize::from(at_last);
                meetings.partner[kept] = meetings.partner[index];
                kept += 1;
            }
        }
        read += *count as usize;
        *count = (kept - first) as u32;
        meetings.partner[first..kept].sort_unstable();
    }
    meetings.partner.truncate(kept);
    meetings.time = Vec::new();
}

/// Rows of all neighbours, from rows of those before a node. Rows come in order, so each is ascending.
fn both_directions(nodes: usize, meetings: &[Meetings]) -> Csr {
    let mut row_start = vec![0u32; nodes + 1];
    for meetings in meetings {
        for (node, &count) in meetings.range.clone().zip(&meetings.count) {
            row_start[node + 1] += count;
        }
        meetings.partner.iter().for_each(|&partner| row_start[partner as usize + 1] += 1);
    }
    for row in 0..nodes {
        row_start[row + 1] += row_start[row];
    }
    let mut source = vec![0u32; row_start[nodes] as usize];
    let mut next = row_start[..nodes].to_vec();
    for meetings in meetings {
        let mut read = 0;
        for (node, &count) in meetings.range.clone().zip(&meetings.count) {
            let partners = &meetings.partner[read..read + count as usize];
            let own = row_start[node] as usize;
            source[own..own + partners.len()].copy_from_slice(partners);
            // No node has written to this row yet: all that do come after it.
            next[node] += count;
            for &partner in partners {
                let slot = &mut next[partner as usize];
                source[*slot as usize] = node as u32;
                *slot += 1;
            }
            read += partners.len();
        }
    }
    Csr::from_sorted_rows(row_start, source)
}
