//! Saying which run is meant: by the name of its script, and where two have the same name.

use super::person::Person;

#[test]
fn a_script_goes_by_its_name_in_every_command() {
    let mut person = Person::new();
    person.sessions.file("train.sh", b"exec ./train\n");
    person.open("gnntop run -- sh train.sh");
    person.expect_step(60);
    person.press("q quit", "q");
    assert_eq!(person.wait_for_prompt(), 0);
    let said = person.read("gnntop list", &["live"]);
    let name = said.lines().find(|line| line.contains("live")).and_then(|line| line.split_whitespace().next());
    let name = name.unwrap_or_else(|| panic!("no name in\n{said}"));
    person.open(&format!("gnntop attach {name}"));
    person.expect("● live");
    person.press("q quit", "q");
    assert_eq!(person.wait_for_prompt(), 0);
    person.read(&format!("gnntop record {name} --last 5s -o a.gnntop"), &["a.gnntop"]);
    person.read(&format!("gnntop stop {name}"), &["has ended"]);
    person.read(&format!("gnntop report {name} | grep ^backward"), &["ms"]);
}

#[test]
fn one_of_two_runs_of_the_same_name_is_stopped_by_its_pid() {
    let mut person = Person::new();
    for _ in 0..2 {
        person.open("gnntop run -- ./train");
        person.expect_step(60);
        person.press("q quit", "q");
        assert_eq!(person.wait_for_prompt(), 0);
    }
    let (said, code) = person.run("gnntop stop train");
    assert_eq!(code, 1, "{said}");
    let pid = said.split(|c: char| !c.is_ascii_digit()).find(|word| word.len() > 2);
    person.read(&format!("gnntop stop {}", pid.unwrap_or_else(|| panic!("no pid in\n{said}"))), &["has ended"]);
    person.read("gnntop stop train", &["has ended"]);
}
