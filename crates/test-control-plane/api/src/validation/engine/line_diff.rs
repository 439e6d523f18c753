//! Line-by-line difference of two texts in unified format.
//!
//! Upstream: `GetUnifiedDiffString` of go-difflib, after Python's `difflib`

use std::collections::HashMap;
use std::fmt::Write as _;
use std::ops::Range;

/// Number of unchanged lines around a change.
const CONTEXT: usize = 3;

/// From this number of lines on, frequent ones begin no match.
const FREQUENT_FROM: usize = 200;

/// A run of unchanged lines, or of lines that replace each other.
struct Piece {
    same: bool,
    old: Range<usize>,
    new: Range<usize>,
}

/// Returns the hunks; empty if the texts are equal.
pub(super) fn unified(old: &str, new: &str) -> String {
    let old: Vec<&str> = old.lines().collect();
    let new: Vec<&str> = new.lines().collect();
    let mut text = String::new();
    for hunk in hunks(pieces(&old, &new)) {
        let (Some(first), Some(last)) = (hunk.first(), hunk.last()) else {
            continue;
        };
        // Writing to a string can't fail.
        let _ = writeln!(
            text,
            "@@ -{} +{} @@",
            range(first.old.start, last.old.end),
            range(first.new.start, last.new.end)
        );
        for piece in &hunk {
            let mark = if piece.same { ' ' } else { '-' };
            for line in &old[piece.old.clone()] {
                let _ = writeln!(text, "{mark}{line}");
            }
            if !piece.same {
                for line in &new[piece.new.clone()] {
                    let _ = writeln!(text, "+{line}");
                }
            }
        }
    }
    text
}

fn range(start: usize, end: usize) -> String {
    match end - start {
        1 => format!("{}", start + 1),
        0 => format!("{start},0"),
        length => format!("{},{length}", start + 1),
    }
}

/// Returns the unchanged runs, and those between them.
fn pieces(old: &[&str], new: &[&str]) -> Vec<Piece> {
    let mut blocks = matching_blocks(old, new);
    blocks.push((old.len(), new.len(), 0));
    let mut pieces = Vec::new();
    let (mut i, mut j) = (0, 0);
    for (old_start, new_start, length) in blocks {
        pieces.push(Piece {
            same: false,
            old: i..old_start,
            new: j..new_start,
        });
        (i, j) = (old_start + length, new_start + length);
        pieces.push(Piece {
            same: true,
            old: old_start..i,
            new: new_start..j,
        });
    }
    pieces.retain(|piece| !piece.old.is_empty() || !piece.new.is_empty());
    pieces
}

/// The start of a match in the old and the new lines, and its length.
type Match = (usize, usize, usize);

/// Returns the longest match, and the longest ones before and behind it, and so on, in order.
///
/// Upstream: `SequenceMatcher.GetMatchingBlocks`
fn matching_blocks(old: &[&str], new: &[&str]) -> Vec<Match> {
    let mut positions: HashMap<&str, Vec<usize>> = HashMap::new();
    for (j, line) in new.iter().enumerate() {
        positions.entry(line).or_default().push(j);
    }
    if new.len() >= FREQUENT_FROM {
        positions.retain(|_, found| found.len() <= new.len() / 100 + 1);
    }
    let mut blocks: Vec<Match> = Vec::new();
    let mut left = vec![(0..old.len(), 0..new.len())];
    while let Some((of_old, of_new)) = left.pop() {
        let (i, j, length) = longest(old, new, &positions, &of_old, &of_new);
        if length > 0 {
            left.push((of_old.start..i, of_new.start..j));
            left.push((i + length..of_old.end, j + length..of_new.end));
            blocks.push((i, j, length));
        }
    }
    blocks.sort_unstable();
    let mut joined: Vec<Match> = Vec::new();
    for (i, j, length) in blocks {
        match joined.last_mut() {
            Some((old, new, before)) if *old + *before == i && *new + *before == j => {
                *before += length;
            }
            _ => joined.push((i, j, length)),
        }
    }
    joined
}

