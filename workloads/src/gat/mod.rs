//! GAT (graph attention network): the other model of study 2.
