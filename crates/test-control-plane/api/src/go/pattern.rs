//! Patterns in the syntax of Go, where `\d`, `\s` and `\w` mean ASCII and a class contains no classes.

use regex::{Error, Regex};

/// Compiles a pattern of a schema.
///
/// # Errors
///
/// The pattern is no regular expression.
pub(crate) fn compile(pattern: &str) -> Result<Regex, Error> {
    Regex::new(&translate(pattern))
}

/// Rewrites a pattern so that this crate reads it as Go does.
fn translate(pattern: &str) -> String {
    let mut translated = String::with_capacity(pattern.len());
    let mut rest = pattern.chars().peekable();
    let mut class = Class::Outside;
    while let Some(letter) = rest.next() {
        if letter == '\\' {
            escape(rest.next(), &mut translated);
            class = class.next();
            continue;
        }
        match (class, letter) {
            (Class::Outside, '[') => {
                translated.push('[');
                if rest.next_if_eq(&'^').is_some() {
                    translated.push('^');
                }
                class = Class::Begins;
                continue;
            }
            (Class::Outside, _) => translated.push(letter),
            // The name of a class, such as `[:alpha:]`, ends at its own bracket.
            (_, '[') if rest.peek() == Some(&':') => {
                translated.push('[');
                for inner in rest.by_ref() {
                    translated.push(inner);
                    if inner == ']' {
                        break;
                    }
                }
            }
            (Class::Begins, ']') => translated.push_str("\\]"),
            (Class::Within, ']') => {
                translated.push(']');
                class = Class::Outside;
            }
            (_, '[' | '&' | '~') => translated.extend(['\\', letter]),
            _ => translated.push(letter),
        }
        class = class.next();
    }
    translated
}

/// Writes an escape sequence, `\` and the given letter.
fn escape(letter: Option<char>, translated: &mut String) {
    match letter {
        Some('d') => translated.push_str("[0-9]"),
        Some('D') => translated.push_str("[^0-9]"),
        Some('s') => translated.push_str(r"[\t\n\f\r ]"),
        Some('S') => translated.push_str(r"[^\t\n\f\r ]"),
        Some('w') => translated.push_str("[0-9A-Za-z_]"),
        Some('W') => translated.push_str("[^0-9A-Za-z_]"),
        Some('b') => translated.push_str(r"(?-u:\b)"),
        Some(letter) => translated.extend(['\\', letter]),
        None => translated.push('\\'),
    }
}

/// A place in a pattern.
#[derive(Clone, Copy)]
enum Class {
    Outside,
    /// Right after the bracket that opens a class, where `]` is an ordinary character.
    Begins,
    Within,
}

impl Class {
    /// Returns the place after a character that neither opens nor closes a class.
    fn next(self) -> Self {
        match self {
            Self::Begins => Self::Within,
            other => other,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_as_in_go() {
        for (pattern, matching, other) in [
            (r"^\d+$", "12", "١٢"),
            (r"^\w$", "a", "é"),
            (r"^\S$", "\u{a0}", " "),
            (r"^[\d.]+$", "1.2", "١"),
            (r"^[[a]$", "[", "b"),
            (r"^[]a]$", "]", "b"),
            (r"^[^]a]$", "b", "]"),
            (r"^[a&&b]$", "&", "c"),
            (r"^[[:alpha:]_]$", "_", "1"),
            (r"^\[\d\]$", "[1]", "[a]"),
            (r"\bx", "é x", "ax"),
        ] {
            let compiled = compile(pattern).unwrap();
            assert!(compiled.is_match(matching), "{pattern} matches {matching}");
            assert!(!compiled.is_match(other), "{pattern} doesn't match {other}");
        }
        assert!(compile("a(").is_err());
    }
}
