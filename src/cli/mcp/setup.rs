//! `gnntop mcp --setup`: what to write for each client, so that it starts the server. It only prints.

/// A client whose settings are known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum Client {
    /// Claude Code
    Claude,
    /// Codex
    Codex,
    /// Cursor
    Cursor,
    /// Visual Studio Code
    Vscode,
}

const ALL: [Client; 4] = [Client::Claude, Client::Codex, Client::Cursor, Client::Vscode];

/// What to type or to write for this client, or for all.
pub(super) fn instructions(client: Option<Client>) -> String {
    let several = client.map_or(ALL.to_vec(), |one| vec![one]);
    several.into_iter().map(instruction).collect::<Vec<_>>().join("\n")
}

fn instruction(client: Client) -> &'static str {
    match client {
        Client::Claude => "Claude Code, once in a terminal:\n  claude mcp add --scope user gnntop -- gnntop mcp\n",
        Client::Codex => {
            "Codex, in ~/.codex/config.toml:\n  [mcp_servers.gnntop]\n  command = \"gnntop\"\n  args = [\"mcp\"]\n"
        }
        Client::Cursor => {
            "Cursor, in ~/.cursor/mcp.json:\n  {\"mcpServers\": {\"gnntop\": {\"command\": \"gnntop\", \"args\": [\"mcp\"]}}}\n"
        }
        Client::Vscode => {
            "Visual Studio Code, in .vscode/mcp.json:\n  {\"servers\": {\"gnntop\": {\"command\": \"gnntop\", \"args\": [\"mcp\"]}}}\n"
        }
    }
}
