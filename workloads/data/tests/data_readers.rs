//! Graphs read from files: the real sets where they are at hand, every layout on small files, and everything that can
//! be wrong with them.

use std::collections::HashMap;
use std::io::Write;

use flate2::write::{DeflateEncoder, GzEncoder};
use flate2::{Compression, Crc};
use gnntop_data::nodes::{Features, NodeDataset, read};
use tempfile::TempDir;

use crate::shared::shared;

fn histogram(dataset: &NodeDataset) -> Vec<usize> {
    let mut counts = vec![0; dataset.classes];
    dataset.labels.iter().for_each(|&label| counts[label as usize] += 1);
    counts
}

fn split_sizes(dataset: &NodeDataset) -> [usize; 3] {
    [dataset.split.train.len(), dataset.split.validation.len(), dataset.split.test.len()]
}

fn words(features: &Features) -> usize {
    match features {
        Features::Sparse { column, .. } => column.len(),
        Features::Dense { .. } => panic!("not sparse"),
    }
}

/// A directory with the files of a graph.
fn directory(files: &[(&str, &[u8])]) -> TempDir {
    let directory = tempfile::tempdir().unwrap();
    for (name, content) in files {
        std::fs::write(directory.path().join(name), content).unwrap();
    }
    directory
}

fn load(files: &[(&str, &[u8])]) -> NodeDataset {
    read(directory(files).path()).unwrap()
}

/// The message without the directory, which differs from run to run.
fn failure(files: &[(&str, &[u8])]) -> String {
    let directory = directory(files);
    let message = match read(directory.path()) {
        Ok(dataset) => panic!("read as {}", dataset.origin),
        Err(error) => error.to_string(),
    };
    message
        .replace(&format!("{}/", directory.path().display()), "")
        .replace(&directory.path().display().to_string(), "DIR")
}

#[test]
#[cfg_attr(not(shared_data), ignore = "needs data sets beside the repository: CONTRIBUTING.md")]
fn cora_has_the_published_numbers() {
    let path = shared("data/cora");
    let cora = read(&path).unwrap();
    assert_eq!(
        (cora.graph.nodes(), cora.graph.edges(), cora.features.width(), cora.classes),
        (2_708, 10_556, 1_433, 7)
    );
    assert_eq!(histogram(&cora), [351, 217, 418, 818, 426, 298, 180]);
    assert_eq!(words(&cora.features), 49_216);
    assert_eq!(split_sizes(&cora), [140, 500, 1_000]);
    assert_eq!(cora.split.train, (0..140).collect::<Vec<_>>());
    assert_eq!(cora.split.validation, (140..640).collect::<Vec<_>>());
    assert_eq!(cora.split.test, (1_708..2_708).collect::<Vec<_>>());
    let degrees: Vec<_> = (0..2_708).map(|node| cora.graph.neighbours(node).len()).collect();
    assert_eq!((degrees.iter().min(), degrees.iter().max()), (Some(&1), Some(&168)));
    let sums: Vec<f32> = cora.features.row_normalised().to_dense().chunks(1_433).map(|row| row.iter().sum()).collect();
    assert!(sums.iter().all(|sum| (sum - 1.0).abs() < 1e-5));
    // The same graph, named by either file.
    for file in ["cora.nodes.tsv", "cora.edges.tsv"] {
        assert_eq!(read(&path.join(file)).unwrap().graph, cora.graph);
    }
}

#[test]
#[cfg_attr(not(shared_data), ignore = "needs data sets beside the repository: CONTRIBUTING.md")]
fn citeseer_has_the_published_numbers() {
    let path = shared("data/citeseer");
    let citeseer = read(&path).unwrap();
    assert_eq!((citeseer.graph.nodes(), citeseer.graph.edges()), (3_327, 9_104));
    assert_eq!((citeseer.features.width(), citeseer.classes, words(&citeseer.features)), (3_703, 6, 105_165));
    // The 15 nodes of which nothing is known count as class 0.
    assert_eq!(histogram(&citeseer), [249 + 15, 590, 668, 701, 596, 508]);
    assert_eq!(split_sizes(&citeseer), [120, 500, 1_000]);
    assert!((0..3_327).any(|node| citeseer.graph.neighbours(node).is_empty()));
}

