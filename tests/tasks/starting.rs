//! Beginning: with a command that is not quite right, and with the demo.

use super::person::Person;

#[test]
fn a_script_is_started_by_the_command_that_the_error_suggests() {
    let mut person = Person::new();
    person.sessions.file("train.sh", b"exec ./train\n");
    let (said, code) = person.run("gnntop run train.sh");
    assert_eq!(code, 2, "{said}");
    let command = said.lines().find_map(|line| line.split_once("program of your own: ")).map(|(_, command)| command);
    person.open(command.unwrap_or_else(|| panic!("no command in\n{said}")).trim());
    person.expect_step(60);
    person.press("q quit", "q");
    assert_eq!(person.wait_for_prompt(), 0);
    person.read("gnntop stop", &["has ended"]);
}

#[test]
fn the_demo_leads_to_a_slow_step() {
    let mut person = Person::new();
    person.open("gnntop demo gc");
    person.follow("a step in thirty is slow: `2`", "2");
    person.expect("gc-bound");
    person.find_in_help("the slowest step; again: the next slowest", "s");
    person.expect(" selected: ");
    person.press("Enter more", "\r");
    person.expect("\"garbage collection\" in step");
    person.press("q quit", "q");
    assert_eq!(person.wait_for_prompt(), 0);
}
