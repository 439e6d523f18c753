//! Rust snippets of a page that stand in a file: a paragraph that names the file in backticks, ends
//! in a colon or a period, and precedes the code.

use crate::{Findings, repository::SourceFile};

/// Finds snippets of a page whose lines aren't in the file named before them.
pub fn check(page: &SourceFile, files: &[SourceFile]) -> Findings {
    let mut findings = Findings::new();
    let mut named: Option<&str> = None;
    let mut lines = page.text.lines();
    while let Some(line) = lines.next() {
        if line == "```rust" {
            let snippet = code(lines.by_ref().take_while(|line| *line != "```"));
            let Some(path) = named.take() else { continue };
            let file = files.iter().find(|file| file.path == path);
            let found = file.is_some_and(|file| contains(&code(file.text.lines()), &snippet));
            if !found {
                let first = snippet.first().copied().unwrap_or_default();
                findings.push(format!(
                    "{}: the snippet `{first}` is not in {path}",
                    page.path
                ));
            }
        } else if !line.is_empty() {
            named = path_in(line);
        }
    }
    findings
}

/// The first path of a Rust file in backticks.
fn path_in(line: &str) -> Option<&str> {
    let spans = line.split('`').skip(1).step_by(2);
    spans.into_iter().find(|span| {
        span.contains('/') && span.rsplit_once('.').is_some_and(|(_, end)| end == "rs")
    })
}

/// Lines without indentation, blank ones left out.
fn code<'a>(lines: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    lines
        .map(str::trim)
        .filter(|line| !line.is_empty())
        .collect()
}

fn contains(file: &[&str], snippet: &[&str]) -> bool {
    !snippet.is_empty() && file.windows(snippet.len()).any(|lines| lines == snippet)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(snippet: &str) -> Findings {
        let text = format!("# A\n\n**B**, `src/b.rs`: it adds.\n\n```rust\n{snippet}\n```\n");
        let page = SourceFile::new("docs/a.md", &text);
        let file = SourceFile::new("src/b.rs", "fn b() {\n    one();\n\n    two();\n}\n");
        check(&page, &[file])
    }

    #[test]
    fn lines_of_the_file_pass_without_their_indentation() {
        assert_eq!(found("one();\ntwo();"), Findings::new());
        assert_eq!(found("fn b() {\n  one();"), Findings::new());
    }

    #[test]
    fn changed_and_missing_lines_are_found() {
        let wrong = |line: &str| {
            vec![format!(
                "docs/a.md: the snippet `{line}` is not in src/b.rs"
            )]
        };
        assert_eq!(found("one();\nthree();"), wrong("one();"));
        assert_eq!(found("fn b() {\ntwo();"), wrong("fn b() {"));
    }
}
