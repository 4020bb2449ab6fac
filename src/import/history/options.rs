//! What a person says about a history.

use gnntop_wire::Place;

/// The trackers whose histories are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tracker {
    /// Event files of TensorBoard.
    TensorBoard,
    /// The file of a run of W&B, as its offline mode leaves it.
    Wandb,
    /// MLflow's folder of runs, or its SQLite database.
    MlFlow,
    /// trackio's SQLite database of a project.
    Trackio,
}

/// What is given besides the history.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct HistoryOptions {
    /// The values that are logged once for each step; chosen by default.
    pub steps: Option<String>,
    /// The run's name or id, where there are several.
    pub only: Option<String>,
    /// The rank's place in its run.
    pub place: Option<Place>,
}
