//! GCN (graph convolutional network, Kipf and Welling): study 1 of node classification on Cora.
