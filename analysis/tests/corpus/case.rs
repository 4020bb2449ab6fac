//! A run of the corpus with what is to be found in it.

use gnntop_analysis::findings::FindingKind;

/// How strong the cause is, beside what a person would want to know of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Strength {
    /// There is none: nothing may be found.
    Clean,
    /// A little less: it may be found or not.
    Below,
    /// It must be found.
    At,
    /// More than that: it must be found.
    Above,
}

impl Strength {
    pub const GROWING: [Self; 3] = [Self::Below, Self::At, Self::Above];
}

/// A run and what is to be found in it.
#[derive(Debug)]
pub struct Case {
    /// Runs with the same cause in different strengths are a class.
    pub class: &'static str,
    pub strength: Strength,
    /// The strength in numbers, for the table.
    pub amount: String,
    pub stream: Vec<u8>,
    /// What must be found; of a strength below, what may be.
    pub expect: Vec<FindingKind>,
    /// What is true as well, and counts neither way.
    pub allowed: Vec<FindingKind>,
    /// What the findings, or the verdict, must say.
    pub expected_texts: Vec<String>,
    /// What neither may say.
    pub forbidden_texts: Vec<&'static str>,
    /// The steps at which spikes must be found, and no others.
    pub spikes: Option<Vec<u64>>,
}

impl Case {
    pub fn new(class: &'static str, stream: Vec<u8>) -> Self {
        Self {
            class,
            strength: Strength::Clean,
            amount: String::new(),
            stream,
            expect: Vec::new(),
            allowed: Vec::new(),
            expected_texts: Vec::new(),
            forbidden_texts: Vec::new(),
            spikes: None,
        }
    }

    pub fn expect(mut self, kind: FindingKind) -> Self {
        self.expect.push(kind);
        self
    }

    pub fn allow(mut self, kind: FindingKind) -> Self {
        self.allowed.push(kind);
        self
    }

    pub fn expect_text(mut self, text: impl Into<String>) -> Self {
        self.expected_texts.push(text.into());
        self
    }

    pub fn forbid_text(mut self, text: &'static str) -> Self {
        self.forbidden_texts.push(text);
        self
    }

    pub fn expect_spikes(mut self, steps: impl IntoIterator<Item = u64>) -> Self {
        self.spikes = Some(steps.into_iter().collect());
        self
    }

    pub fn name(&self) -> String {
        format!("{} {:?} {}", self.class, self.strength, self.amount).trim_end().to_owned()
    }
}

/// The same cause in three strengths, each with what it is in numbers.
pub fn strengths<T: Copy>(amounts: [(T, &str); 3], case: impl Fn(T) -> Case) -> Vec<Case> {
    let with =
        |(strength, (amount, text)): (Strength, (T, &str))| Case { strength, amount: text.to_owned(), ..case(amount) };
    Strength::GROWING.into_iter().zip(amounts).map(with).collect()
}
