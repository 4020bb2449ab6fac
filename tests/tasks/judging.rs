//! Finding out that a loader is slow, comparing with the run after the repair, and gating on it.

use super::person::Person;

#[test]
fn finding_a_slow_loader_comparing_and_gating() {
    let mut person = Person::sits_down();
    person.reads("STEPS=200 LOADER_MS=30 gnntop run --plain --record slow.gnntop -- ./train", &[]);
    person.reads("STEPS=200 gnntop run --plain --record quick.gnntop -- ./train", &[]);
    person.reads("gnntop report slow.gnntop | grep -i -A4 findings", &["data"]);
    person.reads("gnntop compare slow.gnntop quick.gnntop", &["B does ", "data wait", "faster"]);
    let rule = "--max data_wait.share=20%";
    let (said, code) = person.runs(&format!("gnntop check slow.gnntop {rule}"));
    assert_eq!(code, 3, "{said}");
    assert!(said.contains("broken"), "{said}");
    person.reads(&format!("gnntop check quick.gnntop {rule}"), &["data_wait.share"]);
    let (said, code) = person.runs("gnntop check slow.gnntop --baseline quick.gnntop");
    assert_eq!(code, 3, "{said}");
}
