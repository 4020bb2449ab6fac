//! Random numbers that are the same in every run: noise of quiet machines and of busy ones.

/// SplitMix64 (Steele, Lea and Flood, OOPSLA 2014): tiny, and every seed gives another sequence.
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0xD134_2543_DE82_EF95).wrapping_add(1))
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// From 0 to 1, without either.
    pub fn unit(&mut self) -> f64 {
        ((self.next() >> 12) as f64 + 0.5) / (1u64 << 52) as f64
    }

    /// Mean 0, standard deviation 1 (Box and Muller).
    pub fn normal(&mut self) -> f64 {
        (-2.0 * self.unit().ln()).sqrt() * (std::f64::consts::TAU * self.unit()).cos()
    }

    pub fn chance(&mut self, share: f64) -> bool {
        self.unit() < share
    }

    pub fn between(&mut self, low: f64, high: f64) -> f64 {
        low + (high - low) * self.unit()
    }

    /// About `value`, give or take a share of it.
    pub fn about(&mut self, value: f64, spread: f64) -> f64 {
        value * (1.0 + spread * self.normal()).max(0.2)
    }

    /// A median of `value` and a long tail to the right (log-normal).
    pub fn skewed(&mut self, value: f64, sigma: f64) -> f64 {
        value * (sigma * self.normal()).exp()
    }

    /// At least `least`, with a tail that falls as a power (Pareto).
    pub fn tail(&mut self, least: f64, power: f64) -> f64 {
        least * self.unit().powf(-1.0 / power)
    }
}
