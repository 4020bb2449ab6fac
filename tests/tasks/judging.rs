//! Finding out that a loader is slow, comparing with the run after the repair, and gating on it.

use super::person::Person;

#[test]
fn finding_a_slow_loader() {
    let mut person = Person::new();
    person.open("LOADER_MS=40 gnntop run -- ./train");
    person.expect_step(60);
    person.expect("data-bound");
    person.show_view("8 findings");
    person.expect("waiting for data");
    // What to do about it stands there too.
    person.expect("try");
    person.press("q quit", "q");
    assert_eq!(person.wait_for_prompt(), 0);
    person.read("gnntop stop", &["has ended"]);
}

#[test]
fn comparing_with_the_run_after_the_repair_and_gating() {
    let mut person = Person::new();
    for (name, loader_ms) in [("slow", 30), ("quick", 1)] {
        let run = format!("LOADER_MS={loader_ms} STEPS=120 gnntop run --plain --record {name}.gnntop -- ./train");
        person.read(&run, &[&format!("recorded {name}.gnntop")]);
    }
    let said = person.read("gnntop compare slow.gnntop quick.gnntop | head -16", &["data wait", "faster"]);
    let ratio = said.split_once("B does ").and_then(|(_, after)| after.split_once(" x the work of A"));
    assert!(ratio.and_then(|(ratio, _)| ratio.parse::<f64>().ok()).is_some_and(|ratio| ratio > 1.0), "{said}");
    let rule = "--max data_wait.share=20%";
    let (said, code) = person.run(&format!("gnntop check slow.gnntop {rule}"));
    assert_eq!(code, 3, "{said}");
    assert!(said.contains("broken"), "{said}");
    person.read(&format!("gnntop check quick.gnntop {rule}"), &["data_wait.share"]);
    let (said, code) = person.run("gnntop check slow.gnntop --baseline quick.gnntop");
    assert_eq!(code, 3, "{said}");
}
