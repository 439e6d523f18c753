//! Translation of YAML syntax errors to the messages of Go's reader.

use serde_saphyr::{DefaultMessageFormatter, Error, MessageFormatter as _};

/// The stage of Go's reader that detects an error. It decides which line the message names.
#[derive(Clone, Copy, Debug)]
enum Finder {
    /// The scanner, which names the current line.
    Scanner,
    /// The parser, which counts lines from 0 and so names the line before.
    Parser,
    /// The character reader, which names no line.
    Reader,
    /// The scanner at the end of a line, which names the next line.
    AfterLine,
}

/// Our parser's message or a part of it, Go's message, and the stage that detects the error in Go.
const MISTAKES: &[(&str, &str, Finder)] = &[
    (
        "mapping values are not allowed in this context",
        "mapping values are not allowed in this context",
        Finder::Scanner,
    ),
    (
        "did not find expected key",
        "did not find expected key",
        Finder::Parser,
    ),
    (
        "did not find expected '-' indicator",
        "did not find expected '-' indicator",
        Finder::Parser,
    ),
    (
        "invalid trailing content after",
        "did not find expected key",
        Finder::Parser,
    ),
    (
        "misplaced bracket",
        "did not find expected node content",
        Finder::Parser,
    ),
    (
        "simple key expected ':'",
        "could not find expected ':'",
        Finder::AfterLine,
    ),
    (
        "found a tab",
        "found a tab character that violates indentation",
        Finder::AfterLine,
    ),
    (
        "tabs disallowed within this context",
        "found character that cannot start any token",
        Finder::Scanner,
    ),
    (
        "found unknown escape character",
        "found unknown escape character",
        Finder::Scanner,
    ),
    (
        "did not find expected hexadecimal number",
        "did not find expected hexdecimal number",
        Finder::Scanner,
    ),
    (
        "did not find expected comment or line break",
        "did not find expected comment or line break",
        Finder::Scanner,
    ),
    (
        "merge value must be mapping",
        "map merge requires map or sequence of maps as the value",
        Finder::Reader,
    ),
    (
        "alias replay limit exceeded",
        "document contains excessive aliasing",
        Finder::Reader,
    ),
];

/// Returns Go's text of an error, with a line number where Go has one.
pub(super) fn to_go_message(text: &str, error: &Error) -> String {
    let error = error.without_snippet();
    let said = DefaultMessageFormatter.format_message(error).into_owned();
    let line = error.location().map_or(0, |location| location.line());
    let (what, line) = translated(text, &said, line);
    match line {
        Some(line) => format!("line {line}: {what}"),
        None => what,
    }
}

/// Returns Go's message and line number. `line` is our parser's line.
fn translated(text: &str, said: &str, line: u64) -> (String, Option<u64>) {
    let after_the_last = u64::try_from(text.lines().count()).unwrap_or(u64::MAX) + 1;
    if let Some(open) = said.strip_prefix("unclosed bracket ") {
        let before = text.trim_end().chars().next_back();
        let what = match (before, open) {
            (Some(',' | ':' | '[' | '{'), _) => "did not find expected node content",
            (_, "'{'") => "did not find expected ',' or '}'",
            _ => "did not find expected ',' or ']'",
        };
        return (what.to_owned(), named(Finder::Parser, after_the_last));
    }
    if said == "unclosed quote" || said.starts_with("invalid indentation in multiline quoted") {
        let what = "found unexpected end of stream".to_owned();
        return (what, named(Finder::Scanner, after_the_last));
    }
    if let Some(character) = said.strip_prefix("unexpected character: `") {
        return if character.starts_with("\\u") {
            let what = "control characters are not allowed".to_owned();
            (what, named(Finder::Reader, line))
        } else {
            let what = "found character that cannot start any token".to_owned();
            (what, named(Finder::Scanner, line))
        };
    }
    if let Some((_, what, finder)) = MISTAKES.iter().find(|(part, ..)| said.contains(part)) {
        return ((*what).to_owned(), named(*finder, line));
    }
    (said.to_owned(), named(Finder::Scanner, line))
}

/// Returns the line that Go names for an error in `line`, which counts from 1. Go never names the
/// first line.
fn named(finder: Finder, line: u64) -> Option<u64> {
    let line = match finder {
        Finder::Scanner => line.checked_sub(1).filter(|above| *above > 0)? + 1,
        Finder::Parser => line.checked_sub(1)?,
        Finder::AfterLine => line + 1,
        Finder::Reader => return None,
    };
    (line > 0).then_some(line)
}

#[cfg(test)]
mod tests {
    use super::super::read;

    #[test]
    fn errors_match_go() {
        for (text, told) in [
            (
                "a: b: c\n",
                "mapping values are not allowed in this context",
            ),
            (
                "a: b\n  c: d\n",
                "line 2: mapping values are not allowed in this context",
            ),
            ("a:\n  b: c\n d: e\n", "line 2: did not find expected key"),
            ("a: b\n- c\n", "line 1: did not find expected key"),
            ("- a\nb: c\n", "line 1: did not find expected '-' indicator"),
            ("a: 'x'y\n", "did not find expected key"),
            ("a: }\n", "did not find expected node content"),
            (
                "a: b\nc: {d: e\n",
                "line 2: did not find expected ',' or '}'",
            ),
            ("a: [b", "line 1: did not find expected ',' or ']'"),
            ("a: {b: c,\n", "line 1: did not find expected node content"),
            ("[", "line 1: did not find expected node content"),
            ("a: \"b\n", "line 2: found unexpected end of stream"),
            ("'", "line 2: found unexpected end of stream"),
            ("a: @b\n", "found character that cannot start any token"),
            (
                "a:\n\t- b\n",
                "line 2: found character that cannot start any token",
            ),
            (
                "a: b\n\tc: d\n",
                "line 2: found a tab character that violates indentation",
            ),
            ("a: \u{1}\n", "control characters are not allowed"),
            ("a: \"\\q\"\n", "found unknown escape character"),
            ("a: \"\\xZZ\"\n", "did not find expected hexdecimal number"),
            ("a: |x\n b\n", "did not find expected comment or line break"),
            ("a: b\nc\nd: e\n", "line 3: could not find expected ':'"),
            (
                "<<: x\n",
                "map merge requires map or sequence of maps as the value",
            ),
        ] {
            let wanted = Err(format!("yaml: {told}"));
            assert_eq!(read(text.as_bytes()), wanted, "{text}");
        }
    }

    /// This also holds for errors whose text differs from Go's.
    #[test]
    fn every_error_is_one_line() {
        for text in [
            "a: [b, c\nd: e\n",
            "a: !!int x\n",
            "a: *b\n",
            "? [a]\n: b\n",
        ] {
            let told = read(text.as_bytes()).unwrap_err();
            assert!(told.starts_with("yaml: ") && !told.contains('\n'), "{told}");
        }
    }
}
