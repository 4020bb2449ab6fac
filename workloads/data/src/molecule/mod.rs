//! Molecules as graphs: readers, a generator and a batch loader.
//!
//! [`from_smiles`] turns one SMILES text into a [`crate::graph::Graph`], [`read`] a whole file of them in PCQM4Mv2's
//! layout; [`generate`] makes up molecules if there is no file. A [`Loader`] delivers graphs in shuffled batches.

mod cleanup;
mod csv;
mod elements;
mod features;
mod generate;
mod loader;
mod smiles;
mod structure;

pub use self::csv::{MoleculeError, MoleculeSet, SkippedRow, read};
pub use features::ATOM_FEATURES;
pub use generate::{GeneratedMolecule, generate, generated_molecule};
pub use loader::{GraphBatches, Loader};
pub use smiles::{LONGEST_SMILES_BYTES, SmilesError, from_smiles};
