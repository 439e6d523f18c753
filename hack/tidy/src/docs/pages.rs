//! Form of Markdown pages: the first sentence, sentences per line, length of paragraphs.

use crate::{Findings, repository::SourceFile};

/// Maximum number of sentences, and so of lines, in a paragraph.
const SENTENCES_MAX: usize = 7;

/// First words of a page of `docs`: the reader's purpose.
const OPENINGS: [&str; 2] = ["Use ", "Read "];

/// Checks every Markdown page. Lists and tables may hold several sentences in a line.
pub fn check(pages: &[SourceFile]) -> Findings {
    let mut findings = Findings::new();
    for page in pages {
        let paragraphs = paragraphs(&page.text);
        let is_guide = page.path.starts_with("docs/");
        if is_guide && !paragraphs.first().is_some_and(Paragraph::has_purpose) {
            let path = &page.path;
            findings.push(format!(
                "{path}: begin with the purpose: `Use this page to …`"
            ));
        }
        for paragraph in paragraphs {
            let (path, line) = (&page.path, paragraph.line);
            let length = paragraph.lines.len();
            if length > SENTENCES_MAX {
                findings.push(format!(
                    "{path}:{line}: split the paragraph: it has {length} lines, the limit is \
                     {SENTENCES_MAX}"
                ));
            }
            for (offset, text) in paragraph.lines.iter().enumerate() {
                if has_two_sentences(text) {
                    let line = line + offset;
                    findings.push(format!(
                        "{path}:{line}: begin a new line after the sentence"
                    ));
                }
            }
        }
    }
    findings
}

/// Consecutive lines of text.
struct Paragraph<'a> {
    /// Number of the first line.
    line: usize,
    lines: Vec<&'a str>,
}

impl Paragraph<'_> {
    fn has_purpose(&self) -> bool {
        OPENINGS.iter().any(|word| self.lines[0].starts_with(word))
    }
}

/// Returns the paragraphs outside code fences, headings, comments, lists and tables.
fn paragraphs(page: &str) -> Vec<Paragraph<'_>> {
    let mut found: Vec<Paragraph<'_>> = Vec::new();
    let (mut fenced, mut open, mut other) = (false, false, false);
    for (index, line) in page.lines().enumerate() {
        let fence = line.trim_start().starts_with("```");
        fenced ^= fence;
        if fenced || fence || line.trim().is_empty() || line.starts_with('#') {
            (open, other) = (false, false);
            continue;
        }
        // The lines below a list item belong to the list.
        other |= !open && (line.starts_with(['|', '<', '!', ' ']) || is_list_item(line));
        if other {
            continue;
        }
        match found.last_mut().filter(|_| open) {
            Some(paragraph) => paragraph.lines.push(line),
            None => found.push(Paragraph {
                line: index + 1,
                lines: vec![line],
            }),
        }
        open = true;
    }
    found
}

fn is_list_item(line: &str) -> bool {
    let mark = line.split(' ').next().unwrap_or_default();
    let number = mark.strip_suffix('.').unwrap_or_default();
    matches!(mark, "-" | "*") || number.parse::<usize>().is_ok()
}

/// Returns true if a sentence begins within the line, outside code.
fn has_two_sentences(line: &str) -> bool {
    let prose: String = line.split('`').step_by(2).collect::<Vec<_>>().join("x");
    let ends = prose.match_indices(['.', '?', '!']);
    ends.map(|(at, _)| &prose[at + 1..]).any(|rest| {
        let rest = rest.strip_prefix(' ').unwrap_or_default();
        rest.starts_with(char::is_uppercase)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(path: &str, text: &str) -> Findings {
        check(&[SourceFile::new(path, text)])
    }

    #[test]
    fn page_with_purpose_and_short_lines_passes() {
        let page = "# A\n\n<!-- Generated: make fmt -->\n\nUse this page to test.\nIt has v1.36. \
                    lines.\n\n- One. Two.\n  Three. Four.\n\n| A. B. |\n\n```sh\na. B. C\n```\n";
        assert_eq!(found("docs/a.md", page), Findings::new());
        assert_eq!(found("README.md", "# A\n\nIt is.\n"), Findings::new());
    }

    #[test]
    fn page_without_purpose_is_found() {
        let expected = ["docs/a.md: begin with the purpose: `Use this page to …`"];
        assert_eq!(found("docs/a.md", "# A\n\nIt is.\n"), expected);
        assert_eq!(found("docs/a.md", "# A\n"), expected);
    }

    #[test]
    fn second_sentence_in_a_line_is_found() {
        let page = "# A\n\nOne.\nTwo `a.b`? Three.\n";
        let expected = ["a.md:4: begin a new line after the sentence"];
        assert_eq!(found("a.md", page), expected);
    }

    #[test]
    fn long_paragraph_is_found() {
        for (lines, count) in [(SENTENCES_MAX, 0), (SENTENCES_MAX + 1, 1)] {
            let page = format!("# A\n\n{}", "One.\n".repeat(lines));
            assert_eq!(found("a.md", &page).len(), count);
        }
    }
}
