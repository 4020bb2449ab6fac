//! `gnntop export --to parquet`: read back by the format's own library, and by pyarrow or DuckDB where Python has one.

use std::fs::File;
use std::path::Path;
use std::process::Command;

use crate::sessions::Sessions;
use gnntop_fixtures::TrainingRun;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::Field;
use serde_json::{Value, json};

/// The same recording as Parquet, at `a.parquet`, and as NDJSON.
fn exported(steps: u64) -> (Sessions, Vec<Value>) {
    let sessions = Sessions::new();
    sessions.file("a.gnntop", &TrainingRun { steps, ..TrainingRun::default() }.bytes());
    let ran = sessions.run(["export", "a.gnntop", "--to", "parquet", "-o", "a.parquet"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let lines = sessions.run(["export", "a.gnntop", "--to", "ndjson"]);
    let text = String::from_utf8(lines.out_bytes).unwrap();
    (sessions, text.lines().map(|line| serde_json::from_str(line).unwrap()).collect())
}

fn value(field: &Field) -> Value {
    match field {
        Field::Null => Value::Null,
        Field::Str(text) => json!(text),
        Field::Long(n) => json!(n),
        Field::ULong(n) => json!(n),
        Field::Double(value) => json!(value),
        other => panic!("{other:?} is of no type that the export has"),
    }
}

#[test]
fn parquet_rows_equal_ndjson_lines() {
    // More than one row group.
    let (sessions, lines) = exported(9_000);
    let file = SerializedFileReader::new(File::open(sessions.path().join("a.parquet")).unwrap()).unwrap();
    assert!(file.num_row_groups() > 1, "{} rows lie in one group", lines.len());
    let mut rows = 0;
    for (row, line) in file.get_row_iter(None).unwrap().zip(&lines) {
        for (name, field) in row.unwrap().get_column_iter() {
            let told = value(field);
            match name.as_str() {
                // Readings of sensors are whole numbers, which lines have as their value.
                "reading" => assert!(told.is_null() || told == line["value"], "{line}"),
                // serde_json reads a number to within its last bit.
                "value" => {
                    let apart =
                        told.as_f64().zip(line["value"].as_f64()).map(|(a, b)| (a - b).abs() / b.abs().max(1e-300));
                    assert!(apart.map_or(told == line["value"], |apart| apart < 1e-15), "{told} in {line}");
                }
                name => assert_eq!(told, line[name], "{name} of {line}"),
            }
        }
        rows += 1;
    }
    assert_eq!((rows, file.metadata().file_metadata().num_rows()), (lines.len(), lines.len() as i64));
    let facts = file.metadata().file_metadata().key_value_metadata().unwrap();
    assert!(facts.iter().any(|fact| fact.key == "gnntop.session" && fact.value.is_some()), "{facts:?}");
}

#[test]
fn parquet_is_smaller_than_ndjson() {
    let (sessions, _) = exported(2_000);
    sessions.run(["export", "a.gnntop", "--to", "csv", "-o", "a.csv"]);
    let len = |name: &str| std::fs::metadata(sessions.path().join(name)).unwrap().len();
    assert!(len("a.parquet") * 3 < len("a.csv"), "{} against {} bytes", len("a.parquet"), len("a.csv"));
}

const READ: &str = "
import json, sys
path, counts = sys.argv[1], {}
try:
    import pyarrow.parquet as parquet
    table = parquet.read_table(path)
    for kind in table.column('kind').to_pylist():
        counts[kind] = counts.get(kind, 0) + 1
    ends = sum(table.column('end_ns').to_pylist())
except ImportError:
    import duckdb
    counts = dict(duckdb.sql(f\"select kind, count(*) from '{path}' group by kind\").fetchall())
    ends = int(duckdb.sql(f\"select sum(end_ns) from '{path}'\").fetchone()[0])
print(json.dumps({'counts': counts, 'ends': str(ends)}))
";

/// What Python's reader counts, and the sum of all ends; or why there is no reader.
fn by_python(path: &Path) -> Result<Value, String> {
    let python = std::env::var("GNNTOP_PYTHON").unwrap_or_else(|_| "python3".to_owned());
    let ran =
        Command::new(&python).arg("-c").arg(READ).arg(path).output().map_err(|error| format!("{python}: {error}"))?;
    let said = String::from_utf8_lossy(&ran.stderr);
    match said.contains("ModuleNotFoundError") {
        true => Err(format!("{python} has neither pyarrow nor duckdb; set GNNTOP_PYTHON to one that has")),
        false => Ok(serde_json::from_slice(&ran.stdout).unwrap_or_else(|_| panic!("{said}"))),
    }
}

#[test]
fn python_reads_the_same_rows() {
    let (sessions, lines) = exported(500);
    let read = match by_python(&sessions.path().join("a.parquet")) {
        Ok(read) => read,
        Err(why) => return println!("skipped: {why}"),
    };
    for kind in ["phase", "span", "step", "counter", "mark", "sample"] {
        let count = lines.iter().filter(|line| line["kind"] == kind).count();
        assert_eq!(read["counts"][kind].as_u64().unwrap_or(0), count as u64, "{kind}");
    }
    let ends: u128 = lines.iter().map(|line| u128::from(line["end_ns"].as_u64().unwrap())).sum();
    assert_eq!(read["ends"], ends.to_string());
}

#[test]
fn wide_parquet_equals_wide_csv() {
    let (sessions, _) = exported(500);
    let ran = sessions.run(["export", "a.gnntop", "--to", "parquet", "--wide", "-o", "wide.parquet"]);
    assert!(ran.code == Some(0) && ran.err.contains("500 steps"), "{ran:?}");
    let text = sessions.run(["export", "a.gnntop", "--to", "csv", "--wide"]).out;
    let mut reader = csv::Reader::from_reader(text.as_bytes());
    let heads: Vec<String> = reader.headers().unwrap().iter().map(str::to_owned).collect();
    let file = SerializedFileReader::new(File::open(sessions.path().join("wide.parquet")).unwrap()).unwrap();
    let mut rows = 0;
    for (row, line) in file.get_row_iter(None).unwrap().zip(reader.records()) {
        let (row, line) = (row.unwrap(), line.unwrap());
        for ((name, field), (head, text)) in row.get_column_iter().zip(heads.iter().zip(&line)) {
            let told = value(field);
            let same = if text.is_empty() { told.is_null() } else { told.as_f64() == text.parse::<f64>().ok() };
            assert!(same && name == head, "{name}: {told} and {head}: {text}");
        }
        rows += 1;
    }
    assert_eq!(rows, 500);
}
