//! g-SpMM, g-SDDMM, edge softmax and readouts against what PyTorch and PyTorch Geometric compute, with both kernel
//! families where both have the operation.

use std::collections::HashMap;
use std::sync::Arc;

use candle_core::{DType, Device, Tensor, Var};
use gnntop_data::graph::{Adjacency, EdgeOp, Reduce};
use gnntop_nn::kernels::{KernelFamily, Operand, edge_softmax, scatter, sddmm, spmm};

use crate::reference::{self, largest_difference, numbers};

/// One case of the reference vectors, with its tolerances and its edges by destination.
struct Case {
    tensors: HashMap<String, Tensor>,
    manifest: serde_json::Value,
    adjacency: Arc<Adjacency>,
    /// Position in the file of each edge of `adjacency`.
    order: Tensor,
}

fn case(name: &str) -> Case {
    let reference::Case { tensors, manifest } = reference::case(name);
    let size = numbers(&tensors["size"]);
    let (sources, targets, edges) = match tensors.get("edge_index") {
        Some(index) => {
            let index: Vec<u32> = numbers(index).into_iter().map(|node| node as u32).collect();
            let (from, to) = index.split_at(index.len() / 2);
            (size[0] as usize, size[1] as usize, from.iter().copied().zip(to.iter().copied()).collect::<Vec<_>>())
        }
        // A readout: every node is an edge into its graph.
        None => {
            let graphs = numbers(&tensors["batch"]);
            let edges = graphs.iter().enumerate().map(|(node, &graph)| (node as u32, graph as u32)).collect();
            (graphs.len(), size[0] as usize, edges)
        }
    };
    let mut order: Vec<u32> = (0..edges.len() as u32).collect();
    order.sort_by_key(|&edge| edges[edge as usize].1);
    let mut row_start = vec![0u32; targets + 1];
    edges.iter().for_each(|edge| row_start[edge.1 as usize + 1] += 1);
    (1..=targets).for_each(|row| row_start[row] += row_start[row - 1]);
    let source = order.iter().map(|&edge| edges[edge as usize].0).collect();
    let adjacency = Arc::new(Adjacency::bipartite(row_start, source, sources).unwrap());
    let order = Tensor::new(order, &Device::Cpu).unwrap();
    Case { tensors, manifest, adjacency, order }
}

impl Case {
    fn get(&self, name: &str) -> &Tensor {
        self.tensors.get(name).unwrap_or_else(|| panic!("no tensor {name}"))
    }

    /// A tensor of the file with its edges in our order.
    fn ordered(&self, name: &str, by_edge: bool) -> Tensor {
        let tensor = self.get(name);
        if by_edge { tensor.index_select(&self.order, 0).unwrap() } else { tensor.clone() }
    }

    fn variable(&self, name: &str, by_edge: bool, dtype: DType) -> Var {
        Var::from_tensor(&self.ordered(name, by_edge).to_dtype(dtype).unwrap()).unwrap()
    }

    fn check(&self, name: &str, by_edge: bool, ours: &Tensor) {
        let expected = numbers(&self.ordered(&format!("{name}.f64"), by_edge));
        assert_eq!(ours.dims(), self.get(name).dims(), "{name}");
        let tolerance = match ours.dtype() {
            DType::F64 => 1e-9 * (1.0 + self.manifest[name]["scale"].as_f64().unwrap()),
            _ => self.manifest[name]["tol"].as_f64().unwrap(),
        };
        let worst = largest_difference(&numbers(ours), &expected);
        assert!(worst <= tolerance, "{name}: off by {worst:.2e} > {tolerance:.2e}");
    }