#[test]
#[cfg_attr(not(shared_data), ignore = "needs data sets beside the repository: CONTRIBUTING.md")]
fn coras_citations_join_a_content_file() {
    let path = shared("data/cora/cora.cites");
    let cites = std::fs::read(path).unwrap();
    // The content file is not at hand: one is made with the same papers, and words made up.
    let text = String::from_utf8(cites.clone()).unwrap();
    let mut papers: Vec<&str> = text.split_whitespace().collect();
    papers.sort_unstable();
    papers.dedup();
    let line = |(number, paper): (usize, &&str)| format!("{paper}\t{}\t1\tclass_{}\n", number % 2, number % 7);
    let content: String = papers.iter().enumerate().map(line).collect();
    let cora = load(&[("cora.content", content.as_bytes()), ("cora.cites", &cites)]);
    assert_eq!((cora.graph.nodes(), cora.graph.edges(), cora.classes), (2_708, 10_556, 7));
    assert_eq!(split_sizes(&cora), [140, 500, 1_000]);
}

const NODES: &str =
    "# tiny: id, label, split, words (of 5)\n0\t1\ttrain\t0 4\n1\t0\tval\t\n2\t-1\t-\n3\t0\ttest\t3 1\n";
const EDGES: &str = "# undirected\n0\t1\n1\t0\n3\t3\n\n1\t3\n";

#[test]
fn plain_text_is_read_packed_or_not_and_with_any_line_ends() {
    let mut packed = GzEncoder::new(Vec::new(), Compression::fast());
    packed.write_all(NODES.as_bytes()).unwrap();
    let packed = packed.finish().unwrap();
    for nodes in [NODES.as_bytes(), NODES.replace('\n', "\r\n").as_bytes(), &packed] {
        let tiny = load(&[("tiny.nodes.tsv", nodes), ("tiny.edges.tsv", EDGES.as_bytes())]);
        assert_eq!((tiny.graph.nodes(), tiny.graph.edges(), tiny.classes), (4, 4, 2));
        assert_eq!(tiny.graph.neighbours(1), [0, 3]);
        assert_eq!(*tiny.labels, [1, 0, 0, 0]);
        assert_eq!(tiny.features.to_dense()[..5], [1.0, 0.0, 0.0, 0.0, 1.0]);
        assert_eq!(tiny.features.to_dense()[15..], [0.0, 1.0, 0.0, 1.0, 0.0]);
        let split = &tiny.split;
        assert_eq!((&*split.train, &*split.validation, &*split.test), (&[0][..], &[1][..], &[3][..]));
        assert!(tiny.origin.ends_with("tiny.nodes.tsv"));
    }
    // Without a declared number of words, the highest index counts; a graph may have no edges.
    let undeclared = load(&[("a.nodes.tsv", b"0\t0\ttrain\t0 2\n"), ("a.edges.tsv", b"")]);
    assert_eq!((undeclared.features.width(), undeclared.graph.edges()), (3, 0));
}

