//! Patterns in the syntax of Go, where `\d`, `\s` and `\w` mean ASCII and a class contains no classes.

mod parse;

use regex::Regex;

/// Compiles a pattern of a schema.
///
/// # Errors
///
/// The text of Go's error: the pattern is no regular expression.
pub(crate) fn compile(pattern: &str) -> Result<Regex, String> {
    Regex::new(&parse::translate(pattern)?).map_err(|error| error.to_string())
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
            (r"^[^\S]$", " ", "x"),
            (r"^[[a]$", "[", "b"),
            (r"^[]a]$", "]", "b"),
            (r"^[^]a]$", "b", "]"),
            (r"^[a&&b]$", "&", "c"),
            (r"^[a-]$", "-", "b"),
            (r"^[[:alpha:]_]$", "_", "1"),
            (r"^\[\d\]$", "[1]", "[a]"),
            (r"\bx", "é x", "ax"),
            (r"^a{,2}$", "a{,2}", "aa"),
            (r"^\Qa.b\E+$", "a.bb", "axb"),
            (r"^\x41\x{42}\103$", "ABC", "abc"),
            (r"^(?i)k(?-i:l)$", "Kl", "kL"),
            (r"^(?P<n>a)(?<m>b)$", "ab", "a"),
            (r"^\p{Greek}\pL$", "αx", "xα"),
        ] {
            let compiled = compile(pattern).unwrap();
            assert!(compiled.is_match(matching), "{pattern} matches {matching}");
            assert!(!compiled.is_match(other), "{pattern} doesn't match {other}");
        }
    }

    #[test]
    fn errors_read_as_in_go() {
        for (pattern, wanted) in [
            ("a(", "missing closing ): `a(`"),
            ("a)", "unexpected ): `a)`"),
            ("x[a", "missing closing ]: `[a`"),
            ("x[b-a]", "invalid character class range: `b-a`"),
            ("[[:foo:]]", "invalid character class range: `[:foo:]`"),
            (r"\p{Foo}", r"invalid character class range: `\p{Foo}`"),
            ("*a", "missing argument to repetition operator: `*`"),
            ("a|*", "missing argument to repetition operator: `*`"),
            ("(+?", "missing argument to repetition operator: `+?`"),
            ("a**", "invalid nested repetition operator: `**`"),
            ("a{2}{3}", "invalid nested repetition operator: `{2}{3}`"),
            ("a{1001}", "invalid repeat count: `{1001}`"),
            ("a{3,2}", "invalid repeat count: `{3,2}`"),
            ("(a{100}){11}", "invalid repeat count: `{11}`"),
            (r"\q", r"invalid escape sequence: `\q`"),
            (r"\8", r"invalid escape sequence: `\8`"),
            (r"[\x4]", r"invalid escape sequence: `\x4]`"),
            (r"\x{110000}", r"invalid escape sequence: `\x{110000`"),
            ("a\\", "trailing backslash at end of expression: ``"),
            ("(?=a)", "invalid or unsupported Perl syntax: `(?=`"),
            ("(?<!a)", "invalid named capture: `(?<!a)`"),
            ("(?P<a-b>c)", "invalid named capture: `(?P<a-b>`"),
        ] {
            let wanted = format!("error parsing regexp: {wanted}");
            assert_eq!(compile(pattern).unwrap_err(), wanted, "{pattern}");
        }
    }
}
