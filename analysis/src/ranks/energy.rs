//! Energy of a whole run of several ranks. Every rank's sensors see the whole machine, so a machine is counted by only one
//! of its ranks, the lowest, and a process by only one of the ranks that are its threads.

use std::collections::HashSet;

use crate::energy::{Assumptions, EnergyFigure, EnergyScope};
use crate::store::Store;

use super::rank::{Rank, Ranks};

/// Energy of all ranks together.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RunEnergy {
    /// Whole devices of all machines, each machine once.
    pub device: Option<EnergyFigure>,
    /// The share of it that all processes used.
    pub job: Option<EnergyFigure>,
    /// Machines counted in `device`.
    pub machines: usize,
    /// Processes counted in `job`.
    pub processes: usize,
    /// Components left out of `job` because some process's share of them is unknown.
    pub without_job: Vec<String>,
}

impl RunEnergy {
    /// Energy of these ranks. Takes milliseconds per rank.
    pub fn new(ranks: &Ranks<'_>, assumptions: &Assumptions) -> Self {
        let mut run = Self::default();
        let (mut machines, mut processes) = (HashSet::new(), HashSet::new());
        for Rank { store, .. } in ranks.all() {
            let Some(info) = store.session().info() else { continue };
            let is_first_of_machine = machines.insert(info.host.as_str());
            let is_first_of_process = processes.insert((info.host.as_str(), info.pid));
            if is_first_of_machine || is_first_of_process {
                run.add(store, assumptions, is_first_of_machine, is_first_of_process);
            }
        }
        run
    }

    fn add(&mut self, store: &Store, assumptions: &Assumptions, is_machine: bool, is_process: bool) {
        let book = store.energy(assumptions);
        let session = store.first_ns().unwrap_or(0)..store.now_ns();
        if let Some((figure, _)) = book.total(EnergyScope::Device, session.clone()).filter(|_| is_machine) {
            self.device = Some(self.device.map_or(figure, |all| all.plus(&figure)));
            self.machines += 1;
        }
        if let Some((figure, missing)) = book.total(EnergyScope::Job, session).filter(|_| is_process) {
            self.job = Some(self.job.map_or(figure, |all| all.plus(&figure)));
            self.processes += 1;
            let new = missing.into_iter().filter(|name| !self.without_job.iter().any(|known| known == name));
            let new: Vec<String> = new.map(str::to_owned).collect();
            self.without_job.extend(new);
        }
    }
}

#[cfg(test)]
mod tests {
    use gnntop_wire::{Engine, Place, RankKind, SignalKind, TrackRole, Unit};

    use super::super::Run;
    use super::*;
    use gnntop_fixtures::{MS, START_NS, StreamBuilder, each_item, session_info};

    /// 20 s of a rank on a machine whose four threads are kept busy by its ranks, one each, at 100 W if it has a counter.
    fn session(rank: u32, host: &str, pid: u32, kind: RankKind, has_counter: bool) -> Vec<u8> {
        let mut info = session_info("pna");
        (info.session_id, info.host, info.pid) = (1000 + u128::from(rank), host.to_owned(), pid);
        info.place = Some(Box::new(Place {
            run: "job-17".to_owned(),
            rank,
            ranks: 4,
            stage: 0,
            stages: 1,
            copy: rank,
            copies: 4,
            engine: Engine::Unknown,
            kind,
            device: "CPU".to_owned(),
            threads: 1,
            host_ranks: if host == "alone" { 4 } else { 2 },
            host_cores: 4,
            clock: None,
            attempt: None,
        }));
        let mut stream = StreamBuilder::from_info(&info);
        let sensors = stream.track(TrackRole::Sensors, "sensors");
        let ranks = if kind == RankKind::Thread { 4 } else { 1 };
        let mut count = |name: &str, unit, per_100_ms: i64| {
            let signal = stream.signal(name, unit, SignalKind::Counter);
            (0..=200).for_each(|n| stream.sample(sensors, signal, START_NS + n * 100 * MS, n as i64 * per_100_ms));
        };
        count("machine.cpu.busy", Unit::Nanoseconds, 400_000_000);
        count("process.cpu_time", Unit::Nanoseconds, ranks * 100_000_000);
        (0..4).for_each(|core| count(&format!("machine.cpu.{core}.busy"), Unit::Nanoseconds, 100_000_000));
        if has_counter {
            count("cpu.0.energy", Unit::Microjoules, 10_000_000);
        }
        let memory = stream.signal("machine.memory.total", Unit::Bytes, SignalKind::Gauge);
        stream.sample(sensors, memory, START_NS, 8 << 30);
        stream.bytes()
    }

    fn energy(sessions: &[Vec<u8>]) -> RunEnergy {
        let mut run = Run::default();
        sessions.iter().for_each(|stream| each_item(stream, |item| run.apply(item)));
        RunEnergy::new(&run.ranks(), &Assumptions::default())
    }

    fn joules(figure: Option<EnergyFigure>) -> f64 {
        figure.map_or(0.0, |figure| figure.joules)
    }

    #[test]
    fn ranks_on_one_machine_count_machine_once() {
        let one = energy(&[session(0, "alone", 10, RankKind::Process, true)]);
        let four: Vec<_> = (0..4).map(|rank| session(rank, "alone", 10 + rank, RankKind::Process, true)).collect();
        let four = energy(&four);
        assert_eq!((four.machines, four.processes), (1, 4));
        assert!((joules(four.device) - joules(one.device)).abs() < 1e-6, "{four:?}");
        // 100 W and 1.5 W of memory: the ranks use all of the CPU and the memory.
        assert!((joules(four.device) - 2030.0).abs() < 1.0, "{four:?}");
        assert!((joules(four.job) - joules(four.device)).abs() < 1.0, "the ranks use all of it: {four:?}");
        assert_eq!(four.without_job, ["gpu"]);
    }

    #[test]
    fn modelled_machine_is_counted_once() {
        let four: Vec<_> = (0..4).map(|rank| session(rank, "alone", 10 + rank, RankKind::Process, false)).collect();
        let four = energy(&four);
        // 16 W of TDP, all threads busy, and a module of memory.
        assert!((joules(four.device) - 20.0 * (16.0 * 0.75 + 1.5)).abs() < 0.5, "{four:?}");
        assert!((joules(four.job) - joules(four.device)).abs() < 0.5, "{four:?}");
    }

    #[test]
    fn ranks_that_are_threads_are_one_process() {
        let four: Vec<_> = (0..4).map(|rank| session(rank, "alone", 10, RankKind::Thread, true)).collect();
        let four = energy(&four);
        assert_eq!((four.machines, four.processes), (1, 1));
        assert!((joules(four.job) - 2030.0).abs() < 1.0, "{four:?}");
    }

    #[test]
    fn energy_of_two_machines_is_summed() {
        let hosts = ["left", "left", "right", "right"];
        let four: Vec<_> = hosts
            .into_iter()
            .zip(0..)
            .map(|(host, rank)| session(rank, host, 10 + rank, RankKind::Process, true))
            .collect();
        let four = energy(&four);
        assert_eq!((four.machines, four.processes), (2, 4));
        assert!((joules(four.device) - 4060.0).abs() < 2.0, "{four:?}");
    }
}