#[test]
fn what_is_wrong_with_plain_text_is_said_with_its_line() {
    let with =
        |nodes: &str, edges: &str| failure(&[("a.nodes.tsv", nodes.as_bytes()), ("a.edges.tsv", edges.as_bytes())]);
    let nodes = [
        ("", "a.nodes.tsv: expected lines of nodes, found none"),
        ("0\t0\n", "a.nodes.tsv, line 1: expected 4 fields separated by tabs (node, label, split, words), found 2"),
        ("#\nx\t0\t-\t\n", "a.nodes.tsv, line 2: expected a node number, found \"x\""),
        ("0\t0\t-\t\n2\t0\t-\t\n", "a.nodes.tsv, line 2: expected node 1, found \"2\""),
        ("0\tred\t-\t\n", "a.nodes.tsv, line 1: expected a class number as label, or -1, found \"red\""),
        ("0\t-2\t-\t\n", "a.nodes.tsv, line 1: expected a class number from 0 as label, or -1, found -2"),
        ("0\t-1\ttest\t\n", "a.nodes.tsv, line 1: a node without a label is \"test\" in the split"),
        ("0\t0\ttraining\t\n", "a.nodes.tsv, line 1: expected train, val, test or - as split, found \"training\""),
        ("0\t0\t-\t1 x\n", "a.nodes.tsv, line 1: expected the index of a word, found \"x\""),
        ("0\t0\t-\t1 1\n", "a.nodes.tsv, line 1: the word 1 is listed twice"),
        ("# (of 3)\n0\t0\t-\t3\n", "a.nodes.tsv, line 2: there is a word 3, but only 3 words (numbered from 0)"),
        (
            "0\t0\t-\t4000000000\n",
            "a.nodes.tsv, line 1: there is a word 4000000000, but only 16777216 words (numbered from 0)",
        ),
        (
            "# (of 1000000000000)\n",
            "a.nodes.tsv, line 1: 1000000000000 words are declared; at most 16777216 are supported",
        ),
        ("0\t7\t-\t\n", "a.nodes.tsv: there is a class 7, but no node of class 0; number classes from 0"),
        (
            "0\t0\t-\t\n1\t4000000000\t-\t\n",
            "a.nodes.tsv: there is a class 4000000000, but no node of class 1; number classes from 0",
        ),
    ];
    for (content, expected) in nodes {
        assert_eq!(with(content, "0\t0\n"), expected);
    }
    let edges = [
        ("0\t1\n0\n", "a.edges.tsv, line 2: expected two nodes, found \"0\""),
        ("0\t1\t1\n", "a.edges.tsv, line 1: expected two nodes, found \"0\\t1\\t1\""),
        ("0\t1\n#\n\n0\t4\n", "a.edges.tsv, line 4: \"4\" is not one of the graph's 4 nodes"),
        ("0\t-1\n", "a.edges.tsv, line 1: \"-1\" is not one of the graph's 4 nodes"),
    ];
    for (content, expected) in edges {
        assert_eq!(with(NODES, content), expected);
    }
    let mut packed = GzEncoder::new(Vec::new(), Compression::fast());
    packed.write_all(NODES.repeat(50).as_bytes()).unwrap();
    let packed = packed.finish().unwrap();
    let cut = failure(&[("a.nodes.tsv", &packed[..packed.len() / 2]), ("a.edges.tsv", b"")]);
    assert!(
        cut.starts_with("a.nodes.tsv, after line") && cut.ends_with("cannot be read (is the file complete?)"),
        "{cut}"
    );
    let latin = failure(&[("a.nodes.tsv", b"0\t\xff\n"), ("a.edges.tsv", b"")]);
    assert_eq!(latin, "a.nodes.tsv, line 1: the line is not UTF-8 text");
    let endless = failure(&[("a.nodes.tsv", &vec![b'1'; 5 << 20]), ("a.edges.tsv", b"")]);
    assert_eq!(endless, "a.nodes.tsv, line 1: a line is longer than 4194304 bytes");
}

const CONTENT: &str = "p7\t1\t0\tb\nx/1\t0\t0\ta\n33 1 1 b\n";

#[test]
fn linqs_files_are_read() {
    let small = load(&[("s.content", CONTENT.as_bytes()), ("s.cites", b"p7\tx/1\nx/1\tp7\np7\t33\nnobody\t33\n")]);
    assert_eq!((small.graph.nodes(), small.graph.edges(), small.classes), (3, 4, 2));
    assert_eq!(*small.labels, [1, 0, 1]);
    assert_eq!(small.features.to_dense(), [1.0, 0.0, 0.0, 0.0, 1.0, 1.0]);
    assert!(small.origin.ends_with("s.content (1 citations of unknown papers skipped)"), "{}", small.origin);
    assert_eq!(split_sizes(&small).iter().sum::<usize>(), 3);
}

