//! A run that does not advance: what each rank does, who holds the others up, and the words for it.

use crate::figures::{count, duration};

/// What a rank is doing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RankActivity {
    /// It waits for all others, in the span with this name.
    Together(String),
    /// It waits for a neighbouring stage, in the span with this name.
    Neighbour(String),
    /// It waits for its next batch, while its loader is in this span, if known.
    Data(Option<String>),
    /// It is in this span.
    In(String),
    /// It is in no span.
    Between,
    /// It ended normally.
    Ended,
    /// Its process is gone.
    Gone,
    /// It has published nothing for a while.
    Silent,
    /// It has never published.
    Missing,
}

impl RankActivity {
    /// Whether it waits for another rank.
    pub fn waits(&self) -> bool {
        matches!(self, Self::Together(_) | Self::Neighbour(_))
    }

    /// Whether it is unable to do anything any more, as far as can be seen.
    pub fn is_absent(&self) -> bool {
        matches!(self, Self::Ended | Self::Gone | Self::Silent | Self::Missing)
    }

    /// Words to follow "rank 2 has".
    fn describe(&self) -> String {
        match self {
            Self::Together(name) | Self::Neighbour(name) => format!("waited in {name}"),
            Self::Data(_) => "waited for data".to_owned(),
            Self::In(name) => format!("been in {name}"),
            Self::Between => "been between phases".to_owned(),
            Self::Ended => "ended and been gone".to_owned(),
            Self::Gone => "been gone".to_owned(),
            Self::Silent => "published nothing".to_owned(),
            Self::Missing => "never published".to_owned(),
        }
    }
}

/// A rank of a run that does not advance.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StuckRank {
    /// The rank.
    pub rank: u32,
    /// What it is doing.
    pub activity: RankActivity,
    /// For how long, in nanoseconds; `None` for a rank that has never published.
    pub for_ns: Option<u64>,
    /// Its current step, as the program counts; 0 if unknown.
    pub step: u64,
    /// Where in the program it is, by the newest stack taken meanwhile.
    pub place: Option<String>,
}

/// A run that does not advance.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hang {
    /// Time without any advance, in nanoseconds.
    pub for_ns: u64,
    /// Duration of the usual step; `None` before it is known.
    pub usual_step_ns: Option<u64>,
    /// The ranks that hold up the others; all ranks if each waits for another.
    pub blocking: Vec<StuckRank>,
    /// The ranks that wait for those.
    pub waiting: Vec<StuckRank>,
    /// The machines of the ranks, if all wait for others and they are on several machines.
    pub machines: Vec<String>,
}

impl Hang {
    /// A sentence with all of it.
    pub fn sentence(&self) -> String {
        let usual =
            self.usual_step_ns.map(|ns| format!(" (a step usually takes {})", duration(ns))).unwrap_or_default();
        let holding = listed(&describe_alike(&self.blocking), "; ");
        let mut text = format!("no progress for {}{usual}: {holding}", duration(self.for_ns));
        if !self.waiting.is_empty() {
            text.push_str(&self.describe_waiting());
        } else if self.blocking.len() > 1 {
            text.push_str(&format!("; they wait for each other{}", self.describe_odd_rank()));
        }
        if self.machines.len() > 1 {
            let machines = listed(&self.machines, ", ");
            text.push_str(&format!("; or the connection between their machines is gone ({machines})"));
        }
        text
    }