/// Returns the longest match in two ranges, of equal ones the first in the old lines, then in the new
/// ones.
///
/// Upstream: `SequenceMatcher.findLongestMatch`
fn longest(
    old: &[&str],
    new: &[&str],
    positions: &HashMap<&str, Vec<usize>>,
    of_old: &Range<usize>,
    of_new: &Range<usize>,
) -> Match {
    let (mut i, mut j, mut length) = (of_old.start, of_new.start, 0);
    // The lengths of the matches that end in the line before, by the position behind them.
    let mut ends: HashMap<usize, usize> = HashMap::new();
    for at in of_old.clone() {
        let mut next = HashMap::new();
        let found = positions.get(old[at]).into_iter().flatten();
        for &to in found.filter(|to| of_new.contains(to)) {
            let size = ends.get(&to).copied().unwrap_or_default() + 1;
            next.insert(to + 1, size);
            if size > length {
                (i, j, length) = (at + 1 - size, to + 1 - size, size);
            }
        }
        ends = next;
    }
    // Frequent lines extend a match.
    while i > of_old.start && j > of_new.start && old[i - 1] == new[j - 1] {
        (i, j, length) = (i - 1, j - 1, length + 1);
    }
    while i + length < of_old.end && j + length < of_new.end && old[i + length] == new[j + length] {
        length += 1;
    }
    (i, j, length)
}

/// Trims unchanged lines to the context and splits hunks where there are more.
fn hunks(pieces: Vec<Piece>) -> Vec<Vec<Piece>> {
    let mut hunks = Vec::new();
    let mut hunk: Vec<Piece> = Vec::new();
    let count = pieces.len();
    for (index, piece) in pieces.into_iter().enumerate() {
        if !piece.same {
            hunk.push(piece);
            continue;
        }
        let length = piece.old.len();
        let part = |from: usize, to: usize| Piece {
            same: true,
            old: piece.old.start + from..piece.old.start + to,
            new: piece.new.start + from..piece.new.start + to,
        };
        let is_last = index + 1 == count;
        if !hunk.is_empty() {
            if length <= 2 * CONTEXT && !is_last {
                hunk.push(part(0, length));
                continue;
            }
            hunk.push(part(0, length.min(CONTEXT)));
            hunks.push(std::mem::take(&mut hunk));
        }
        if !is_last {
            hunk.push(part(length.saturating_sub(CONTEXT), length));
        }
    }
    if hunk.iter().any(|piece| !piece.same) {
        hunks.push(hunk);
    }
    hunks
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_have_three_lines_of_context() {
        let old: Vec<String> = (1..=30).map(|n| n.to_string()).collect();
        let mut new = old.clone();
        new[4] = "five".to_owned();
        new.remove(20);
        new.push("end".to_owned());
        let diff = unified(&old.join("\n"), &new.join("\n"));
        let expected = "@@ -2,7 +2,7 @@\n 2\n 3\n 4\n-5\n+five\n 6\n 7\n 8\n\
                        @@ -18,7 +18,6 @@\n 18\n 19\n 20\n-21\n 22\n 23\n 24\n\
                        @@ -28,3 +27,4 @@\n 28\n 29\n 30\n+end\n";
        assert_eq!(diff, expected);
        assert_eq!(unified("a\nb", "a\nb"), "");
        assert_eq!(unified("a", "b"), "@@ -1 +1 @@\n-a\n+b\n");
    }

    #[test]
    fn first_of_the_longest_matches_counts() {
        let (old, new) = ("L: 0\nR: {\ns: 1\n}", "L: {\ns: 1\n},\nR: {\ns: 2\n}");
        let expected = "@@ -1,4 +1,6 @@\n-L: 0\n+L: {\n+s: 1\n+},\n R: {\n-s: 1\n+s: 2\n }\n";
        assert_eq!(unified(old, new), expected);
    }

    #[test]
    fn frequent_lines_only_extend_matches() {
        let lines = |start: &str, end: &str| {
            let middle = vec!["-"; FREQUENT_FROM];
            format!("{start}\n{}\n{end}", middle.join("\n"))
        };
        let diff = unified(&lines("a", "z"), &lines("b", "y"));
        assert_eq!(diff.matches("\n--").count(), FREQUENT_FROM);
    }
}
