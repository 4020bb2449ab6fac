//! Neighbour sampling: what a mini-batch of seed nodes needs of a large graph, and the threads that load it.
