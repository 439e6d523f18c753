//! Comparison of a command's result with the recorded one, by fields of lines, because column
//! widths depend on masked values.

use super::cluster::Finished;
use super::session::Step;
use crate::masks::Masks;

/// Differences in exit code, standard output and standard error.
pub(super) fn compare(step: &Step, finished: &Finished) -> Vec<String> {
    let mut lines = Vec::new();
    if Some(step.exit) != finished.exit {
        lines.push(format!(
            "exit code: expected {}, is {:?}",
            step.exit, finished.exit
        ));
    }
    for (name, expected, actual) in [
        ("stdout", &step.stdout, &finished.stdout),
        ("stderr", &step.stderr, &finished.stderr),
    ] {
        let (expected, actual) = (fields(expected), fields(actual));
        lines.extend(
            diff(&expected, &actual)
                .into_iter()
                .map(|line| format!("{name} {line}")),
        );
    }
    lines
}

/// Non-blank lines, with single spaces between fields.
fn fields(text: &str) -> Vec<String> {
    text.lines()
        .map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "))
        .filter(|line| !line.is_empty())
        .collect()
}

/// Lines on only one side, in order.
fn diff(expected: &[String], actual: &[String]) -> Vec<String> {
    let masks = Masks::default();
    let alike = |i: usize, j: usize| masks.match_text(&expected[i], &actual[j]);
    // Longest common subsequence of the remaining lines, for each pair of positions.
    let mut common = vec![vec![0; actual.len() + 1]; expected.len() + 1];
    for i in (0..expected.len()).rev() {
        for j in (0..actual.len()).rev() {
            common[i][j] = if alike(i, j) {
                common[i + 1][j + 1] + 1
            } else {
                common[i + 1][j].max(common[i][j + 1])
            };
        }
    }
    let (mut i, mut j) = (0, 0);
    let mut lines = Vec::new();
    while i < expected.len() || j < actual.len() {
        if i < expected.len() && j < actual.len() && alike(i, j) {
            i += 1;
            j += 1;
        } else if j == actual.len() || (i < expected.len() && common[i + 1][j] >= common[i][j + 1])
        {
            lines.push(format!("- {}", expected[i]));
            i += 1;
        } else {
            lines.push(format!("+ {}", actual[j]));
            j += 1;
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    fn differences(expected: &str, actual: &str) -> Vec<String> {
        diff(&fields(expected), &fields(actual))
    }

    #[test]
    fn column_widths_and_masked_values_are_ignored() {
        let expected = "NAME   AGE\nweb    <age>\n\ndone\n";
        let actual = "NAME    AGE\nweb     4m38s\ndone";
        assert_eq!(differences(expected, actual), [""; 0]);
    }

    #[test]
    fn unmatched_lines_are_differences() {
        assert_eq!(
            differences("a\nb\nc\n", "a\nx\nc\nd\n"),
            ["- b", "+ x", "+ d"]
        );
    }
}
