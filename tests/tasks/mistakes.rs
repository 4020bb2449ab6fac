//! Ten mistakes. Each is answered with what is wrong and what to do, and with an exit code that a script can tell.

use gnntop_fixtures::TrainingRun;

use super::person::Person;

#[test]
fn ten_mistakes_get_helpful_errors() {
    let mut person = Person::new();
    person.sessions.file("a.gnntop", &TrainingRun::default().bytes());
    person.sessions.file("notes.txt", b"a shopping list");
    let mistakes: [(&str, u32, &[&str]); 10] = [
        ("gnntop reprot a.gnntop", 2, &["similar", "report"]),
        ("gnntop report b.gnntop", 1, &["b.gnntop", "No such file"]),
        ("gnntop replay notes.txt", 1, &["not a recording"]),
        ("gnntop attach pan", 1, &["no session named pan"]),
        ("gnntop run -- ./trian", 127, &["cannot start ./trian"]),
        ("gnntop check a.gnntop --max foward.p99=12ms", 2, &["did you mean forward?"]),
        ("gnntop export a.gnntop --to parket -o a.parquet", 2, &["parquet"]),
        ("gnntop export a.gnntop --to csv -o a.gnntop", 1, &["a.gnntop"]),
        ("gnntop compare a.gnntop", 2, &["another recording"]),
        ("gnntop stop 4194305", 1, &["no running program 4194305"]),
    ];
    for (command, code, words) in mistakes {
        let (said, got) = person.run(command);
        assert_eq!(got, code, "{command}:\n{said}");
        words.iter().for_each(|word| assert!(said.contains(word), "{command}: no {word:?} in\n{said}"));
    }
}
