//! Numbers in one's own hands: the median of a phase, in pandas or, where that is not installed, in Python alone.

use gnntop_fixtures::TrainingRun;

use super::person::Person;

const PANDAS: &str = "import pandas; print('median', pandas.read_csv('a.csv')['forward_ns'].median() / 1e6)";
const CSV: &str = "import csv, statistics; rows = csv.DictReader(open('a.csv')); \
                   print('median', statistics.median(int(row['forward_ns']) for row in rows) / 1e6)";

#[test]
fn the_median_of_forward_in_a_line_of_python() {
    let mut person = Person::new();
    person.sessions.file("a.gnntop", &TrainingRun::default().bytes());
    let (_, no_python) = person.run("python3 --version");
    if no_python != 0 {
        eprintln!("skipped: there is no python3");
        return;
    }
    person.read("gnntop export a.gnntop --to csv --wide -o a.csv", &[]);
    let (_, no_pandas) = person.run("python3 -c 'import pandas'");
    let program = if no_pandas == 0 { PANDAS } else { CSV };
    // Steps of full batches take 10 ms in forward.
    person.read(&format!("python3 -c \"{program}\""), &["median 10.0"]);
}
