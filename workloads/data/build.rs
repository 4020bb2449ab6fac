//! Lets the tests know which files are beside the repository.

use std::path::PathBuf;

/// Sets `shared_data` where `../shared`, or `$GNNTOP_SHARED`, has data sets (`tests/shared.rs`).
fn main() {
    println!("cargo:rerun-if-env-changed=GNNTOP_SHARED");
    println!("cargo:rustc-check-cfg=cfg(shared_data)");
    let shared = std::env::var_os("GNNTOP_SHARED").map_or_else(|| PathBuf::from("../../../shared"), PathBuf::from);
    if shared.join("data").is_dir() {
        println!("cargo:rustc-cfg=shared_data");
    }
}