#[test]
fn what_is_wrong_with_linqs_files_is_said() {
    let content = [
        ("", "s.content: expected lines of papers, found none"),
        ("p7\n", "s.content, line 1: expected a paper, its words (0 or 1 each) and its class, found one field"),
        ("p\t1\t0\ta\nq\t1\ta\n", "s.content, line 2: expected 2 words as before, found 1"),
        ("p\t1\t2\ta\n", "s.content, line 1: expected 0 or 1 for word 1, found \"2\""),
        ("p\t1\ta\np\t0\tb\n", "s.content, line 2: the paper \"p\" is listed twice"),
    ];
    for (content, expected) in content {
        assert_eq!(failure(&[("s.content", content.as_bytes()), ("s.cites", b"p q\n")]), expected);
    }
    let cites = |cites: &[u8]| failure(&[("s.content", CONTENT.as_bytes()), ("s.cites", cites)]);
    assert_eq!(cites(b"p7\n"), "s.cites, line 1: expected two nodes, found \"p7\"");
    let strangers = "s.cites: none of the 1 citations joins papers of the content file; do the files belong together?";
    assert_eq!(cites(b"1 2\n"), strangers);
}

#[test]
fn a_table_and_a_list_are_read() {
    let nodes = "id,label,split,age,size\nann,red,train,1,-2.5\nbob,blue,val,1e3,0\ncid,red,test,0,0\n";
    let edges = "source,target\nann,bob\nbob,ann\nbob,cid\n";
    let tabs = |text: &str| text.replace(',', "\t").into_bytes();
    let by_commas = load(&[("nodes.csv", nodes.as_bytes()), ("edges.csv", edges.as_bytes())]);
    let by_tabs = load(&[("nodes.tsv", &tabs(nodes)), ("edges.tsv", &tabs(edges))]);
    for table in [by_commas, by_tabs] {
        assert_eq!((table.graph.nodes(), table.graph.edges(), table.classes), (3, 4, 2));
        assert_eq!(*table.labels, [1, 0, 1]);
        assert_eq!(*table.features, Features::Dense { values: vec![1.0, -2.5, 1e3, 0.0, 0.0, 0.0].into(), width: 2 });
        assert_eq!(split_sizes(&table), [1, 1, 1]);
    }
    // Numbers are numbered as numbers, and a split is made where there is none.
    let rows: String = (0..200).map(|node| format!("{node},{},0.5\n", [10, 9][node % 2])).collect();
    let unsplit = load(&[("nodes.csv", format!("id,label,x\n{rows}").as_bytes()), ("edges.csv", b"from,to\n0,1\n")]);
    assert_eq!((unsplit.labels[0], unsplit.labels[1]), (1, 0));
    assert_eq!(split_sizes(&unsplit), [40, 53, 107]);
}

