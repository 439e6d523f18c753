//! The text form of the rules.

use super::checks;
use super::place::Shown;
use super::rules::{Clause, Functions, Row, Rules, Words};

/// Parses the rules in `sources`, which call `functions` by name.
pub(in crate::validation) fn parse(sources: &[&'static str], functions: Functions) -> Rules {
    let mut rules = Rules::default();
    let lines = sources.iter().flat_map(|source| source.lines());
    let mut block = "";
    for line in lines.filter(|line| !line.is_empty() && !line.starts_with('#')) {
        let Some(row) = line.strip_prefix("  ") else {
            block = line;
            if rules.blocks.insert(block, Vec::new()).is_some() {
                rules.unread.push(line);
            }
            continue;
        };
        match parse_row(row, functions) {
            Some(row) => rules.blocks.entry(block).or_default().push(row),
            None => rules.unread.push(line),
        }
    }
    rules
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
    let args: Vec<&str> = words.map(|word| word.trim_matches('"')).collect();
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
            } else if let Some(guard) = find(checks::GUARDS, name) {
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
