//! GraphSAGE with mean aggregation: study 2 of sampled training on a Reddit-sized graph.