    /// Who waits for the ranks that hold them up, and in what; direct waiters first.
    fn describe_waiting(&self) -> String {
        let whom = if self.blocking.len() == 1 { "it" } else { "them" };
        let mut places: Vec<(String, Vec<String>)> = Vec::new();
        for stuck in &self.waiting {
            let at = stuck.place.as_ref().map(|place| format!(", at {place}")).unwrap_or_default();
            let place = match &stuck.activity {
                RankActivity::Together(name) | RankActivity::Neighbour(name) => format!("{name}{at}"),
                _ => places.first().map(|place| place.0.clone()).unwrap_or_default(),
            };
            match places.iter_mut().find(|(known, _)| *known == place) {
                Some((_, ranks)) => ranks.push(stuck.rank.to_string()),
                None => places.push((place, vec![stuck.rank.to_string()])),
            }
        }
        let words = |(at, (place, ranks)): (usize, &(String, Vec<String>))| {
            let (word, wait) = if ranks.len() == 1 { ("rank", "waits") } else { ("ranks", "wait") };
            let (ranks, place) =
                (listed(ranks, ", "), if place.is_empty() { String::new() } else { format!(" in {place}") });
            let whom = if at == 0 { format!(" for {whom}") } else { String::new() };
            format!("; {word} {ranks} {wait}{whom}{place}")
        };
        places.iter().enumerate().map(words).collect()
    }

    /// Of ranks that all wait, the one at a different step.
    fn describe_odd_rank(&self) -> String {
        let of = |step: u64| self.blocking.iter().filter(move |stuck| stuck.step == step).count();
        let Some(usual) = self.blocking.iter().map(|stuck| stuck.step).max_by_key(|step| of(*step)) else {
            return String::new();
        };
        let odd: Vec<&StuckRank> =
            self.blocking.iter().filter(|stuck| stuck.step != usual && stuck.step != 0).collect();
        match odd.as_slice() {
            [one] if of(usual) > 1 || one.step > usual => format!(
                ": rank {} is at step {} and the others at step {}, so one of them skipped a collective",
                one.rank,
                count(one.step),
                count(usual)
            ),
            _ => String::new(),
        }
    }
}

impl StuckRank {
    /// A sentence: who, in what, for how long.
    pub fn sentence(&self) -> String {
        format!("rank {} has {}", self.rank, self.describe())
    }

    /// What it has done, to follow "rank 2 has".
    fn describe(&self) -> String {
        let time = self.for_ns.map(|ns| format!(" for {}", duration(ns))).unwrap_or_default();
        let step = if self.step == 0 { String::new() } else { format!(", at step {}", count(self.step)) };
        let loader = match &self.activity {
            RankActivity::Data(Some(loader)) => format!(" ({loader})"),
            _ => String::new(),
        };
        let place = self.place.as_ref().map(|place| format!(", in {place}")).unwrap_or_default();
        format!("{}{time}{step}{place}{loader}", self.activity.describe())
    }

    /// Whether it does the same as another, at the same place.
    fn is_like(&self, other: &Self) -> bool {
        (&self.activity, self.step, &self.place) == (&other.activity, other.step, &other.place)
    }
}

/// A sentence for each thing that ranks do, with all ranks that do it at the same place, and the longest of their times.
fn describe_alike(all: &[StuckRank]) -> Vec<String> {
    let mut groups: Vec<Vec<&StuckRank>> = Vec::new();
    for stuck in all {
        match groups.iter_mut().find(|group| group[0].is_like(stuck)) {
            Some(group) => group.push(stuck),
            None => groups.push(vec![stuck]),
        }
    }
    let sentence = |group: &Vec<&StuckRank>| match group.as_slice() {
        [one] => one.sentence(),
        _ => {
            let ranks: Vec<String> = group.iter().map(|stuck| stuck.rank.to_string()).collect();
            let longest =
                group.iter().max_by_key(|stuck| stuck.for_ns).map_or_else(String::new, |stuck| stuck.describe());
            format!("ranks {} have {longest}", listed(&ranks, ", "))
        }
    };
    groups.iter().map(sentence).collect()
}

/// At most eight of these, and how many more there are.
fn listed(texts: &[String], between: &str) -> String {
    const MAX_ITEMS: usize = 8;
    let more = texts.len().saturating_sub(MAX_ITEMS);
    let shown = texts.iter().take(MAX_ITEMS).cloned().collect::<Vec<String>>().join(between);
    if more > 0 { format!("{shown} and {more} more") } else { shown }
}
