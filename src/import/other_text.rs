//! Text that is no table: what it is and what to do with it; and logs whose steps have a time, which are made into one.

use std::collections::HashMap;
use std::io::{self, BufRead, Write};

use serde_json::Value;

/// Bytes at the beginning by which a text is recognised.
pub(super) const SNIFF_LEN: u64 = 64 * 1024;
/// What MLPerf's lines begin with.
const MLLOG: &str = ":::MLLOG";
/// Words in a line of a log that give its level.
const LEVELS: [&str; 8] = ["INFO", "DEBUG", "WARNING", "WARN", "ERROR", "[info]", "I/", "INFO:"];

/// What a text is, if it is no table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OtherText {
    /// MLPerf's log.
    MlPerf,
    /// `trainer_state.json` of transformers.
    TrainerState,
    /// Nothing that has steps, and what to do.
    Useless(&'static str),
}

impl OtherText {
    /// What begins so.
    pub(super) fn recognise(head: &str) -> Option<Self> {
        let head = head.trim_start_matches('\u{feff}').trim_start();
        let first = head.lines().next().unwrap_or_default();
        if head.lines().any(|line| line.contains(MLLOG)) {
            return Some(Self::MlPerf);
        }
        Some(Self::Useless(match head.as_bytes().first() {
            Some(b'{') if head.contains("\"log_history\"") => return Some(Self::TrainerState),
            Some(b'{' | b'[') if head.contains("\"traceEvents\"") || head.contains("\"ph\":") => {
                "is a trace in Chrome's format: gnntop import chrome FILE -o RECORDING"
            }
            Some(b'{') if first.trim_end().ends_with('}') => {
                "has a JSON object in each line: write it as CSV, with pandas.read_json(FILE, lines=True).to_csv(...)"
            }
            Some(b'{' | b'[') => "is JSON: write its steps as CSV, a row each, with pandas.DataFrame(...).to_csv(...)",
            _ if head.starts_with("#[Histogram log format") || first.starts_with("\"StartTimestamp\"") => {
                "is an HdrHistogram log, which counts durations and has no steps: import the durations themselves, as CSV"
            }
            _ if first.contains("utilization.gpu")
                || first.contains("power.draw")
                || first.contains("memory.used [") =>
            {
                "has readings of nvidia-smi and no steps: `gnntop run` reads the same beside each step"
            }
            _ if is_log(first) => "is a log, not a table: write its numbers as CSV, a row for each step and a header",
            _ => return None,
        }))
    }

    /// How its steps were found, in words.
    pub(super) fn describe(self) -> &'static str {
        match self {
            Self::MlPerf => "MLPerf's log: each block, or else each epoch, is a step",
            Self::TrainerState => {
                "trainer_state.json has the time of the whole training alone: each row is the steps since the one before, with the mean \
                 time of a step"
            }
            Self::Useless(reason) => reason,
        }
    }

    /// Writes its steps as a table.
    ///
    /// # Errors
    /// What is missing, in words, or why it cannot be read or written.
    pub(super) fn write_table(self, text: impl BufRead, out: &mut impl Write) -> io::Result<Result<(), &'static str>> {
        match self {
            Self::MlPerf => write_ml_perf(text, out),
            Self::TrainerState => write_trainer_state(text, out),
            Self::Useless(reason) => Ok(Err(reason)),
        }
    }
}

/// Whether a line is one of a log: a date or a level in it, and words.
fn is_log(line: &str) -> bool {
    let words: Vec<&str> = line.split_whitespace().collect();
    let has_level = words.iter().take(6).any(|word| LEVELS.contains(&word.trim_matches(['[', ']', ':', '|'])));
    has_level && words.len() > 3
}

/// A block or an epoch of MLPerf's log.
struct LoggedPart {
    epoch: Option<u64>,
    start_ms: f64,
    end_ms: f64,
}

/// Blocks of MLPerf's log as rows, or epochs where there are no blocks.
fn write_ml_perf(text: impl BufRead, out: &mut impl Write) -> io::Result<Result<(), &'static str>> {
    let mut open: HashMap<String, (f64, Option<u64>)> = HashMap::new();
    let mut rows: HashMap<&'static str, Vec<LoggedPart>> = HashMap::new();
    for line in text.lines() {
        let line = line?;
        let Some((_, json)) = line.split_once(MLLOG) else { continue };
        let Ok(event) = serde_json::from_str::<Value>(json.trim()) else { continue };
        let (Some(key), Some(ms)) = (event["key"].as_str(), event["time_ms"].as_f64()) else { continue };
        let epoch = ["epoch_num", "first_epoch_num"].iter().find_map(|name| event["metadata"][*name].as_f64());
        let Some((what, edge)) = key.rsplit_once('_') else { continue };
        let Some(kind) = ["block", "epoch"].into_iter().find(|kind| *kind == what) else { continue };
        match edge {
            "start" => _ = open.insert(kind.to_owned(), (ms, epoch.map(|epoch| epoch as u64))),
            "stop" | "end" => {
                if let Some((start_ms, epoch)) = open.remove(kind) {
                    rows.entry(kind).or_default().push(LoggedPart { epoch, start_ms, end_ms: ms });
                }
            }
            _ => (),
        }
    }
    let Some(rows) = ["block", "epoch"].iter().find_map(|kind| rows.get(kind)) else {
        return Ok(Err("is MLPerf's log, in which no epoch and no block has a start and a stop"));
    };
    writeln!(out, "step,epoch,start_ms,end_ms")?;
    for (step, LoggedPart { epoch, start_ms, end_ms }) in (1..).zip(rows) {
        writeln!(out, "{step},{},{start_ms},{end_ms}", epoch.map(|epoch| epoch.to_string()).unwrap_or_default())?;
    }
    Ok(Ok(()))
}

