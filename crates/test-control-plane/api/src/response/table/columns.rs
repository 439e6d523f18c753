//! The columns of each kind as data: a line per column in `columns.txt`.
//!
//! A line has the column's name, its type unless it is text, `wide` for columns of wide output,
//! and the source of its cells: a function, and its arguments, which are mostly JSON pointers.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use jiff::Timestamp;
use serde_json::{Value, json};

use super::cells::{self, Source};
use super::custom;
use crate::kinds::Kind;

/// The parsed columns by storage. They are immutable.
static COLUMNS: LazyLock<BTreeMap<&'static str, Vec<Column>>> =
    LazyLock::new(|| parse(include_str!("columns.txt")));

/// A column and the source of its cells.
struct Column {
    name: &'static str,
    cells: &'static str,
    is_wide: bool,
    source: Source,
    args: Vec<&'static str>,
}

fn parse(text: &'static str) -> BTreeMap<&'static str, Vec<Column>> {
    let mut storages: BTreeMap<&'static str, Vec<Column>> = BTreeMap::new();
    let mut block = "";
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let Some(row) = line.strip_prefix("  ") else {
            block = line;
            continue;
        };
        for storage in block.split(' ') {
            let columns = storages.entry(storage).or_default();
            columns.extend(parse_column(row));
        }
    }
    storages
}

fn parse_column(row: &'static str) -> Option<Column> {
    let (head, source) = row.split_once(": ")?;
    let mut words = head.split(", ");
    let name = words.next()?;
    let words: Vec<&str> = words.collect();
    let mut types = words.iter().filter(|word| **word != "wide");
    let mut source = source.split(' ');
    Some(Column {
        name,
        cells: types.next().copied().unwrap_or("string"),
        is_wide: words.contains(&"wide"),
        source: cells::source(source.next()?)?,
        args: source.collect(),
    })
}

fn columns(kind: &Kind) -> &'static [Column] {
    let found = COLUMNS
        .get(&*kind.storage)
        .or_else(|| COLUMNS.get("others"));
    found.map(Vec::as_slice).unwrap_or_default()
}

/// Returns the `columnDefinitions` of a kind's table.
pub(super) fn definitions(kind: &Kind) -> Vec<Value> {
    if let Some(resource) = &kind.custom {
        return custom::definitions(resource);
    }
    columns(kind)
        .iter()
        .map(|column| {
            json!({
                "name": column.name,
                "type": column.cells,
                "format": if column.name == "Name" { "name" } else { "" },
                "description": "",
                "priority": u8::from(column.is_wide),
            })
        })
        .collect()
}

/// Returns the cells of an object.
pub(super) fn cells(kind: &Kind, object: &Value, now: Timestamp) -> Vec<Value> {
    if let Some(resource) = &kind.custom {
        return custom::cells(resource, object, now);
    }
    let cell = |column: &Column| (column.source)(object, &column.args, now);
    columns(kind).iter().map(cell).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_is_read() {
        let text = include_str!("columns.txt");
        for line in text.lines().filter_map(|line| line.strip_prefix("  ")) {
            assert!(parse_column(line).is_some(), "{line}");
        }
    }

    #[test]
    fn every_block_is_a_storage() {
        for storage in COLUMNS.keys().filter(|storage| **storage != "others") {
            let mut all = crate::kinds::KINDS.iter().map(|kind| &*kind.storage);
            assert!(
                *storage == "scales" || all.any(|known| known == *storage),
                "{storage}"
            );
        }
    }
}
