//! The syntax of names, labels and qualified names.

/// The error for DNS labels.
const LABEL_MESSAGE: &str = "a lowercase RFC 1123 label must consist of lower case alphanumeric \
     characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  \
     or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')";

/// The error for DNS labels that start with a letter.
const LETTER_LABEL_MESSAGE: &str = "a DNS-1035 label must consist of lower case alphanumeric \
     characters or '-', start with an alphabetic character, and end with an alphanumeric character \
     (e.g. 'my-name',  or 'abc-123', regex used for validation is \
     '[a-z]([-a-z0-9]*[a-z0-9])?')";

/// The error for DNS subdomains.
const SUBDOMAIN_MESSAGE: &str = "a lowercase RFC 1123 subdomain must consist of lower case \
     alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character \
     (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]\
     ([-a-z0-9]*[a-z0-9])?)*')";

/// The error for qualified names.
const QUALIFIED_MESSAGE: &str = "name part must consist of alphanumeric characters, '-', '_' or \
     '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  \
     or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";

/// The error for label values.
const VALUE_MESSAGE: &str = "a valid label must be an empty string or consist of alphanumeric \
     characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. \
     'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9]\
     [-A-Za-z0-9_.]*)?[A-Za-z0-9])?')";

/// The error for keys.
const KEY_MESSAGE: &str = "a valid config key must consist of alphanumeric characters, '-', '_' or \
     '.' (e.g. 'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is \
     '[-._a-zA-Z0-9]+')";

/// The error for names of variables.
const VARIABLE_MESSAGE: &str = "a valid environment variable name must consist only of printable \
     ASCII characters other than '='";

fn is_lower_alphanumeric(b: u8) -> bool {
    b.is_ascii_lowercase() || b.is_ascii_digit()
}

fn is_label(text: &str) -> bool {
    let bytes = text.as_bytes();
    bytes.first().copied().is_some_and(is_lower_alphanumeric)
        && bytes.last().copied().is_some_and(is_lower_alphanumeric)
        && bytes.iter().all(|&b| is_lower_alphanumeric(b) || b == b'-')
}

/// Returns the errors of a DNS-1123 label.
pub(crate) fn dns_label(text: &str) -> Vec<&'static str> {
    let mut found = Vec::new();
    if text.len() > 63 {
        found.push("must be no more than 63 characters");
    }
    if !is_label(text) {
        let is_subdomain = text.split('.').all(is_label);
        found.push(if is_subdomain {
            "must not contain dots"
        } else {
            LABEL_MESSAGE
        });
    }
    found
}

/// Returns the errors of a DNS-1035 label.
pub(crate) fn letter_label(text: &str) -> Vec<&'static str> {
    let mut found = Vec::new();
    if text.len() > 63 {
        found.push("must be no more than 63 characters");
    }
    if !is_label(text) || !text.starts_with(|c: char| c.is_ascii_lowercase()) {
        found.push(LETTER_LABEL_MESSAGE);
    }
    found
}

/// Returns the errors of a name that only needs to be a path segment.
pub fn path_segment(text: &str) -> Vec<&'static str> {
    match text {
        "." => return vec!["may not be '.'"],
        ".." => return vec!["may not be '..'"],
        _ => {}
    }
    let mut found = Vec::new();
    if text.contains('/') {
        found.push("may not contain '/'");
    }
    if text.contains('%') {
        found.push("may not contain '%'");
    }
    found
}

/// Returns the errors of a DNS-1123 subdomain.
pub(crate) fn dns_subdomain(text: &str) -> Vec<&'static str> {
    let mut found = Vec::new();
    if text.len() > 253 {
        found.push("must be no more than 253 characters");
    }
    if !text.split('.').all(is_label) {
        found.push(SUBDOMAIN_MESSAGE);
    }
    found
}

fn is_qualified_part(text: &str) -> bool {
    let bytes = text.as_bytes();
    let edge = |b: Option<&u8>| b.is_some_and(u8::is_ascii_alphanumeric);
    edge(bytes.first())
        && edge(bytes.last())
        && bytes
            .iter()
            .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.'))
}

