//! Whether all ranks were started with the same settings. Where they were not, they do not make the same calls, and would
//! wait for each other without an end.

use super::{Collective, CollectiveError};

/// What every rank of a training must be started with alike: names and values.
pub type Settings = Vec<(&'static str, String)>;

/// Compares this rank's settings with those of rank 0. A call that all ranks make.
///
/// # Errors
/// This rank has other settings, or a rank is gone. The others hear of it as of any rank that fails.
pub(super) fn check(ranks: &dyn Collective, settings: &Settings) -> Result<(), CollectiveError> {
    let own = written(settings);
    // Bytes are numbers that f32 holds exactly.
    let mut first: Vec<f32> = own.bytes().map(f32::from).collect();
    let length = ranks.gather(first.len() as f64)?[0] as usize;
    first.resize(length, 0.0);
    ranks.broadcast(0, &mut first)?;
    let first: Vec<u8> = first.into_iter().map(|byte| byte as u8).collect();
    let first = String::from_utf8_lossy(&first);
    let differs = (own != first).then(|| difference(&first, &own));
    // Nobody goes on before all have looked: else the calls of those that do would meet those of who does not.
    match differs {
        Some(what) => Err(CollectiveError::OtherSettings { rank: ranks.rank(), what }),
        None => ranks.barrier(),
    }
}

/// A line a setting.
fn written(settings: &Settings) -> String {
    settings.iter().map(|(name, value)| format!("{name} {}\n", value.replace('\n', " "))).collect()
}

/// In words, the first line in which the two differ.
fn difference(first: &str, own: &str) -> String {
    let mut lines = first.lines().zip(own.lines());
    match lines.find(|(first, own)| first != own) {
        Some((first, own)) => format!("{own}, there {first}"),
        None => "another number of settings: are they of the same version?".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::thread_ranks;
    use super::*;

    /// What ranks with these batch sizes are told.
    fn told(batches: &[u32]) -> Vec<Result<(), CollectiveError>> {
        std::thread::scope(|scope| {
            let on_rank = |(rank, batch): (super::super::ThreadRank, u32)| {
                let settings = vec![("workload", "sage".to_owned()), ("--batch-size", batch.to_string())];
                let checked = check(&rank, &settings);
                if checked.is_err() {
                    rank.leave("has failed");
                }
                checked
            };
            let ranks = thread_ranks(batches.len(), false).into_iter().zip(batches.iter().copied());
            let threads: Vec<_> = ranks.map(|rank| scope.spawn(move || on_rank(rank))).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        })
    }

    #[test]
    fn ranks_with_the_same_settings_go_on() {
        assert_eq!(told(&[512, 512, 512]), [Ok(()), Ok(()), Ok(())]);
    }

    #[test]
    fn a_rank_with_other_settings_is_named_with_them() {
        // Of another length too: what rank 0 says counts.
        for (other, words) in [(32, "--batch-size 32, there --batch-size 512"), (513, "--batch-size 513, there")] {
            let told = told(&[512, 512, other]);
            let error = told[2].clone().unwrap_err().to_string();
            assert!(error.starts_with("rank 2 was started with other settings than rank 0: here "), "{error}");
            assert!(error.contains(words), "{error}");
            assert!(
                told[..2].iter().all(|told| matches!(told, Err(CollectiveError::Gone { rank: 2, .. }))),
                "{told:?}"
            );
        }
    }
}
