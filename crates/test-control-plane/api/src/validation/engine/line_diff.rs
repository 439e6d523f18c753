//! Line-by-line difference of two texts in unified format.

use std::fmt::Write as _;

/// Number of unchanged lines around a change.
const CONTEXT: usize = 3;

/// Above this product of line counts, the changed part is shown as one replacement.
const TABLE_MAX: usize = 4_000_000;

/// A run of unchanged lines, or of lines that replace each other.
struct Piece {
    same: bool,
    old: std::ops::Range<usize>,
    new: std::ops::Range<usize>,
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

fn pieces(old: &[&str], new: &[&str]) -> Vec<Piece> {
    let head = old.iter().zip(new).take_while(|(a, b)| a == b).count();
    let rest = old.len().min(new.len()) - head;
    let tail = (1..=rest)
        .take_while(|back| old[old.len() - back] == new[new.len() - back])
        .count();
    let mut pieces = vec![Piece {
        same: true,
        old: 0..head,
        new: 0..head,
    }];
    let (old_end, new_end) = (old.len() - tail, new.len() - tail);
    middle(&old[..old_end], &new[..new_end], head, &mut pieces);
    pieces.push(Piece {
        same: true,
        old: old_end..old.len(),
        new: new_end..new.len(),
    });
    pieces.retain(|piece| !piece.old.is_empty() || !piece.new.is_empty());
    pieces
}

/// Compares the lines between the common head and tail by their longest common subsequence.
fn middle(old: &[&str], new: &[&str], start: usize, pieces: &mut Vec<Piece>) {
    let (rows, columns) = (old.len() - start, new.len() - start);
    let mut push =
        |same: bool, old: std::ops::Range<usize>, new: std::ops::Range<usize>| match pieces
            .last_mut()
        {
            Some(last) if last.same == same && last.old.end == old.start => {
                last.old.end = old.end;
                last.new.end = new.end;
            }
            _ => pieces.push(Piece { same, old, new }),
        };
    if rows.saturating_mul(columns) > TABLE_MAX {
        push(false, start..old.len(), start..new.len());
        return;
    }
    // The length of the longest common subsequence from each row and column on.
    let mut common = vec![vec![0_u32; columns + 1]; rows + 1];
    for i in (0..rows).rev() {
        for j in (0..columns).rev() {
            common[i][j] = if old[start + i] == new[start + j] {
                common[i + 1][j + 1] + 1
            } else {
                common[i + 1][j].max(common[i][j + 1])
            };
        }
    }
    let (mut i, mut j) = (0, 0);
    while i < rows || j < columns {
        let (at, to) = (start + i, start + j);
        if i < rows && j < columns && old[at] == new[to] {
            push(true, at..at + 1, to..to + 1);
            i += 1;
            j += 1;
        } else if i < rows && (j == columns || common[i + 1][j] >= common[i][j + 1]) {
            push(false, at..at + 1, to..to);
            i += 1;
        } else {
            push(false, at..at, to..to + 1);
            j += 1;
        }
    }
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
}