#[test]
fn what_is_wrong_with_a_table_is_said_with_its_line() {
    let header = "id,label,x\n";
    let nodes = [
        (String::new(), "nodes.csv: expected a header (id,label,split,features...), found an empty file"),
        ("0,1\n".into(), "nodes.csv, line 1: expected a header id,label,split,features..., found \"0,1\""),
        (header.into(), "nodes.csv: expected lines of nodes after the header, found none"),
        (format!("{header}a,0\n"), "nodes.csv, line 2: expected 3 fields as in the header, found 2"),
        (format!("{header}a,0,1\na,0,1\n"), "nodes.csv, line 3: the node \"a\" is listed twice"),
        (format!("{header}a,,1\n"), "nodes.csv, line 2: expected an id and a label, found an empty field"),
        (format!("{header}a,0,one\n"), "nodes.csv, line 2: expected a number as feature, found \"one\""),
        (format!("{header}a,0,NaN\n"), "nodes.csv, line 2: expected a finite number as feature 0, found NaN"),
        (format!("{header}a,0,1e99\n"), "nodes.csv, line 2: expected a finite number as feature 0, found 1e99"),
    ];
    for (content, expected) in nodes {
        assert_eq!(failure(&[("nodes.csv", content.as_bytes()), ("edges.csv", b"a,b\n")]), expected);
    }
    let edges = |edges: &[u8]| failure(&[("nodes.csv", b"id,label\na,0\nb,1\n"), ("edges.csv", edges)]);
    assert_eq!(edges(b""), "edges.csv: expected a header of two columns, found an empty file");
    let headless = "edges.csv, line 1: expected a header of two columns (source,target), found an edge";
    assert_eq!(edges(b"a,b\n"), headless);
    assert_eq!(edges(b"from,to\na,c\n"), "edges.csv, line 2: \"c\" is not one of the graph's 2 nodes");
}

#[test]
fn where_nothing_or_too_much_lies_it_is_said() {
    let nothing = failure(&[("readme.txt", b"")]);
    assert!(nothing.starts_with("no graph found at DIR; looked for NAME.nodes.tsv with NAME.edges.tsv;"), "{nothing}");
    assert!(nothing.contains("reddit_data.npz with reddit_graph.npz"), "{nothing}");
    let half = failure(&[("s.cites", b"")]);
    assert_eq!(half, "s.cites exists, but s.content does not; both are needed");
    let whole: &[(&str, &[u8])] = &[("a.nodes.tsv", NODES.as_bytes()), ("a.edges.tsv", b""), ("s.cites", b"")];
    assert_eq!(load(whole).graph.nodes(), 4);
    let two = [whole, &[("s.content", CONTENT.as_bytes())]].concat();
    assert_eq!(failure(&two), "DIR has more than one graph: a.nodes.tsv, s.content; give one of these files instead");
    let directory = directory(&two);
    assert_eq!(read(&directory.path().join("s.cites")).unwrap().graph.nodes(), 3);
    assert!(read(&directory.path().join("absent")).err().unwrap().to_string().starts_with("cannot open"));
}

#[test]
fn a_hub_of_a_hundred_thousand_edges_is_read() {
    let leaves = 100_000;
    let nodes: String = (0..=leaves).map(|node| format!("{node}\t{}\t-\t\n", node % 2)).collect();
    let edges: String = (1..=leaves).map(|node| format!("{node}\t0\n")).collect();
    let star = load(&[("star.nodes.tsv", nodes.as_bytes()), ("star.edges.tsv", edges.as_bytes())]);
    assert_eq!((star.graph.nodes(), star.graph.edges()), (leaves + 1, 2 * leaves));
    assert_eq!(star.graph.neighbours(0).len(), leaves);
    assert!((1..=leaves as u32).all(|node| star.graph.neighbours(node) == [0]));
}

#[test]
#[cfg_attr(not(shared_data), ignore = "needs data sets beside the repository: CONTRIBUTING.md")]
fn a_real_social_network_maps_onto_a_table_and_a_list() {
    let path = shared("data/musae");
    let text = |name: &str| std::fs::read_to_string(path.join(name)).unwrap();
    let features: HashMap<String, Vec<usize>> = serde_json::from_str(&text("PTBR_features.json")).unwrap();
    let width = features.values().flatten().max().unwrap() + 1;
    let names: String = (0..width).map(|feature| format!(",f{feature}")).collect();
    let mut nodes = format!("id,label{names}\n");
    for row in text("PTBR_target.csv").lines().skip(1) {
        let fields: Vec<&str> = row.split(',').collect();
        let mut values = vec!["0"; width];
        features[fields[5]].iter().for_each(|&feature| values[feature] = "1");
        nodes += &format!("{},{},{}\n", fields[5], fields[2], values.join(","));
    }
    let network = load(&[("nodes.csv", nodes.as_bytes()), ("edges.csv", text("PTBR_edges.csv").as_bytes())]);
    assert_eq!((network.graph.nodes(), network.graph.edges(), network.features.width()), (1_912, 62_598, 3_169));
    // Classes by name: False, then True.
    assert_eq!(histogram(&network), [1_251, 661]);
    assert_eq!((0..1_912).map(|node| network.graph.neighbours(node).len()).max(), Some(767));
    assert_eq!(split_sizes(&network), [40, 500, 1_000]);
}

