//! The functions of a program that run, for a linker that places them side by side.
//!
//! The compiler moves the blocks of a function that never ran to a separate symbol. Callgrind
//! reports both symbols under the function's name, so they are looked up by address.

use std::collections::BTreeSet;
use std::fs;
use std::io::Write as _;

use anyhow::{Context as _, ensure};

/// Name of the subcommand.
pub(crate) const SUBCOMMAND: &str = "function-order";

/// Prints the names of the executed functions, one per line, in the order of their addresses.
///
/// `symbols` is a file with the output of `nm --print-size` for a static program, `counts` are files
/// of callgrind with `--dump-instr=yes` from its runs.
///
/// # Errors
///
/// A file can't be read, or no function has an executed instruction.
pub(crate) fn print(symbols: &str, counts: &[&str]) -> anyhow::Result<()> {
    let read = |path: &str| fs::read_to_string(path).with_context(|| format!("read {path}"));
    let symbols = read(symbols)?;
    let mut executed = BTreeSet::new();
    for path in counts {
        executed.extend(addresses(&read(path)?));
    }
    let names = executed_functions(&symbols, &executed);
    ensure!(
        !names.is_empty(),
        "no executed instruction belongs to a symbol: are the files of the same program, and written \
         with --dump-instr=yes?"
    );
    writeln!(std::io::stdout(), "{}", names.join("\n"))?;
    Ok(())
}

/// Addresses of the instructions with a cost, in a file of callgrind.
fn addresses(counts: &str) -> impl Iterator<Item = u64> + '_ {
    let lines = counts.lines();
    lines
        .scan(0, |last, line| {
            let first = line.split(' ').next().unwrap_or_default();
            let address = address(first, *last);
            *last = address.unwrap_or(*last);
            Some(address)
        })
        .flatten()
}

/// The address at the start of a line of costs, which may be relative to the last one.
///
/// `None` for every other line.
fn address(field: &str, last: u64) -> Option<u64> {
    if let Some(hex) = field.strip_prefix("0x") {
        u64::from_str_radix(hex, 16).ok()
    } else if let Some(distance) = field.strip_prefix('+') {
        last.checked_add(distance.parse().ok()?)
    } else if let Some(distance) = field.strip_prefix('-') {
        last.checked_sub(distance.parse().ok()?)
    } else {
        (field == "*").then_some(last)
    }
}

/// Names of the functions that contain one of the addresses, each once.
fn executed_functions<'a>(symbols: &'a str, executed: &BTreeSet<u64>) -> Vec<&'a str> {
    let runs = |&(start, end, _): &(u64, u64, &str)| executed.range(start..end).next().is_some();
    let functions = symbols.lines().filter_map(function);
    let mut functions: Vec<_> = functions.filter(runs).collect();
    functions.sort_unstable();
    functions.dedup_by_key(|(start, ..)| *start);
    functions.into_iter().map(|(_, _, name)| name).collect()
}

/// Start, end and name of a function, from its line of nm.
fn function(line: &str) -> Option<(u64, u64, &str)> {
    let mut fields = line.split_ascii_whitespace();
    let mut number = || u64::from_str_radix(fields.next()?, 16).ok();
    let (start, size) = (number()?, number()?);
    let is_code = matches!(fields.next()?, "t" | "T" | "w" | "W");
    let name = fields.next()?;
    is_code.then_some((start, start.checked_add(size)?, name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_absolute_or_relative_to_the_last_cost() {
        let counts = "version: 1\npositions: instr line\nevents: Ir\n\nfn=(1) main\n0x1000 0 3\n+12 0 1\n\
                      cfn=(2) other\ncalls=1 0x9000 0\n* 0 7\n-4 * 1\ntotals: 12\n";
        let found: Vec<u64> = addresses(counts).collect();
        assert_eq!(found, [0x1000, 0x100c, 0x100c, 0x1008]);
    }

    #[test]
    fn executed_functions_follow_their_addresses() {
        let symbols = "0000000000001010 0000000000000010 t second\n\
                       0000000000001000 0000000000000010 T first\n\
                       0000000000001020 0000000000000010 t never\n\
                       0000000000001030 0000000000000010 r constant\n\
                       0000000000001040 0000000000000010 t first.cold\n\
                       0000000000001040 t without_size\n\
                       0000000000001050 0000000000000000 t empty\n\
                       0000000000001010 0000000000000000 t label_of_second\n\
                       \x20                U undefined\n";
        let executed = BTreeSet::from([0x100f, 0x1010, 0x1030, 0x1044, 0x1050, 0x2000]);
        let found = executed_functions(symbols, &executed);
        assert_eq!(found, ["first", "second", "first.cold"]);
    }
}