    /// Checks the output of one variant and the gradients of its inputs: (variable, its name, whether by edge).
    fn check_variant(&self, variant: &str, out: &Tensor, by_edge: bool, inputs: &[(&Var, &str, bool)]) {
        let prefixed = |name: &str| if variant.is_empty() { name.to_owned() } else { format!("{variant}.{name}") };
        self.check(&prefixed("out"), by_edge, out);
        let upstream = self.ordered(&prefixed("grad_out"), by_edge).to_dtype(out.dtype()).unwrap();
        let gradients = (out * upstream).unwrap().sum_all().unwrap().backward().unwrap();
        for &(variable, name, by_edge) in inputs {
            self.check(&prefixed(&format!("grad.{name}")), by_edge, gradients.get(variable).unwrap());
        }
    }
}

const DTYPES: [DType; 2] = [DType::F32, DType::F64];

fn reduction(name: &str) -> Reduce {
    match name {
        "sum" | "add" => Reduce::Sum,
        "mean" => Reduce::Mean,
        "max" => Reduce::Max,
        "min" => Reduce::Min,
        _ => panic!("no reduction {name}"),
    }
}

#[test]
#[cfg_attr(not(shared_vectors), ignore = "needs further reference vectors: workloads/nn/tests/reference/README.md")]
fn spmm_with_every_operator() {
    let case = case("spmm");
    let variants = "copy_u_sum copy_u_mean copy_u_max copy_u_min copy_e_sum copy_e_mean copy_e_max mulw_sum mulw_mean \
                    mulw_max add_sum add_max sub_sum mul_sum mul_mean mul_max div_sum";
    for (variant, dtype) in variants.split_whitespace().flat_map(|variant| DTYPES.map(|dtype| (variant, dtype))) {
        let (op, reduce) = variant.rsplit_once('_').unwrap();
        let reduce = reduction(reduce);
        let [x, w, y] = [("x", false), ("w", true), ("y", true)].map(|(name, by)| case.variable(name, by, dtype));
        let with = |op, rhs| spmm(&case.adjacency, op, reduce, Some(&x), Some(rhs)).unwrap();
        let x_and_y = [(&x, "x", false), (&y, "y", true)];
        let (out, inputs) = match op {
            "copy_u" => {
                (spmm(&case.adjacency, EdgeOp::CopyLhs, reduce, Some(&x), None).unwrap(), x_and_y[..1].to_vec())
            }
            "copy_e" => {
                (spmm(&case.adjacency, EdgeOp::CopyRhs, reduce, None, Some(&y)).unwrap(), x_and_y[1..].to_vec())
            }
            "mulw" => (with(EdgeOp::Mul, &w), vec![(&x, "x", false), (&w, "w", true)]),
            "add" => (with(EdgeOp::Add, &y), x_and_y.to_vec()),
            "sub" => (with(EdgeOp::Sub, &y), x_and_y.to_vec()),
            "mul" => (with(EdgeOp::Mul, &y), x_and_y.to_vec()),
            "div" => (with(EdgeOp::Div, &y), x_and_y.to_vec()),
            _ => panic!("no operator {op}"),
        };
        case.check_variant(variant, &out, false, &inputs);
    }
}

#[test]
#[cfg_attr(not(shared_vectors), ignore = "needs further reference vectors: workloads/nn/tests/reference/README.md")]
fn both_families_aggregate_as_the_reference() {
    let case = case("spmm");
    for family in [KernelFamily::Scatter, KernelFamily::Spmm] {
        for variant in ["copy_u_sum", "copy_u_mean", "copy_u_max", "copy_u_min", "mulw_sum", "mulw_mean", "mulw_max"] {
            let (op, reduce) = variant.rsplit_once('_').unwrap();
            let (x, w) = (case.variable("x", false, DType::F32), case.variable("w", true, DType::F32));
            let weight = (op == "mulw").then_some(w.as_tensor());
            let out = family.aggregate(&case.adjacency, reduction(reduce), &x, weight).unwrap();
            let inputs = [(&x, "x", false), (&w, "w", true)];
            case.check_variant(variant, &out, false, if weight.is_some() { &inputs } else { &inputs[..1] });
        }
    }
}

