//! A training that something has killed: why, by the list.

use super::person::Person;

#[test]
fn saying_what_killed_a_training() {
    let mut person = Person::new();
    person.open("gnntop run -- ./train");
    person.expect_step(60);
    person.press("q quit", "q");
    assert_eq!(person.wait_for_prompt(), 0);
    let said = person.screen();
    let pid = said.split_once("gnntop stop ").and_then(|(_, rest)| rest.split_whitespace().next());
    person.run(&format!("kill -9 {}; sleep 1", pid.unwrap_or_else(|| panic!("no pid in\n{said}"))));
    person.read("gnntop list", &["train", "killed by SIGKILL"]);
}