/// Returns the errors of a name such as `example.com/part`.
pub(crate) fn qualified_name(text: &str) -> Vec<String> {
    if text.matches('/').count() > 1 {
        let rule = QUALIFIED_MESSAGE
            .strip_prefix("name part")
            .unwrap_or_default();
        return vec![format!(
            "a qualified name{rule} with an optional DNS subdomain prefix and '/' (e.g. \
             'example.com/MyName')"
        )];
    }
    let (prefix, name) = match text.split_once('/') {
        Some((prefix, name)) => (Some(prefix), name),
        None => (None, text),
    };
    let mut found = Vec::new();
    if let Some(prefix) = prefix {
        if prefix.is_empty() {
            found.push("prefix part must be non-empty".to_owned());
        } else {
            found.extend(
                dns_subdomain(prefix)
                    .iter()
                    .map(|m| format!("prefix part {m}")),
            );
        }
    }
    if name.is_empty() {
        found.push("name part must be non-empty".to_owned());
    } else if name.len() > 63 {
        found.push("name part must be no more than 63 characters".to_owned());
    }
    if !is_qualified_part(name) {
        found.push(QUALIFIED_MESSAGE.to_owned());
    }
    found
}

/// Returns the errors of a `ConfigMap` or `Secret` key.
pub(crate) fn config_key(key: &str) -> Vec<&'static str> {
    let mut found = Vec::new();
    if key.len() > 253 {
        found.push("must be no more than 253 characters");
    }
    let is_key = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.');
    if key.is_empty() || !key.bytes().all(is_key) {
        found.push(KEY_MESSAGE);
    }
    match key {
        "." => found.push("must not be '.'"),
        ".." => found.push("must not be '..'"),
        _ if key.starts_with("..") => found.push("must not start with '..'"),
        _ => {}
    }
    found
}

/// Returns the errors of a path below a directory.
///
/// Upstream: `validateLocalDescendingPath`.
pub(crate) fn descending_path(path: &str) -> Vec<&'static str> {
    let mut found = Vec::new();
    if path.starts_with('/') {
        found.push("must be a relative path");
    }
    if path.split('/').any(|part| part == "..") {
        found.push("must not contain '..'");
    }
    found
}

/// Returns the errors of a path inside a volume.
///
/// Upstream: `ValidateLocalNonReservedPath`.
pub(crate) fn local_path(path: &str) -> Vec<&'static str> {
    let mut found = descending_path(path);
    if path.starts_with("..") && !path.starts_with("../") {
        found.push("must not start with '..'");
    }
    found
}

/// Returns the errors of an environment variable's name.
pub(crate) fn variable(name: &str) -> Vec<&'static str> {
    let is_wrong = name.chars().any(|c| c == '=' || !(' '..='~').contains(&c));
    is_wrong.then_some(VARIABLE_MESSAGE).into_iter().collect()
}

/// Returns the errors of a port name.
pub(crate) fn port_name(text: &str) -> Vec<&'static str> {
    let mut found = Vec::new();
    if text.len() > 15 {
        found.push("must be no more than 15 characters");
    }
    if !text.bytes().all(|b| is_lower_alphanumeric(b) || b == b'-') || text.is_empty() {
        found.push("must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)");
    }
    if !text.bytes().any(|b| b.is_ascii_lowercase()) {
        found.push("must contain at least one letter (a-z)");
    }
    if text.contains("--") {
        found.push("must not contain consecutive hyphens");
    }
    if text.starts_with('-') || text.ends_with('-') {
        found.push("must not begin or end with a hyphen");
    }
    found
}

/// Returns the errors of a label value.
pub(crate) fn label_value(text: &str) -> Vec<&'static str> {
    let mut found = Vec::new();
    if text.len() > 63 {
        found.push("must be no more than 63 characters");
    }
    if !text.is_empty() && !is_qualified_part(text) {
        found.push(VALUE_MESSAGE);
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_checked_by_their_rule() {
        assert!(dns_label("web-0").is_empty());
        assert_eq!(dns_label("Web_1"), [LABEL_MESSAGE]);
        assert_eq!(dns_label("web.1"), ["must not contain dots"]);
        assert_eq!(dns_label(&"a".repeat(64)).len(), 1);
        assert!(letter_label("web-0").is_empty());
        assert_eq!(letter_label("0-web"), [LETTER_LABEL_MESSAGE]);
        assert!(path_segment("system:node").is_empty());
        assert_eq!(
            path_segment("a/b%"),
            ["may not contain '/'", "may not contain '%'"]
        );
        assert!(dns_subdomain("a.b-c.d").is_empty());
        assert_eq!(dns_subdomain("a..b"), [SUBDOMAIN_MESSAGE]);
        assert!(qualified_name("example.com/My_name").is_empty());
        assert!(!qualified_name("/x").is_empty());
        assert!(qualified_name("a/b/c")[0].starts_with("a qualified name must consist of"));
        assert!(label_value("").is_empty());
        assert_eq!(label_value("-"), [VALUE_MESSAGE]);
    }
}
