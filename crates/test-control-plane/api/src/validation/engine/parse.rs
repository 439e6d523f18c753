//! The text form of the rules.

use super::checks;
use super::place::Shown;
use super::rules::{Clause, Functions, Row, Rows, Rules, Words};

/// Finds the blocks of rules in `sources`, which call `functions` by name. The rows of a block are
/// parsed when they are first used: most servers see objects of few kinds.
pub(in crate::validation) fn parse(sources: &[&'static str], functions: Functions) -> Rules {
    let blocks = split(sources).into_iter().map(|(block, lines)| {
        let rows = move || {
            let rows = lines.iter().filter_map(|line| parse_row(line, functions));
            rows.collect()
        };
        (block, Rows::new(Box::new(rows)))
    });
    Rules {
        blocks: blocks.collect(),
    }
}

/// Returns the lines below the name of each block.
fn split(sources: &[&'static str]) -> Vec<(&'static str, Vec<&'static str>)> {
    let mut blocks: Vec<(&str, Vec<&str>)> = Vec::new();
    let lines = sources.iter().flat_map(|source| source.lines());
    for line in lines.filter(|line| !line.is_empty() && !line.starts_with('#')) {
        match (line.strip_prefix("  "), blocks.last_mut()) {
            (Some(row), Some((_, rows))) => rows.push(row),
            _ => blocks.push((line, Vec::new())),
        }
    }
    blocks
}

/// Returns the lines that can't be parsed, and the names of repeated blocks.
#[cfg(test)]
pub(in crate::validation) fn unread(
    sources: &[&'static str],
    functions: Functions,
) -> Vec<&'static str> {
    let mut seen = std::collections::BTreeSet::new();
    let mut unread = Vec::new();
    for (block, lines) in split(sources) {
        unread.extend(Some(block).filter(|block| !seen.insert(*block)));
        let lines = lines.into_iter();
        unread.extend(lines.filter(|&line| parse_row(line, functions).is_none()));
    }
    unread
}

fn parse_row(row: &'static str, functions: Functions) -> Option<Row> {
    let (row, detail) = row.split_once(" -- ").unwrap_or((row, ""));
    let (member, clauses) = row.split_once(": ")?;
    let (member, shown) = member.split_once(" as ").unwrap_or((member, member));
    let mut clauses: Vec<&str> = clauses.split(", ").collect();
    let last = clauses.pop()?;
    let before = clauses.iter().map(|clause| (*clause, ""));
    let all = before.chain([(last, detail)]);
    Some(Row {
        member: Some(member).filter(|member| *member != "."),
        shown: Shown::read(shown),
        clauses: all
            .map(|(clause, detail)| parse_clause(clause, detail, functions))
            .collect::<Option<_>>()?,
    })
}

fn parse_clause(
    clause: &'static str,
    detail: &'static str,
    functions: Functions,
) -> Option<Clause> {
    let mut words = clause.split(' ');
    let name = words.next()?;
    let args: Vec<&str> = match name {
        "invalid-as" => words.collect(),
        _ => words.map(|word| word.trim_matches('"')).collect(),
    };
    let [first, second] = [0, 1].map(|i| args.get(i).copied());
    let words = Words { args, detail };
    let find_hook = |name| find(functions.hooks, name);
    Some(match (name, first) {
        ("elements", None) => Clause::Elements,
        ("values", None) => Clause::Values,
        ("entries", None) => Clause::Entries,
        ("unique", None) => Clause::Unique(words),
        ("some-source", None) => Clause::SomeSource(words),
        ("source" | "source-as", Some(noun)) => Clause::Source(noun, second),
        ("in", Some(block)) => Clause::In(block),
        ("unless-stored" | "if-stored", Some(block)) => Clause::Stored {
            breaks: name == "if-stored",
            block,
        },
        ("by", Some(hook)) => Clause::By(find_hook(hook)?),
        _ => {
            if let Some(syntax) = find(checks::SYNTAXES, name) {
                Clause::Syntax(syntax, words)
            } else if let Some(guard) =
                find(checks::GUARDS, name).or_else(|| find(functions.guards, name))
            {
                Clause::Guard(guard, words)
            } else {
                let check = find(checks::CHECKS, name);
                Clause::Check(check.or_else(|| find(functions.checks, name))?, words)
            }
        }
    })
}

fn find<T: Copy>(table: &[(&str, T)], wanted: &str) -> Option<T> {
    let row = table.iter().find(|(name, _)| *name == wanted);
    row.map(|(_, found)| *found)
}
