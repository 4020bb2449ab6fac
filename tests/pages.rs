//! Pages that people attach to tickets: one self-contained file each, of every recording in the repository.

use std::fs;
use std::path::{Path, PathBuf};

use crate::sessions::Sessions;

/// Small enough to attach to any ticket.
const MOST_BYTES: usize = 300_000;

fn recordings() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("recordings");
    let folders = ["golden", "labelled"].map(|name| fs::read_dir(root.join(name)).unwrap());
    let all = folders.into_iter().flatten().map(|entry| entry.unwrap().path());
    all.filter(|path| path.extension().is_some_and(|extension| extension == "gnntop")).collect()
}

/// Whether nothing outside the file is named in it.
fn assert_stands_alone(name: &str, page: &str) {
    assert!(page.starts_with("<!DOCTYPE html>") && page.ends_with("</html>\n"), "{name}");
    assert!(page.len() < MOST_BYTES, "{name}: {} bytes", page.len());
    for part in ["src=", "@import", "url(", "http://", "https://"] {
        assert!(!page.contains(part), "{name} has {part}");
    }
    assert!(page.split("href=").skip(1).all(|link| link.starts_with("\"#")), "{name}");
    for link in page.split("href=\"#").skip(1).filter_map(|rest| rest.split('"').next()) {
        assert_eq!(page.matches(&format!("id=\"{link}\"")).count(), 1, "{name}: {link}");
    }
}

#[test]
fn every_recording_gives_a_small_self_contained_page() {
    let sessions = Sessions::new();
    let recordings = recordings();
    assert!(recordings.len() > 50, "{}", recordings.len());
    for path in recordings {
        let name = path.display().to_string();
        let ran = sessions.run(["report", &name, "--html"]);
        assert_eq!(ran.code, Some(0), "{ran:?}");
        assert_stands_alone(&name, &ran.out);
    }
}

#[test]
fn a_comparison_is_a_page_with_both_runs() {
    let sessions = Sessions::new();
    let labelled = |name: &str| format!("{}/recordings/labelled/{name}.gnntop", env!("CARGO_MANIFEST_DIR"));
    let (a, b) = (labelled("slow-loader"), labelled("slow-loader-worse"));
    let ran = sessions.run(["compare", &a, &b, "-o", "both.html"]);
    assert_eq!((ran.code, ran.out.as_str()), (Some(0), ""), "the ending chooses the form");
    let read = || fs::read_to_string(sessions.path().join("both.html")).unwrap();
    let page = read();
    assert_stands_alone("both.html", &page);
    let headline = sessions.run(["compare", &a, &b]).out;
    let headline = headline.lines().skip_while(|line| !line.is_empty()).nth(1).unwrap();
    assert!(page.contains(headline.split(':').next().unwrap()), "{headline}");
    assert!(page.contains("<h2>A: ") && page.contains("<h2>B: "));
    sessions.run(["compare", &a, &b, "--html", "-o", "both.html"]).assert_refused("both.html");
    assert_eq!(page, read(), "nothing is overwritten without --force");
    assert_eq!(sessions.run(["compare", &a, &b, "-o", "both.html", "--force"]).code, Some(0));
    let json = sessions.run(["compare", &a, &b, "-o", "both.json"]);
    assert!(json.code == Some(0) && fs::read_to_string(sessions.path().join("both.json")).unwrap().starts_with('{'));
}

#[test]
fn the_ending_of_the_output_chooses_the_form_of_a_report() {
    let sessions = Sessions::new();
    let path = format!("{}/recordings/labelled/spike.gnntop", env!("CARGO_MANIFEST_DIR"));
    for (file, begin) in
        [("a.html", "<!DOCTYPE"), ("a.md", "# "), ("a.json", "{"), ("a.csv", "recording,"), ("a.txt", "")]
    {
        assert_eq!(sessions.run(["report", &path, "-o", file]).code, Some(0), "{file}");
        let written = fs::read_to_string(sessions.path().join(file)).unwrap();
        assert!(written.starts_with(begin) && !written.is_empty(), "{file}: {written}");
    }
    assert_eq!(sessions.run(["report", &path, "--json", "-o", "b.html"]).code, Some(0));
    assert!(fs::read_to_string(sessions.path().join("b.html")).unwrap().starts_with('{'), "a flag comes first");
}