#[test]
fn spmm_with_heads() {
    let case = case("spmm_heads");
    for dtype in DTYPES {
        for family in [KernelFamily::Scatter, KernelFamily::Spmm] {
            let (x, w) = (case.variable("x", false, dtype), case.variable("w", true, dtype));
            let out = family.aggregate(&case.adjacency, Reduce::Sum, &x, Some(&w)).unwrap();
            case.check_variant("", &out, false, &[(&x, "x", false), (&w, "w", true)]);
        }
    }
}

/// The lowest edge of the file gets all, and sorting by destination keeps the order of a target's edges.
#[test]
#[cfg_attr(not(shared_vectors), ignore = "needs further reference vectors: workloads/nn/tests/reference/README.md")]
fn ties_go_to_the_first_edge() {
    let case = case("spmm_ties");
    for (variant, dtype) in ["max", "min"].iter().flat_map(|variant| DTYPES.map(|dtype| (variant, dtype))) {
        for family in [KernelFamily::Scatter, KernelFamily::Spmm] {
            let x = case.variable("x", false, dtype);
            let out = family.aggregate(&case.adjacency, reduction(variant), &x, None).unwrap();
            case.check_variant(variant, &out, false, &[]);
            let upstream = case.get(&format!("{variant}.grad_out")).to_dtype(dtype).unwrap();
            let gradients = (out * upstream).unwrap().sum_all().unwrap().backward().unwrap();
            case.check(&format!("{variant}.grad.x.first"), false, gradients.get(&x).unwrap());
        }
    }
}

#[test]
#[cfg_attr(not(shared_vectors), ignore = "needs further reference vectors: workloads/nn/tests/reference/README.md")]
fn sddmm_with_every_operator() {
    let case = case("sddmm");
    let operators =
        [("dot", EdgeOp::Dot), ("add", EdgeOp::Add), ("sub", EdgeOp::Sub), ("mul", EdgeOp::Mul), ("div", EdgeOp::Div)];
    for ((variant, op), dtype) in operators.into_iter().flat_map(|pair| DTYPES.map(|dtype| (pair, dtype))) {
        let (a, b) = (case.variable("a", false, dtype), case.variable("b", false, dtype));
        let out = sddmm(&case.adjacency, op, Operand::source(&a), Some(Operand::destination(&b))).unwrap();
        case.check_variant(variant, &out, true, &[(&a, "a", false), (&b, "b", false)]);
    }
}

#[test]
fn sddmm_with_heads() {
    let case = case("sddmm_heads");
    for dtype in DTYPES {
        let (a, b) = (case.variable("a", false, dtype), case.variable("b", false, dtype));
        let out = sddmm(&case.adjacency, EdgeOp::Dot, Operand::source(&a), Some(Operand::destination(&b))).unwrap();
        case.check_variant("", &out, true, &[(&a, "a", false), (&b, "b", false)]);
    }
}

#[test]
fn softmax_over_edges() {
    let case = case("edge_softmax");
    for (variant, dtype) in ["h1", "h4", "big"].iter().flat_map(|variant| DTYPES.map(|dtype| (variant, dtype))) {
        let logits = case.variable(&format!("{variant}.logits"), true, dtype);
        let out = edge_softmax(&case.adjacency, &logits).unwrap();
        case.check_variant(variant, &out, true, &[(&logits, "logits", true)]);
    }
}

#[test]
fn readouts() {
    let case = case("pools");
    for (variant, dtype) in ["add", "mean", "max"].iter().flat_map(|variant| DTYPES.map(|dtype| (variant, dtype))) {
        let x = case.variable("x", true, dtype);
        let out = scatter(&case.adjacency, &x, reduction(variant)).unwrap();
        case.check_variant(variant, &out, false, &[(&x, "x", true)]);
    }
    let x = case.variable("x_int", true, DType::F32);
    case.check("maxties.out", false, &scatter(&case.adjacency, &x, Reduce::Max).unwrap());
}
