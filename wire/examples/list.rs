//! Lists the contents of a stream, one line for each item and event.
//!
//! `cargo run -p gnntop-wire --example list recordings/golden/rows.gnntop`

use std::io::{self, Write};

use gnntop_fixtures::listing;

fn main() -> io::Result<()> {
    let path = std::env::args_os().nth(1).ok_or_else(|| io::Error::other("name a recording to list"))?;
    io::stdout().write_all(listing::list(&std::fs::read(path)?).as_bytes())
}