/// An npy file.
fn npy(descr: &str, shape: &str, numbers: &[u8]) -> Vec<u8> {
    let header = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}");
    let mut file = b"\x93NUMPY\x01\x00".to_vec();
    file.extend((header.len() as u16).to_le_bytes());
    file.extend(header.as_bytes());
    file.extend(numbers);
    file
}

/// A zip archive of (name, content), packed or not.
fn archive(entries: &[(&str, Vec<u8>)], packed: bool) -> Vec<u8> {
    let (mut file, mut index) = (Vec::new(), Vec::new());
    for (name, content) in entries {
        let mut crc = Crc::new();
        crc.update(content);
        let stored = if packed {
            let mut encoder = DeflateEncoder::new(Vec::new(), Compression::default());
            encoder.write_all(content).unwrap();
            encoder.finish().unwrap()
        } else {
            content.clone()
        };
        let offset = file.len() as u32;
        let mut common = vec![20, 0, 0, 0, if packed { 8 } else { 0 }, 0, 0, 0, 0x21, 0];
        for number in [crc.sum(), stored.len() as u32, content.len() as u32] {
            common.extend(number.to_le_bytes());
        }
        common.extend((name.len() as u16).to_le_bytes());
        common.extend([0, 0]);
        file.extend(b"PK\x03\x04");
        file.extend(&common);
        file.extend(name.as_bytes());
        file.extend(stored);
        index.extend(b"PK\x01\x02\x14\x00");
        index.extend(&common);
        index.extend([0; 10]);
        index.extend(offset.to_le_bytes());
        index.extend(name.as_bytes());
    }
    let start = file.len() as u32;
    let count = (entries.len() as u16).to_le_bytes();
    let end = [
        b"PK\x05\x06",
        &[0; 4][..],
        &count,
        &count,
        &(index.len() as u32).to_le_bytes(),
        &start.to_le_bytes(),
        &[0; 2],
    ];
    [file, index, end.concat()].concat()
}

fn f4(numbers: &[f32]) -> Vec<u8> {
    numbers.iter().flat_map(|number| number.to_le_bytes()).collect()
}

fn i4(numbers: &[i32]) -> Vec<u8> {
    numbers.iter().flat_map(|number| number.to_le_bytes()).collect()
}

fn i8(numbers: &[i64]) -> Vec<u8> {
    numbers.iter().flat_map(|number| number.to_le_bytes()).collect()
}

