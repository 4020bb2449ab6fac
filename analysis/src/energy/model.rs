//! Power without a counter: a model with a wide band, always labelled as one.
//!
//! CPU: `P = sockets x TDP x share of threads x (0.10 + 0.65 u)`, `u` being the load of those threads. Compared with RAPL
//! on four machines (77 points of CodeCarbon's load profiles), its median is 0.99 of the counter, and one in ten is outside
//! 0.60 to 1.63. Its band is x0.5 to x2, or x0.33 to x3 if the TDP itself is a guess. Memory: 1.5 W a module, between 0.4
//! and 5 W.

use super::line::EnergyLine;

/// Power of an idle processor, and the part added by load, as shares of its TDP.
const AT_REST: f64 = 0.10;
const BY_LOAD: f64 = 0.65;
/// Watts assumed for a hardware thread of an unknown processor.
const GUESSED_WATTS_PER_THREAD: f64 = 4.0;
/// Watts of a memory module: usual, least, most.
const MODULE_WATTS: (f64, f64, f64) = (1.5, 0.4, 5.0);
/// Size assumed for a memory module if their number is unknown.
const GUESSED_MODULE_BYTES: f64 = 16.0 * 1024.0 * 1024.0 * 1024.0;

/// A constant power and a power proportional to load, with a band for both.
#[derive(Clone, Debug, PartialEq)]
pub struct Model {
    /// Watts at no load.
    pub rest_watts: f64,
    /// Additional watts at full load.
    pub load_watts: f64,
    /// The true power is between these multiples of it.
    pub band: (f64, f64),
    /// The origin of its power.
    pub origin: ModelOrigin,
    /// What it is based on, as text, such as `TDP 360 W by name, 4 of 96 threads`.
    pub basis: String,
}

/// The origin of a model's power.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ModelOrigin {
    /// Given by a person.
    User,
    /// Derived from the machine.
    Estimated,
}

/// The kind of processor, as far as known.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Processor {
    /// Its model name; empty if unknown.
    pub name: String,
    /// Number of sockets; 0 if unknown.
    pub sockets: u64,
    /// Hardware threads that are online.
    pub threads: u64,
    /// How many of them the job may use.
    pub allotted: f64,
}

impl Model {
    /// The model of a processor. `tdp_watts` is for one socket, from the user; without it, the TDP is found by name, else
    /// guessed.
    pub fn for_processor(processor: &Processor, tdp_watts: Option<f64>) -> Option<Self> {
        if processor.threads == 0 {
            return None;
        }
        let threads = processor.threads as f64;
        let share = (processor.allotted / threads).clamp(0.0, 1.0);
        let sockets = processor.sockets.max(1) as f64;
        let known =
            tdp_watts.map(|watts| (watts, "as given")).or_else(|| Some((tdp_by_name(&processor.name)?, "by name")));
        let (all_watts, band, what) = match known {
            Some((watts, how)) => (sockets * watts, (0.5, 2.0), format!("TDP {watts:.0} W {how} x {sockets:.0}")),
            None => {
                let watts = GUESSED_WATTS_PER_THREAD * threads;
                (watts, (1.0 / 3.0, 3.0), format!("TDP guessed at {GUESSED_WATTS_PER_THREAD:.0} W a thread"))
            }
        };
        let watts = all_watts * share;
        let basis = format!("{what}, {:.1} of {threads:.0} threads", processor.allotted);
        Some(Self {
            rest_watts: AT_REST * watts,
            load_watts: BY_LOAD * watts,
            band,
            origin: ModelOrigin::Estimated,
            basis,
        })
    }

    /// The model of memory: `modules` if known, else as many as its size suggests; `share` is the job's share of it, and `by` says
    /// by what.
    pub fn for_memory(bytes: f64, modules: Option<u64>, share: f64, by: &str) -> Option<Self> {
        if bytes.is_nan() || bytes <= 0.0 {
            return None;
        }
        let guessed = (bytes / GUESSED_MODULE_BYTES).ceil().max(1.0);
        let count = modules.filter(|count| *count > 0).map_or(guessed, |count| count as f64);
        let (usual, least, most) = MODULE_WATTS;
        let how = if modules.is_some() { "counted" } else { "guessed from its size" };
        let percent = if share < 0.1 { format!("{:.1}", 100.0 * share) } else { format!("{:.0}", 100.0 * share) };
        let basis = format!("{usual} W a module, {count:.0} of them {how}, {percent} % of it{by}");
        Some(Self {
            rest_watts: usual * count * share,
            load_watts: 0.0,
            band: (least / usual, most / usual),
            origin: ModelOrigin::Estimated,
            basis,
        })
    }

    /// The part of one of `processes` that share the machine: its own load, and its share of the idle power.
    #[must_use]
    pub fn shared_by(self, processes: u32) -> Self {
        Self { rest_watts: self.rest_watts / f64::from(processes.max(1)), ..self }
    }

    /// A power given by the user.
    pub fn from_watts(watts: f64) -> Self {
        let (origin, basis) = (ModelOrigin::User, format!("{watts} W as given"));
        Self { rest_watts: watts, load_watts: 0.0, band: (1.0, 1.0), origin, basis }
    }

