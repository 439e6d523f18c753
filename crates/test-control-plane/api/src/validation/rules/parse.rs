//! The text form of the rules.

use super::{Clause, Row, Rules, Words, checks};

const SOURCES: [&str; 11] = [
    include_str!("batch.txt"),
    include_str!("cluster.txt"),
    include_str!("container.txt"),
    include_str!("metadata.txt"),
    include_str!("network.txt"),
    include_str!("others.txt"),
    include_str!("pod.txt"),
    include_str!("scheduling.txt"),
    include_str!("traffic.txt"),
    include_str!("volume.txt"),
    include_str!("workload.txt"),
];

pub(super) fn parse() -> Rules {
    let mut rules = Rules::default();
    let lines = SOURCES.iter().flat_map(|source| source.lines());
    let mut block = "";
    for line in lines.filter(|line| !line.is_empty() && !line.starts_with('#')) {
        let Some(row) = line.strip_prefix("  ") else {
            block = line;
            continue;
        };
        match parse_row(row) {
            Some(row) => rules.blocks.entry(block).or_default().push(row),
            None => rules.unread.push(line),
        }
    }
    rules
}

fn parse_row(row: &'static str) -> Option<Row> {
    let (row, detail) = row.split_once(" -- ").unwrap_or((row, ""));
    let (member, clauses) = row.split_once(": ")?;
    let (member, shown) = member.split_once(" as ").unwrap_or((member, member));
    let mut clauses: Vec<&str> = clauses.split(", ").collect();
    let last = clauses.pop()?;
    let before = clauses.iter().map(|clause| parse_clause(clause, ""));
    let all = before.chain([parse_clause(last, detail)]);
    Some(Row {
        member: Some(member).filter(|member| *member != "."),
        shown,
        clauses: all.collect::<Option<_>>()?,
    })
}

fn parse_clause(clause: &'static str, detail: &'static str) -> Option<Clause> {
    let mut words = clause.split(' ');
    let name = words.next()?;
    let args: Vec<&str> = words.map(|word| word.trim_matches('"')).collect();
    match (name, args.as_slice()) {
        ("elements", []) => return Some(Clause::Elements),
        ("values", []) => return Some(Clause::Values),
        ("unique", []) => return Some(Clause::Unique),
        ("in", [block]) => return Some(Clause::In(block)),
        ("by", [hook]) => return checks::hook(hook).map(Clause::By),
        _ => {}
    }
    if let Some(syntax) = checks::syntax(name) {
        return Some(Clause::Syntax(syntax));
    }
    let words = Words { args, detail };
    match checks::guard(name) {
        Some(guard) => Some(Clause::Guard(guard, words)),
        None => Some(Clause::Check(checks::check(name)?, words)),
    }
}
