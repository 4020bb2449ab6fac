//! The columns of an SQLite table, as the statement that made it names them.

/// The names of the columns in `CREATE TABLE name (...)`.
pub(super) fn column_names(sql: &str) -> Vec<String> {
    let inside = sql.split_once('(').map_or("", |(_, inside)| inside);
    let (mut depth, mut quote, mut parts) = (0, None, vec![String::new()]);
    for letter in inside.chars() {
        match (letter, quote) {
            (_, Some(end)) => quote = quote.filter(|_| letter != end),
            ('"' | '\'' | '`', None) => quote = Some(letter),
            ('[', None) => quote = Some(']'),
            ('(', None) => depth += 1,
            (')', None) if depth == 0 => break,
            (')', None) => depth -= 1,
            (',', None) if depth == 0 => {
                parts.push(String::new());
                continue;
            }
            _ => (),
        }
        if let Some(part) = parts.last_mut() {
            part.push(letter);
        }
    }
    parts.iter().filter_map(|part| column_name(part.trim_start())).collect()
}

/// The name that a column's definition begins with; `None` for a constraint of the table.
fn column_name(definition: &str) -> Option<String> {
    let quoted = ["\"\"", "''", "``", "[]"].iter().find_map(|quotes| {
        let (begin, end) = quotes.split_at(1);
        definition.strip_prefix(begin)?.split_once(end)
    });
    if let Some((name, _)) = quoted {
        return Some(name.to_owned());
    }
    let name = definition.split_whitespace().next()?;
    let is_constraint = ["CONSTRAINT", "PRIMARY", "FOREIGN", "UNIQUE", "CHECK"].contains(&name.to_uppercase().as_str());
    (!is_constraint).then(|| name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_named_without_constraints() {
        let sql = "CREATE TABLE \"t\" (id INTEGER PRIMARY KEY, \"the, key\" TEXT DEFAULT 'a, (b', `value` NUMERIC(3, 2) DEFAULT (1), [check] INT, CONSTRAINT a CHECK (id IN (1, 2)))";
        assert_eq!(column_names(sql), ["id", "the, key", "value", "check"]);
    }
}
