//! Softmax over edges with the kernels of a GPU, run on the host, beside those of the processor.

use candle_core::{Device, Var};

use super::*;
use crate::cuda::tests::multigraph::{generator, random_tensor};
use crate::cuda::tests::{TYPES, assert_within, gradient_of, graphs, tolerance};

#[test]
fn softmax_and_attention_agree() {
    if !crate::cuda::emulation::is_possible() {
        return;
    }
    let mut rng = generator(41);
    for graph in graphs() {
        for (dtype, heads) in TYPES.iter().flat_map(|dtype| [1, 3, 8].map(|heads| (*dtype, heads))) {
            let edges = Edges::new(&graph, &Device::Cpu).unwrap();
            let logits = (random_tensor(&mut rng, &[graph.edges(), heads], dtype) * 5.0).unwrap();
            let logits = Var::from_tensor(&logits).unwrap();
            let upstream = random_tensor(&mut rng, &[graph.edges(), heads], dtype);
            let expected = edge_softmax(&graph, &logits).unwrap();
            let operation = EdgeSoftmax { adjacency: graph.clone(), heads };
            let found = operation.forward_on_device(&edges, View::new(&logits).unwrap()).unwrap();
            let found = found.into_tensor(expected.shape());
            assert_within(tolerance(dtype, graph.edges()), &found, &expected, "softmax");
            let back = operation.backward_on_device(&logits, &expected, &upstream).unwrap();
            assert_within(
                tolerance(dtype, graph.edges()),
                &back,
                &gradient_of(&expected, &upstream, &logits),
                "gradient of softmax",
            );

            let [source, target] = [graph.source_nodes(), graph.nodes()]
                .map(|nodes| Var::from_tensor(&random_tensor(&mut rng, &[nodes, heads], dtype)).unwrap());
            let expected = attention(&graph, &source, &target, 0.2).unwrap();
            let operation = Attention { adjacency: graph.clone(), heads, negative_slope: 0.2 };
            let views = (View::new(&source).unwrap(), View::new(&target).unwrap());
            let found = operation.forward_on_device(&edges, views.0, views.1).unwrap();
            assert_within(
                tolerance(dtype, graph.edges()),
                &found.into_tensor(expected.shape()),
                &expected,
                "attention",
            );
            let (of_source, of_target) =
                operation.backward_on_device([&source, &target], &expected, &upstream).unwrap();
            assert_within(
                tolerance(dtype, graph.edges()),
                &of_source.unwrap(),
                &gradient_of(&expected, &upstream, &source),
                "gradient of the sources' scores",
            );
            assert_within(
                tolerance(dtype, graph.edges()),
                &of_target.unwrap(),
                &gradient_of(&expected, &upstream, &target),
                "gradient of the targets' scores",
            );
        }
    }
}
