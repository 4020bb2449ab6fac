//! The result, for a terminal, a ticket and a program.

use serde_json::{Value, json};

use super::sides::{NAMES, Sides};
use gnntop_analysis::comparison::{Losses, MeasuredPair, Proof, Proven};
use gnntop_analysis::figures::{counted, percent, quantity};

/// What was found.
pub(super) struct ResultCard<'a> {
    pub sides: &'a Sides,
    /// A smaller difference is none, as a share.
    pub within: f64,
    pub pairs: &'a [MeasuredPair],
    /// Pairs that were disturbed and run again.
    pub again: usize,
    pub proven: &'a Proven,
    pub losses: Losses,
}

impl ResultCard<'_> {
    /// The conclusion in one line.
    fn headline(&self) -> String {
        let Proven { ratio, interval: (low, high), pairs, proof } = self.proven;
        let interval = format!("{low:.3} to {high:.3} x, {}", counted(*pairs as u64, "pair", "pairs"));
        match proof {
            Proof::Faster => format!("faster: the candidate does {ratio:.3} x the work in the same time ({interval})"),
            Proof::Slower => format!("slower: the candidate does {ratio:.3} x the work in the same time ({interval})"),
            Proof::NoDifference => format!("no difference greater than {} ({interval})", percent(self.within)),
            Proof::NotEnough => {
                format!("not enough evidence: {ratio:.3} x ({interval}); longer runs or more --pairs may decide")
            }
        }
    }

    /// Whether both learn the same.
    fn losses(&self) -> String {
        match self.losses {
            Losses::Unknown => "losses: not compared, because the programs do not report them".to_owned(),
            Losses::Equal => "losses: equal to the last bit".to_owned(),
            Losses::Close(apart) => format!("losses: within {apart:.1e} of each other"),
            Losses::Different { step, first, second } => format!(
                "losses: DIFFERENT from step {step} on, {first} and {second}: the candidate learns something else, or \
                 the seeds are not fixed"
            ),
        }
    }

    /// What was run again, and what disturbed pairs that count.
    fn disturbances(&self) -> Vec<String> {
        let again = (self.again > 0).then(|| {
            format!(
                "{} disturbed by other programs, and run again",
                counted(self.again as u64, "pair was", "pairs were")
            )
        });
        let counting = self.pairs.iter().filter(|pair| !pair.rivals.is_empty()).count() as u64;
        let counts = (counting > 0).then(|| {
            format!(
                "{} disturbed by other programs and counts all the same",
                counted(counting, "pair was", "pairs were")
            )
        });
        again.into_iter().chain(counts).collect()
    }

    fn rows(&self) -> Vec<[String; 4]> {
        let row = |(at, pair): (usize, &MeasuredPair)| {
            let [a, b] = pair.per_s.map(|per_s| format!("{} {}/s", quantity(per_s), pair.unit));
            [(at + 1).to_string(), a, b, format!("{:.3} x", pair.ratio())]
        };
        self.pairs.iter().enumerate().map(row).collect()
    }

    pub(super) fn to_text(&self) -> String {
        let mut lines = vec![self.headline(), self.losses()];
        lines.extend(self.disturbances());
        lines.extend((0..2).map(|side| format!("{}: {}", NAMES[side], self.sides.titles[side])));
        lines.extend(
            self.rows().into_iter().map(|[at, a, b, ratio]| format!("  pair {at:>2}  {a:>20}  {b:>20}  {ratio}")),
        );
        lines.join("\n")
    }

    pub(super) fn to_markdown(&self) -> String {
        let mut text = format!("**{}**\n\n{}\n", self.headline(), self.losses());
        for line in self.disturbances() {
            text.push_str(&format!("\n{line}\n"));
        }
        let cell = |title: &str| title.replace('|', "\\|").replace('`', "'");
        let [a, b] = self.sides.titles.each_ref().map(|title| cell(title));
        text.push_str(&format!("\n| pair | baseline: `{a}` | candidate: `{b}` | ratio |\n|---:|---:|---:|---:|\n"));
        for row in self.rows() {
            text.push_str(&format!("| {} |\n", row.join(" | ")));
        }
        text
    }

    pub(super) fn to_json(&self) -> Value {
        json!({
            "summary": self.headline(),
            "verdict": self.proven.proof,
            "ratio": self.proven.ratio,
            "interval": self.proven.interval,
            "within": self.within,
            "losses": self.losses,
            "baseline": self.sides.titles[0],
            "candidate": self.sides.titles[1],
            "pairs": self.pairs,
            "pairs_run_again": self.again,
        })
    }
}