    /// Energy over time by the model. `busy` is CPU time in nanoseconds instead of energy, over `threads` threads; without
    /// a load, `times_ns` gives the start and end.
    pub fn line(&self, busy: Option<(&EnergyLine, f64)>, times_ns: (u64, u64)) -> EnergyLine {
        let mut line = EnergyLine::new();
        let (mut passed_ns, mut joules) = (None, 0.0);
        let mut go_to = |t_ns: u64, load: f64| {
            let seconds = passed_ns.map_or(0, |before| t_ns.saturating_sub(before)) as f64 / 1e9;
            let before = (joules * 1e6_f64).round();
            joules += seconds * (self.rest_watts + self.load_watts * load);
            line.add(t_ns, 0, ((joules * 1e6).round() - before) as u64);
            passed_ns = Some(t_ns);
        };
        let Some((busy, threads)) = busy else {
            go_to(times_ns.0, 0.0);
            go_to(times_ns.1, 0.0);
            return line;
        };
        let mut before = None;
        for knot in busy.knots() {
            let load = before.map_or(0.0, |(t_ns, busy_ns): (u64, u64)| {
                (knot.uj - busy_ns) as f64 / (knot.t_ns - t_ns) as f64 / threads.max(1e-3)
            });
            go_to(knot.t_ns, load.clamp(0.0, 1.0));
            before = Some((knot.t_ns, knot.uj));
        }
        line
    }
}

/// Thermal design power of processors used for training, by a part of their name, in watts per socket.
///
/// From CodeCarbon 3.3.2 `data/hardware/cpu_power.csv` (MIT licence). The longest matching part is used.
fn tdp_by_name(name: &str) -> Option<f64> {
    let table = include_str!("tables/processors.csv").lines().skip(1).filter_map(|line| line.rsplit_once(','));
    let fits = table.filter(|(part, _)| contains_words(name, part));
    fits.max_by_key(|(part, _)| part.len())?.1.parse().ok()
}

/// Whether a part is in a name as whole words, so that `8480` is not found in `8480C`.
fn contains_words(name: &str, part: &str) -> bool {
    let end = |c: Option<char>| c.is_none_or(|c| !c.is_alphanumeric() && c != '+');
    let ends = |at: usize| end(name[at + part.len()..].chars().next());
    name.match_indices(part).any(|(at, _)| end(name[..at].chars().next_back()) && ends(at))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    #[test]
    fn known_processor_scales_to_job_share() {
        let name = "AMD EPYC 9474F 48-Core Processor".to_owned();
        let processor = Processor { name, sockets: 2, threads: 192, allotted: 4.0 };
        let model = Model::for_processor(&processor, None).unwrap();
        assert!((model.rest_watts + model.load_watts - 0.75 * 720.0 * 4.0 / 192.0).abs() < 1e-9, "{model:?}");
        assert_eq!(model.band, (0.5, 2.0));
        let given = Model::for_processor(&processor, Some(100.0)).unwrap();
        assert!(given.basis.contains("as given") && given.load_watts < model.load_watts);
    }

    #[test]
    fn an_unknown_processor_is_a_guess_with_a_wider_band() {
        let processor = Processor { name: "Intel(R) Xeon(R) Processor".into(), sockets: 1, threads: 2, allotted: 2.0 };
        let model = Model::for_processor(&processor, None).unwrap();
        assert_eq!((model.rest_watts, model.band), (0.8, (1.0 / 3.0, 3.0)));
        assert_eq!(Model::for_processor(&Processor::default(), None), None, "no thread is known");
    }

    #[test]
    fn tdp_lookup_compares_whole_words() {
        assert_eq!(tdp_by_name("Intel(R) Xeon(R) Platinum 8480+"), Some(350.0));
        assert_eq!(tdp_by_name("Intel(R) Xeon(R) Platinum 8480"), None);
        assert_eq!(tdp_by_name("Intel(R) Xeon(R) Processor"), None);
    }

    #[test]
    fn memory_model_uses_size_or_modules_with_wide_band() {
        let gib = 1024.0 * 1024.0 * 1024.0;
        let model = Model::for_memory(24.0 * gib, None, 1.0, "").unwrap();
        assert_eq!(model.rest_watts, 3.0);
        assert_eq!(Model::for_memory(512.0 * gib, Some(16), 0.25, "").unwrap().rest_watts, 6.0);
        assert!(model.band.0 < 0.3 && model.band.1 > 3.0);
        assert_eq!(Model::for_memory(0.0, None, 1.0, ""), None);
    }

    #[test]
    fn model_line_rises_with_load() {
        let mut busy = EnergyLine::new();
        for s in 0..=10u64 {
            busy.add(s * SECOND, 0, 2 * SECOND);
        }
        let (origin, basis) = (ModelOrigin::Estimated, String::new());
        let model = Model { rest_watts: 10.0, load_watts: 40.0, band: (0.5, 2.0), origin, basis };
        let line = model.line(Some((&busy, 4.0)), (0, 0));
        assert_eq!(line.total_uj(), 10 * (10 + 20) * 1_000_000, "two of four threads");
        assert_eq!(Model::from_watts(7.0).line(None, (0, 2 * SECOND)).total_uj(), 14_000_000);
    }
}
