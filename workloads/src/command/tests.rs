//! The names of the trainings, and the part of a command line that ranks compare.

use clap::{Command, CommandFactory};

use super::sampled::SampledCommand;
use super::sampled_models::{GatOptions, SageOptions};
use super::vig::VigCommand;
use super::{WORKLOADS, Workload};
use crate::launch::{MAY_DIFFER, Settings, difference, written};

/// The trainings on several ranks, with these words after the name.
fn settings(workload: &str, words: &[&str]) -> Option<Settings> {
    let words: Vec<_> = words.iter().map(Into::into).collect();
    let mut workload = Workload::parse(workload, &words).ok()?;
    Some(workload.0.run_options().given.clone())
}

fn command(workload: &str) -> Command {
    match workload {
        "gat" => SampledCommand::<GatOptions>::command(),
        "sage" => SampledCommand::<SageOptions>::command(),
        _ => VigCommand::command(),
    }
}

/// Values of which every option takes one that is not its usual one.
const VALUES: [&str; 7] = ["7", "cuda:1", "stall:1ms", "threads", "none", "study", "scatter"];

/// The settings with a value of this option that is not its default.
fn with_another(workload: &str, option: &clap::Arg) -> Settings {
    let name = format!("--{}", option.get_long().unwrap());
    let usual = settings(workload, &[]).unwrap();
    let choices: Vec<String> = option.get_possible_values().iter().map(|value| value.get_name().to_owned()).collect();
    let values = choices.iter().map(String::as_str).chain(VALUES);
    let given = values.filter_map(|value| settings(workload, &[&name, value]));
    let mut tried: Vec<Settings> = given.chain(settings(workload, &[&name])).collect();
    assert!(!tried.is_empty(), "{workload}: no value is known for {name}");
    tried.sort_by_key(|settings| *settings == usual);
    tried.swap_remove(0)
}

#[test]
fn every_option_that_changes_what_is_trained_is_compared() {
    let mut compared = Vec::new();
    for workload in ["gat", "sage", "vig"] {
        let usual = settings(workload, &[]).unwrap();
        let command = command(workload);
        let mut not_compared = Vec::new();
        for option in command.get_arguments() {
            let name = option.get_long().unwrap();
            let other = with_another(workload, option);
            if other == usual {
                not_compared.push(name);
                continue;
            }
            let words = difference(&written(&usual), &written(&other));
            assert!(words.starts_with(&format!("--{name} ")), "{workload} {name}: {words}");
            compared.push(name.to_owned());
        }
        not_compared.sort_unstable();
        let mut may_differ: Vec<&str> =
            MAY_DIFFER.into_iter().filter(|name| command.get_arguments().any(|a| a.get_long() == Some(name))).collect();
        may_differ.sort_unstable();
        assert_eq!(not_compared, may_differ, "{workload}");
    }
    for name in ["hidden", "heads", "fanouts", "blocks", "seed", "learning-rate", "tf32", "keep-subnormals", "split"] {
        assert!(compared.iter().any(|compared| compared == name), "{name} is not compared");
    }
}

#[test]
fn what_may_differ_is_an_option() {
    let commands = ["gat", "sage", "vig"].map(command);
    for name in MAY_DIFFER {
        let has_it = |command: &Command| command.get_arguments().any(|option| option.get_long() == Some(name));
        assert!(commands.iter().any(has_it), "no training has --{name}");
    }
}

#[test]
fn usual_values_are_those_of_whoever_writes_them_out() {
    let usual = settings("sage", &[]);
    assert_eq!(settings("sage", &["--hidden", "256", "--fanouts", "10,10,10"]), usual);
    assert_ne!(settings("sage", &["--hidden", "128"]), usual);
    assert!(usual.unwrap().contains(&("--plain".to_owned(), "false".to_owned())));
}

#[test]
fn every_listed_workload_can_be_parsed() {
    for known in WORKLOADS {
        Workload::parse(known.name, &[]).unwrap();
    }
}

#[test]
fn an_unknown_name_is_answered_with_the_known_ones() {
    let error = Workload::parse("pan", &[]).unwrap_err().to_string();
    assert_eq!(error, "there is no workload pan; use one of gat, gcn, gin, pna, sage, vig");
}

#[test]
fn help_is_a_usage_error_with_examples() {
    let error = Workload::parse("pna", &["--help".into()]).unwrap_err().to_string();
    assert!(error.contains("Examples:") && error.contains("gnntop train pna"), "{error}");
}

#[test]
fn help_begins_with_what_is_trained() {
    let models = ["GAT (graph", "a GCN", "GIN (graph", "", "GraphSAGE", ""];
    for (known, model) in WORKLOADS.into_iter().zip(models) {
        let help = Workload::parse(known.name, &["--help".into()]).unwrap_err().to_string();
        assert!(help.starts_with(&format!("Trains {model}")), "{}: {help}", known.name);
    }
}

#[test]
fn names_of_kernels_forms_and_orders_are_listed_and_read() {
    let help = Workload::parse("sage", &["--help".into()]).unwrap_err().to_string();
    for words in
        ["- scatter: Gather the rows", "- blocks:   One block per layer", "[default: spmm]", "[default: blocks]"]
    {
        assert!(help.contains(words), "{words}: {help}");
    }
    let given = |words: &[&str], name: &str| settings("vig", words).unwrap().iter().any(|(_, value)| value == name);
    assert!(given(&["--schedule", "1f1b"], "1f1b") && given(&[], "gpipe"));
    assert!(settings("sage", &["--kernels", "both"]).is_none());
}