/// What transformers logged, each as long as the steps since the one before take on average.
fn write_trainer_state(text: impl BufRead, out: &mut impl Write) -> io::Result<Result<(), &'static str>> {
    let Ok(state) = serde_json::from_reader::<_, Value>(text) else {
        return Ok(Err("begins like trainer_state.json, and is not whole"));
    };
    let history = state["log_history"].as_array().map(Vec::as_slice).unwrap_or_default();
    let runtime_s = history.iter().rev().find_map(|entry| entry["train_runtime"].as_f64());
    let total = state["global_step"].as_f64().filter(|steps| *steps >= 1.0);
    let Some(step_s) = runtime_s.zip(total).map(|(runtime_s, steps)| runtime_s / steps) else {
        return Ok(Err(
            "is trainer_state.json without train_runtime, which is written when the training has ended: it has no times",
        ));
    };
    writeln!(out, "step,epoch,loss,duration_s")?;
    let mut before = 0.0;
    for entry in history {
        let (Some(step), Some(loss)) = (entry["step"].as_f64(), entry["loss"].as_f64()) else { continue };
        let epoch = entry["epoch"].as_f64().unwrap_or_default().floor();
        writeln!(out, "{step},{epoch},{loss},{}", (step - before).max(0.0) * step_s)?;
        before = step;
    }
    Ok(Ok(()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(head: &str, words: &str) {
        let found = OtherText::recognise(head).unwrap_or_else(|| panic!("{head} is taken for a table"));
        assert!(found.describe().contains(words), "{found:?}");
    }

    #[test]
    fn text_that_is_no_table_is_named() {
        check("{\"traceEvents\": [{\"ph\": \"X\"}]}", "gnntop import chrome");
        check("{\"step\": 1, \"ms\": 2}\n{\"step\": 2, \"ms\": 3}\n", "in each line");
        check("[1, 2]", "is JSON");
        check("#[Histogram log format version 1.3]\n", "HdrHistogram");
        check("timestamp, name, utilization.gpu [%], power.draw [W]\n", "nvidia-smi");
        check("2026-02-03 04:05:06,789 INFO train: step 12 took 40 ms\n", "is a log");
        for table in ["step,step_ms\n1,40\n", "timestamp_s\tstep_ms\n", "# made by hand\nstep_ms\n"] {
            assert_eq!(OtherText::recognise(table), None, "{table}");
        }
    }

    fn table(head: &str, text: &str) -> Result<String, &'static str> {
        let mut out = Vec::new();
        let written = OtherText::recognise(head).unwrap().write_table(text.as_bytes(), &mut out).unwrap();
        written.map(|()| String::from_utf8(out).unwrap())
    }

    #[test]
    fn blocks_of_mlperf_are_rows_and_epochs_where_there_are_none() {
        let event = |key: &str, ms: u64, epoch: u64| {
            format!("0: :::MLLOG {{\"time_ms\": {ms}, \"key\": \"{key}\", \"metadata\": {{\"epoch_num\": {epoch}}}}}\n")
        };
        let epochs =
            [event("epoch_start", 1000, 1), event("epoch_stop", 3500, 1), event("epoch_start", 4000, 2)].concat();
        assert_eq!(table(&epochs, &epochs).unwrap(), "step,epoch,start_ms,end_ms\n1,1,1000,3500\n");
        let blocks = [epochs, event("block_start", 1000, 1), event("block_stop", 2000, 1)].concat();
        assert_eq!(table(&blocks, &blocks).unwrap(), "step,epoch,start_ms,end_ms\n1,1,1000,2000\n");
        assert!(table(":::MLLOG x", ":::MLLOG x").unwrap_err().contains("no epoch and no block"));
    }

    #[test]
    fn trainer_state_gives_each_row_the_mean_of_its_steps() {
        let state = "{\"global_step\": 30, \"log_history\": [
            {\"epoch\": 0.4, \"loss\": 2.5, \"step\": 10}, {\"eval_loss\": 1, \"step\": 10},
            {\"epoch\": 1.2, \"loss\": 1.5, \"step\": 30}, {\"step\": 30, \"train_runtime\": 60.0}]}";
        assert_eq!(table(state, state).unwrap(), "step,epoch,loss,duration_s\n10,0,2.5,20\n30,1,1.5,40\n");
        let without = state.replace("train_runtime", "x");
        assert!(table(&without, &without).unwrap_err().contains("without train_runtime"));
    }
}
