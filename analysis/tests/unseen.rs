//! Programs that nobody here had seen when they were labelled (`recordings/unseen`, `recordings/unseen2`): what is named of them stays
//! named. Their authors' labels are no longer unseen by those who change the checks (docs/findings.md).

use std::path::Path;

use crate::labelled::score::score_all;

/// What holds for a folder of recordings: how many there are, and clean ones; kinds of finding that are not on the label, over all; clean
/// ones that have such a kind. The machine may have been busy, which each label allows.
const HELD: [(&str, usize, usize, usize, usize); 2] = [("unseen", 36, 12, 6, 3), ("unseen2", 24, 10, 21, 9)];

#[test]
fn programs_that_nobody_had_seen_keep_their_findings() {
    for (folder, all, clean, most_wrong, most_clean_with_one) in HELD {
        let scored = score_all(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../recordings").join(folder));
        // True of nearly every run.
        let wrong = |at: usize| scored[at].wrong().into_iter().filter(|kind| *kind != "warm-up").count();
        let missed: usize = scored.iter().map(|one| one.missed().len()).sum();
        let is_clean = |at: &usize| scored[*at].name.starts_with("clean-");
        let clean_with_one = (0..scored.len()).filter(is_clean).filter(|at| wrong(*at) > 0).count();
        assert_eq!((scored.len(), (0..scored.len()).filter(is_clean).count()), (all, clean));
        let all_wrong: usize = (0..scored.len()).map(wrong).sum();
        let figures = (missed == 0, all_wrong <= most_wrong, clean_with_one <= most_clean_with_one);
        let faults: Vec<_> = scored.iter().map(|one| (&one.name, one.missed(), one.wrong())).collect();
        assert_eq!(
            figures,
            (true, true, true),
            "{missed} missed, {all_wrong} false, {clean_with_one} clean: {faults:#?}"
        );
    }
}
