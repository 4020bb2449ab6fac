//! Which ranks share a host, and the offsets between the hosts' clocks.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::Instant;

use gnntop_probe::ClockOffset;

use crate::parallel::{Collective, CollectiveError};

/// Round trips between two hosts: the fastest one counts.
const ROUNDS: usize = 20;

/// CPU cores that this process may use.
#[must_use]
pub fn available_cores() -> usize {
    std::thread::available_parallelism().map_or(1, std::num::NonZero::get)
}

/// A host as one of its ranks sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Host {
    /// Identifies the host.
    pub(super) identity: String,
    /// The processors that this rank may use, as the system lists them.
    pub(super) processors: String,
    /// The number of these processors.
    pub(super) cores: usize,
}

impl Host {
    /// The host that this runs on.
    pub(super) fn here() -> Self {
        let status = std::fs::read_to_string("/proc/thread-self/status").unwrap_or_default();
        let allowed = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
        Self {
            identity: gnntop_probe::host_identity(),
            processors: allowed.unwrap_or_default().trim().to_owned(),
            cores: available_cores(),
        }
    }
}

/// What a rank knows about the hosts of its run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Hosts {
    /// Ranks on this host.
    pub(super) ranks_here: usize,
    /// Cores that the ranks on this host have in total.
    pub(super) cores_here: usize,
    /// Threads that fit on this rank's processors, beside the ranks that share them: at least 1.
    pub(super) threads: usize,
    /// This rank among those on its host, from 0.
    pub(super) number_here: usize,
    /// The offset of this host's clock from rank 0's; `None` if it is the same clock.
    pub(super) clock: Option<ClockOffset>,
}

impl Hosts {
    /// Asks the other ranks. A call that all ranks make. `now_ns` reads this host's monotonic clock.
    pub(super) fn new(ranks: &dyn Collective, host: &Host, now_ns: impl Fn() -> u64) -> Result<Self, CollectiveError> {
        let hosts = ranks.gather(fingerprint(&host.identity))?;
        let processors = ranks.gather(fingerprint(&host.processors))?;
        let cores = ranks.gather(host.cores as f64)?;
        let clock = compare_clocks(ranks, &hosts, now_ns)?;
        let own = ranks.rank();
        let here: Vec<usize> = (0..ranks.ranks()).filter(|rank| hosts[*rank] == hosts[own]).collect();
        // MPI launchers give ranks either separate processors or all the same.
        let mut sets: Vec<f64> = Vec::new();
        let mut cores_here = 0.0;
        for &rank in &here {
            if !sets.contains(&processors[rank]) {
                sets.push(processors[rank]);
                cores_here += cores[rank];
            }
        }
        let sharing = here.iter().filter(|rank| processors[**rank] == processors[own]).count();
        Ok(Self {
            ranks_here: here.len(),
            cores_here: cores_here as usize,
            threads: (host.cores / sharing).max(1),
            number_here: here.iter().filter(|rank| **rank < own).count(),
            clock,
        })
    }
}

/// The host's name as a number that an f64 holds exactly.
fn fingerprint(host: &str) -> f64 {
    let mut hasher = DefaultHasher::new();
    host.hash(&mut hasher);
    (hasher.finish() >> 11) as f64
}

/// Rank 0 repeatedly sends its time to every rank on another host; the fastest answer bounds the error (Cristian,
/// Probabilistic clock synchronization, 1989).
fn compare_clocks(
    ranks: &dyn Collective,
    hosts: &[f64],
    now_ns: impl Fn() -> u64,
) -> Result<Option<ClockOffset>, CollectiveError> {
    let (rank, mut message) = (ranks.rank(), Vec::new());
    let mut own = None;
    for other in (1..ranks.ranks()).filter(|other| hosts[*other] != hosts[0]) {
        if rank == 0 {
            for _ in 0..ROUNDS {
                ranks.receive(other, &mut message)?;
                ranks.send(other, &split(now_ns()))?;
            }
        } else if rank == other {
            let mut best = ClockOffset { offset_ns: 0, error_ns: u64::MAX };
            for _ in 0..ROUNDS {
                let (sent, begin) = (now_ns(), Instant::now());
                ranks.send(0, &[])?;
                ranks.receive(0, &mut message)?;
                let way_ns = u64::try_from(begin.elapsed().as_nanos()).unwrap_or(u64::MAX) / 2;
                if way_ns < best.error_ns {
                    best =
                        ClockOffset { offset_ns: join(&message).wrapping_sub(sent + way_ns) as i64, error_ns: way_ns };
                }
            }
            own = Some(best);
        }
    }
    Ok(own)
}

/// A time as values that carry their bits exactly: 16 bits each.
fn split(t_ns: u64) -> [f32; 4] {
    [48, 32, 16, 0].map(|shift| ((t_ns >> shift) & 0xffff) as f32)
}

fn join(values: &[f32]) -> u64 {
    values.iter().fold(0, |time, value| time << 16 | *value as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parallel::{ThreadRank, thread_ranks};

    #[test]
    fn times_survive_the_way() {
        for time in [0, 1, 65_535, 65_536, 1_234_567_890_123_456_789, u64::MAX] {
            assert_eq!(join(&split(time)), time);
        }
    }

    #[test]
    fn ranks_that_share_processors_share_them_out() {
        std::thread::scope(|scope| {
            for rank in thread_ranks(3, false) {
                scope.spawn(move || {
                    let host = Host { identity: "elm".to_owned(), processors: "0-7".to_owned(), cores: 8 };
                    let hosts = Hosts::new(&rank, &host, || 0).unwrap();
                    assert_eq!((hosts.ranks_here, hosts.cores_here, hosts.threads), (3, 8, 2));
                });
            }
        });
        assert!(Host::here().cores >= 1);
    }

    #[test]
    fn ranks_of_a_host_find_each_other_and_clocks_are_compared_across() {
        const AHEAD_NS: u64 = 5_000_000_000;
        let start = Instant::now();
        let found: Vec<Hosts> = std::thread::scope(|scope| {
            let on_rank = |rank: ThreadRank| {
                let away = rank.rank() >= 2;
                let now = || start.elapsed().as_nanos() as u64 + if away { AHEAD_NS } else { 0 };
                let identity = if away { "oak" } else { "elm" }.to_owned();
                // On elm each rank has its own two processors.
                let processors = format!("{}-{}", 2 * rank.rank(), 2 * rank.rank() + 1);
                Hosts::new(&rank, &Host { identity, processors, cores: 2 }, now).unwrap()
            };
            let threads: Vec<_> =
                thread_ranks(3, false).into_iter().map(|rank| scope.spawn(move || on_rank(rank))).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        assert_eq!(
            found.iter().map(|hosts| (hosts.ranks_here, hosts.number_here)).collect::<Vec<_>>(),
            [(2, 0), (2, 1), (1, 0)]
        );
        assert_eq!(
            found.iter().map(|hosts| (hosts.cores_here, hosts.threads)).collect::<Vec<_>>(),
            [(4, 2), (4, 2), (2, 2)]
        );
        assert_eq!((found[0].clock, found[1].clock), (None, None));
        let clock = found[2].clock.unwrap();
        assert!((clock.offset_ns + AHEAD_NS as i64).unsigned_abs() <= clock.error_ns, "{clock:?}");
    }
}
