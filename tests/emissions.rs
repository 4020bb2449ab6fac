//! `export --to emissions` as CodeCarbon itself sees it: read by pandas, and appended to without being moved away.
//!
//! Needs a Python with `codecarbon==3.3.2` (and pandas, which it brings): `$GNNTOP_CODECARBON_PYTHON`, else `python3`.

use std::process::Command;

use crate::sessions::Sessions;
use gnntop_fixtures::TrainingRun;

const READ_BACK: &str = r#"
import os, sys
import pandas
from codecarbon.output_methods.emissions_data import EmissionsData
from codecarbon.output_methods.file import FileOutput
folder = sys.argv[1]
path = os.path.join(folder, "emissions.csv")
table = pandas.read_csv(path)
fields = list(EmissionsData.__dataclass_fields__)
assert list(table.columns) == fields, (list(table.columns), fields)
assert len(table) == 1 and table.duration[0] > 0, table
assert pandas.isna(table.gpu_energy[0]), "what is not known is empty"
row = EmissionsData(**{field: table[field][0] for field in fields})
FileOutput(output_file_name="emissions.csv", output_dir=folder, on_csv_write="append").out(row, row)
assert len(pandas.read_csv(path)) == 2, "appended"
assert sorted(os.listdir(folder)) == ["emissions.csv", "emissions.quality.csv"], os.listdir(folder)
"#;

#[test]
fn codecarbon_reads_and_appends_to_the_file() {
    let python = std::env::var("GNNTOP_CODECARBON_PYTHON").unwrap_or_else(|_| "python3".to_owned());
    let version = "import codecarbon; assert codecarbon.__version__ == '3.3.2'";
    let has_it = Command::new(&python).args(["-c", version]).output().is_ok_and(|output| output.status.success());
    if !has_it {
        println!("skipped: {python} has no codecarbon 3.3.2; name one that has in GNNTOP_CODECARBON_PYTHON");
        return;
    }
    let sessions = Sessions::new();
    let recording = sessions.file("pna.gnntop", &TrainingRun::default().bytes());
    let folder = tempfile::tempdir().unwrap();
    let emissions = folder.path().join("emissions.csv");
    let paths = [recording.to_str().unwrap(), emissions.to_str().unwrap()];
    let flags = ["--region", "CA-QC", "--cpu-watts", "40", "--machine"];
    let ran = sessions.run(["export", paths[0], "--to", "emissions", "-o", paths[1]].into_iter().chain(flags));
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let read = Command::new(&python).args(["-c", READ_BACK]).arg(folder.path()).output().unwrap();
    assert!(read.status.success(), "{}", String::from_utf8_lossy(&read.stderr));
}

#[test]
fn unknown_region_is_an_error() {
    let sessions = Sessions::new();
    let recording = sessions.file("pna.gnntop", &TrainingRun::default().bytes());
    let recording = recording.to_str().unwrap();
    for command in [&["report", recording][..], &["export", recording, "--to", "emissions"]] {
        let ran = sessions.run(command.iter().copied().chain(["--region", "Atlantis"]));
        assert_eq!((ran.code, ran.out.as_str()), (Some(2), ""), "{ran:?}");
        assert!(ran.err.contains("no carbon intensity is known for `Atlantis`"), "{ran:?}");
    }
    let wrong = sessions.run(["report", recording, "--pue", "0.5"]);
    assert_eq!(wrong.code, Some(2), "{wrong:?}");
}

#[test]
fn report_changes_with_assumptions() {
    let sessions = Sessions::new();
    let recording = sessions.file("pna.gnntop", &TrainingRun::default().bytes());
    let recording = recording.to_str().unwrap();
    let json = |flags: &[&str]| {
        let ran = sessions.run(["report", recording, "--json"].into_iter().chain(flags.iter().copied()));
        serde_json::from_str::<serde_json::Value>(&ran.out).unwrap()["energy"].clone()
    };
    assert!(json(&[])["carbon"]["reason"].is_string() && json(&[])["carbon"]["kilograms"].is_null());
    let energy = json(&["--cpu-watts", "40", "--ram-watts", "3", "--region", "CA-QC", "--pue", "1.5"]);
    let joules = energy["total"]["device"]["joules"].as_f64().unwrap();
    let kilograms = energy["carbon"]["kilograms"][0].as_f64().unwrap();
    assert!(joules > 0.0 && (kilograms - joules / 3.6e6 * 1.5 * 0.03123).abs() < 1e-9, "{energy}");
    assert_eq!(energy["total"]["device"]["label"], "modelled");
    assert_eq!(energy["total"]["without_device"][0], "gpu", "what is not known is named");
}
