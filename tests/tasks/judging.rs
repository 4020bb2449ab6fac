//! Finding out that a loader is slow, comparing with the run after the repair, and gating on it.

use super::person::Person;

#[test]
fn finding_a_slow_loader() {
    let mut person = Person::sits_down();
    person.opens("LOADER_MS=40 gnntop run -- ./train");
    person.sees("step 60");
    person.sees("data-bound");
    person.turns_to("8 findings");
    person.sees("waiting for data");
    // What to do about it stands there too.
    person.sees("try");
    person.presses("q quit", "q");
    assert_eq!(person.is_back(), 0);
    person.reads("gnntop stop", &["has ended"]);
}

#[test]
fn comparing_with_the_run_after_the_repair_and_gating() {
    let mut person = Person::sits_down();
    for (name, loader_ms) in [("slow", 30), ("quick", 1)] {
        let run = format!("LOADER_MS={loader_ms} STEPS=120 gnntop run --plain --record {name}.gnntop -- ./train");
        person.reads(&run, &[&format!("recorded {name}.gnntop")]);
    }
    let said = person.reads("gnntop compare slow.gnntop quick.gnntop | head -16", &["data wait", "faster"]);
    let ratio = said.split_once("B does ").and_then(|(_, after)| after.split_once(" x the work of A"));
    assert!(ratio.and_then(|(ratio, _)| ratio.parse::<f64>().ok()).is_some_and(|ratio| ratio > 1.0), "{said}");
    let rule = "--max data_wait.share=20%";
    let (said, code) = person.runs(&format!("gnntop check slow.gnntop {rule}"));
    assert_eq!(code, 3, "{said}");
    assert!(said.contains("broken"), "{said}");
    person.reads(&format!("gnntop check quick.gnntop {rule}"), &["data_wait.share"]);
    let (said, code) = person.runs("gnntop check slow.gnntop --baseline quick.gnntop");
    assert_eq!(code, 3, "{said}");
}