type Entries = Vec<(&'static str, Vec<u8>)>;

/// Three nodes with two features.
fn reddit_data() -> Entries {
    vec![
        ("feature.npy", npy("<f4", "(3, 2)", &f4(&[1.0, 2.0, -3.0, 0.0, 0.5, 6.0]))),
        ("label.npy", npy("<i8", "(3,)", &i8(&[0, 1, 0]))),
        ("node_types.npy", npy("<i8", "(3,)", &i8(&[1, 2, 3]))),
    ]
}

fn reddit_graph() -> Entries {
    vec![
        ("row.npy", npy("<i4", "(4,)", &i4(&[0, 1, 1, 2]))),
        ("col.npy", npy("<i4", "(4,)", &i4(&[1, 0, 2, 1]))),
        ("data.npy", npy("|i1", "(4,)", &[1; 4])),
        ("shape.npy", npy("<i8", "(2,)", &i8(&[3, 3]))),
        ("format.npy", npy("|S3", "()", b"coo")),
    ]
}

fn reddit_failure(data: &[u8], graph: &[u8]) -> String {
    failure(&[("reddit_data.npz", data), ("reddit_graph.npz", graph)])
}

#[test]
fn reddits_files_are_read_packed_or_not() {
    for packed in [false, true] {
        let (data, graph) = (archive(&reddit_data(), packed), archive(&reddit_graph(), packed));
        let reddit = load(&[("reddit_data.npz", &data), ("reddit_graph.npz", &graph)]);
        assert_eq!((reddit.graph.nodes(), reddit.graph.edges(), reddit.classes), (3, 4, 2));
        assert_eq!(reddit.graph.neighbours(1), [0, 2]);
        assert_eq!(*reddit.features, Features::Dense { values: vec![1.0, 2.0, -3.0, 0.0, 0.5, 6.0].into(), width: 2 });
        assert_eq!(split_sizes(&reddit), [1, 1, 1]);
    }
}

#[test]
fn npz_files_that_candle_writes_are_read() {
    use candle_core::{Device, Tensor};
    let directory = tempfile::tempdir().unwrap();
    let tensor = |numbers: &[i64]| Tensor::new(numbers, &Device::Cpu).unwrap();
    let feature = Tensor::new(&[[1f64, 2.0], [3.0, 4.0]], &Device::Cpu).unwrap();
    let data = [("feature", feature), ("label", tensor(&[1, 0])), ("node_types", tensor(&[3, 1]))];
    let graph = [("row", tensor(&[0, 1])), ("col", tensor(&[1, 0])), ("shape", tensor(&[2, 2]))];
    Tensor::write_npz(&data, directory.path().join("reddit_data.npz")).unwrap();
    Tensor::write_npz(&graph, directory.path().join("reddit_graph.npz")).unwrap();
    let reddit = read(directory.path()).unwrap();
    assert_eq!(reddit.features.to_dense(), [1.0, 2.0, 3.0, 4.0]);
    assert_eq!((&**reddit.labels, reddit.graph.neighbours(0)), (&[1, 0][..], &[1][..]));
}

#[test]
fn arrays_that_are_not_as_expected_are_named() {
    let graph = archive(&reddit_graph(), false);
    let with = |name: &'static str, file: Vec<u8>| {
        let mut entries = reddit_data();
        entries.iter_mut().filter(|(known, _)| *known == name).for_each(|(_, content)| *content = file.clone());
        reddit_failure(&archive(&entries, true), &graph)
    };
    let nan = f4(&[0.0, 1.0, 2.0, f32::NAN, 4.0, 5.0]);
    let cases = [
        (
            with("feature.npy", npy("<f4", "(3, 2)", &nan)),
            "feature: feature 1 of node 1 is NaN; expected a finite number",
        ),
        (with("feature.npy", npy("<f4", "(6,)", &nan)), "feature: expected the shape [nodes, features], found [6]"),
        (with("feature.npy", npy("<f4", "(0, 2)", &[])), "feature: expected the shape [nodes, features], found [0, 2]"),
        (
            with("feature.npy", npy("<i4", "(3, 2)", &nan)),
            "feature: expected floating-point numbers of 4 or 8 bytes, found numbers of type i4",
        ),
        (with("feature.npy", npy("<f4", "(4, 2)", &nan)), "feature: the shape [4, 2] does not fit the file's 24 bytes"),
        (
            with("feature.npy", npy("<f4", "(4611686018427387904, 4611686018427387904)", &nan)),
            "feature: the shape [4611686018427387904, 4611686018427387904] does not fit the file's 24 bytes",
        ),
        (with("feature.npy", b"no".to_vec()), "feature: not an npy file: failed to fill whole buffer"),
        (with("label.npy", npy("<f4", "(3,)", &f4(&[0.0; 3]))), "label: expected integers, found numbers of type f4"),
        (
            with("label.npy", npy("<i8", "(2,)", &i8(&[0, 1]))),
            "label: expected the shape [3], one for each row of feature, found [2]",
        ),
        (with("label.npy", npy("<i8", "(3,)", &i8(&[0, -1, 1]))), "label: number 1 is negative or above 4294967295"),
        (
            with("node_types.npy", npy("<i8", "(3,)", &i8(&[1, 2, 4]))),
            "node_types: expected 1 (train), 2 (validation) or 3 (test), found 4 for node 2",
        ),
    ];
    for (message, expected) in cases {
        assert_eq!(message, format!("reddit_data.npz, array {expected}"));
    }
    let gap = with("label.npy", npy("<i8", "(3,)", &i8(&[0, 9, 0])));
    assert_eq!(gap, "reddit_data.npz: there is a class 9, but no node of class 1; number classes from 0");
}

