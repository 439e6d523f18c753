//! Names of variables and fields in rules.

/// The variable of the value before an update.
pub(super) const OLD: &str = "oldSelf";

/// The variable of the value.
pub(super) const OWN: &str = "self";

/// Words that can't be names of variables.
const RESERVED: [&str; 21] = [
    "as",
    "break",
    "const",
    "continue",
    "else",
    "false",
    "for",
    "function",
    "if",
    "import",
    "in",
    "let",
    "loop",
    "namespace",
    "null",
    "package",
    "return",
    "true",
    "var",
    "void",
    "while",
];

/// Parts of names that are written as words.
const ESCAPES: [(&str, &str); 4] = [
    ("__", "__underscores__"),
    (".", "__dot__"),
    ("-", "__dash__"),
    ("/", "__slash__"),
];

/// Returns the name of a variable without the dot in front of it that makes a name absolute: all names
/// are, as expressions belong to no container.
pub(super) fn without_dot(name: &str) -> &str {
    name.strip_prefix('.').unwrap_or(name)
}

/// Returns the name of a field in rules; `None` if no rule can name it.
///
/// Upstream: `Escape` of `k8s.io/apiserver/pkg/cel`
pub(crate) fn escape(name: &str) -> Option<String> {
    if let Some(escaped) = escape_reserved(name) {
        return Some(escaped);
    }
    let (mut escaped, mut rest) = (String::new(), name);
    while let Some(first) = rest.chars().next() {
        let found = ESCAPES.into_iter().find(|(part, _)| rest.starts_with(part));
        let length = if let Some((part, word)) = found {
            escaped.push_str(word);
            part.len()
        } else {
            escaped.push(first);
            first.len_utf8()
        };
        rest = rest.get(length..).unwrap_or_default();
    }
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let starts_well = name.starts_with(|c: char| !c.is_ascii_digit());
    (starts_well && escaped.chars().all(is_word)).then_some(escaped)
}

/// Returns the other name of a field whose name is a reserved word.
///
/// Upstream: `FindStructFieldType` of `DeclTypeProvider`, with `recognizeKeywordAsFieldName`
pub(crate) fn escape_reserved(name: &str) -> Option<String> {
    RESERVED.contains(&name).then(|| format!("__{name}__"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_escaped_as_upstream_does() {
        for (name, wanted) in [
            ("plain", Some("plain")),
            ("namespace", Some("__namespace__")),
            ("a-b", Some("a__dash__b")),
            ("x.y", Some("x__dot__y")),
            ("a/b", Some("a__slash__b")),
            ("__z", Some("__underscores__z")),
            ("___", Some("__underscores___")),
            ("1a", None),
            ("é", None),
            ("a b", None),
            ("", None),
        ] {
            assert_eq!(escape(name).as_deref(), wanted, "{name:?}");
        }
    }
}
