//! What graph neural networks are trained on: graphs, data sets that are read or generated, and batches of them.
//!
//! ```text
//!  files ─▶ molecule │ nodes │ images: read, or generated ─▶ a data set
//!                                                              │
//!                    sampling: neighbourhoods of some nodes ◀──┤
//!                          │                                   │
//!                          └────────▶ graph: a batch ◀─────────┘
//!                                          ▲
//!  training loop ◀─ batches in order ── loading: made ahead, on any number of threads
//! ```
//!
//! Each module uses those above it, never one below:
//!
//! ```text
//! tasks, files   rows divided among threads; how files are opened
//! graph          graphs, batches of them, edges sorted by where they go, sparse matrices, terms for messages along edges
//! loading        batches made ahead on threads, whatever a batch is
//! molecule, nodes, images    data that is read or generated
//! sampling       neighbourhoods drawn from it, and their batches
//! ```
//!
//! Nothing here knows a model, a profiler or a command line.

pub mod files;
pub mod graph;
pub mod images;
pub mod loading;
pub mod molecule;
pub mod nodes;
pub mod sampling;
pub mod tasks;