#[test]
fn edges_that_are_not_as_expected_are_named() {
    let data = archive(&reddit_data(), false);
    let with = |name: &'static str, file: Vec<u8>| {
        let mut entries = reddit_graph();
        entries.iter_mut().filter(|(known, _)| *known == name).for_each(|(_, content)| *content = file.clone());
        reddit_failure(&data, &archive(&entries, false))
    };
    let range = with("col.npy", npy("<i4", "(4,)", &i4(&[1, 0, 3, 1])));
    let expected = "edge 2 goes from node 1 to node 3, but there are only 3 nodes (numbered from 0)";
    assert_eq!(range, format!("reddit_graph.npz: {expected}"));
    let lengths = with("col.npy", npy("<i4", "(3,)", &i4(&[1, 0, 2])));
    assert_eq!(lengths, "reddit_graph.npz, array col: expected the shape of row, which is [4], found [3]");
    let shape = with("shape.npy", npy("<i8", "(2,)", &i8(&[4, 4])));
    assert_eq!(shape, "reddit_graph.npz, array shape: expected [3, 3] for 3 nodes, found [4, 4]");
    let absent = reddit_failure(&data, &archive(&reddit_graph()[1..], false));
    assert_eq!(absent, "reddit_graph.npz, array row: not in the file, which has col, data, shape, format");
}

#[test]
fn a_cut_or_damaged_npz_is_an_error_at_every_byte() {
    let graph = archive(&reddit_graph(), false);
    for packed in [false, true] {
        let whole = archive(&reddit_data(), packed);
        for length in 0..whole.len() {
            reddit_failure(&whole[..length], &graph);
        }
        let expected = load(&[("reddit_data.npz", &whole), ("reddit_graph.npz", &graph)]);
        for position in 0..whole.len() {
            let mut damaged = whole.clone();
            damaged[position] ^= 0x55;
            let directory = directory(&[("reddit_data.npz", &damaged), ("reddit_graph.npz", &graph)]);
            // Some bytes do not matter, such as dates; then the content is the same.
            if let Ok(read) = read(directory.path()) {
                assert_eq!((&read.features, &read.labels), (&expected.features, &expected.labels), "byte {position}");
            }
        }
    }
}

#[test]
fn a_small_archive_that_claims_to_be_large_is_refused_before_memory_is_taken() {
    let mut entries = reddit_data();
    entries[0].1 = npy("<f4", "(1000000000, 602)", &[0; 64]);
    let mut file = archive(&entries, true);
    // The size in the index, 24 bytes after its signature.
    let index = file.windows(4).position(|bytes| bytes == b"PK\x01\x02").unwrap();
    let claimed = 4_000_000_000u32.to_le_bytes();
    file[index + 24..index + 28].copy_from_slice(&claimed);
    let message = reddit_failure(&file, &archive(&reddit_graph(), false));
    assert!(message.contains("cannot hold 4000000000 bytes"), "{message}");
}
