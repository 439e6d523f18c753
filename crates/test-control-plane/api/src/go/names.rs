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

/// The error for DNS subdomains with a wildcard.
const WILDCARD_MESSAGE: &str = "a wildcard DNS-1123 subdomain must start with '*.', followed by a \
     valid DNS subdomain, which must consist of lower case alphanumeric characters, '-' or '.' and \
     end with an alphanumeric character (e.g. '*.example.com', regex used for validation is \
     '\\*\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";

/// The error for search domains.
const SEARCH_DOMAIN_MESSAGE: &str = "a lowercase RFC 1123 subdomain must consist of lower case \
     alphanumeric characters, '_', '-' or '.', and must start and end with an alphanumeric character \
     (e.g. 'example.com', regex used for validation is '_?[a-z0-9]([-_a-z0-9]*[a-z0-9])?(\\._?\
     [a-z0-9]([-_a-z0-9]*[a-z0-9])?)*')";

/// The error for names of HTTP headers.
const HEADER_MESSAGE: &str = "a valid HTTP header must consist of alphanumeric characters or '-' \
     (e.g. 'X-Header-Name', regex used for validation is '[-A-Za-z0-9]+')";

/// The error for reasons of conditions.
const REASON_MESSAGE: &str = "a condition reason must start with alphabetic character, optionally \
     followed by a string of alphanumeric characters or '_,:', and must end with an alphanumeric \
     character or '_' (e.g. 'my_name',  or 'MY_NAME',  or 'MyName',  or 'ReasonA,ReasonB',  or \
     'ReasonA:ReasonB', regex used for validation is '[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?')";

/// The error for names of kernel parameters.
const SYSCTL_MESSAGE: &str = "must have at most 253 characters and match regex \
     ^([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\\./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?$";

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

/// Returns the errors of a DNS-1123 subdomain, or of the beginning of one.
pub(crate) fn subdomain_prefix(text: &str) -> Vec<&'static str> {
    // A beginning may end in a dash.
    match text.strip_suffix('-') {
        Some(start) => dns_subdomain(&format!("{start}a")),
        None => dns_subdomain(text),
    }
}

/// Returns the errors of a host, which may have a wildcard.
pub(crate) fn host(text: &str) -> Vec<&'static str> {
    if !text.contains('*') {
        return dns_subdomain(text);
    }
    let mut found = Vec::new();
    if text.len() > 253 {
        found.push("must be no more than 253 characters");
    }
    let rest = text.strip_prefix("*.");
    if !rest.is_some_and(|rest| rest.split('.').all(is_label)) {
        found.push(WILDCARD_MESSAGE);
    }
    found
}

/// Returns the errors of a name of a host that must not be an address.
pub(crate) fn no_address(text: &str) -> Vec<&'static str> {
    let is_address = super::ip::parse_sloppy(text).is_some();
    let found = is_address.then_some("must be a DNS name, not an IP address");
    found.into_iter().collect()
}

/// Returns true for a label with underscores, as in search domains and kernel parameters.
fn is_underscore_label(text: &str) -> bool {
    let bytes = text.as_bytes();
    bytes.first().copied().is_some_and(is_lower_alphanumeric)
        && bytes.last().copied().is_some_and(is_lower_alphanumeric)
        && bytes
            .iter()
            .all(|&b| is_lower_alphanumeric(b) || matches!(b, b'-' | b'_'))
}

/// Returns the errors of a search domain.
///
/// Upstream: `IsDNS1123SubdomainWithUnderscore`.
pub(crate) fn search_domain(text: &str) -> Vec<&'static str> {
    let mut found = Vec::new();
    if text.len() > 253 {
        found.push("must be no more than 253 characters");
    }
    let mut labels = text.split('.');
    if !labels.all(|label| is_underscore_label(label.strip_prefix('_').unwrap_or(label))) {
        found.push(SEARCH_DOMAIN_MESSAGE);
    }
    found
}

/// Returns the errors of a name of an HTTP header.
pub(crate) fn header(text: &str) -> Vec<&'static str> {
    let is_header = |b: u8| b.is_ascii_alphanumeric() || b == b'-';
    let is_wrong = text.is_empty() || !text.bytes().all(is_header);
    is_wrong.then_some(HEADER_MESSAGE).into_iter().collect()
}

/// Returns the errors of a condition's reason.
pub(crate) fn condition_reason(text: &str) -> Vec<&'static str> {
    let is_part = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b',' | b':');
    let is_reason = text.starts_with(|c: char| c.is_ascii_alphabetic())
        && text.ends_with(|c: char| c.is_ascii_alphanumeric() || c == '_')
        && text.bytes().all(is_part);
    (!is_reason).then_some(REASON_MESSAGE).into_iter().collect()
}

/// Returns the errors of a name of a kernel parameter.
pub(crate) fn sysctl(text: &str) -> Vec<&'static str> {
    let is_wrong = text.len() > 253 || !text.split(['.', '/']).all(is_underscore_label);
    is_wrong.then_some(SYSCTL_MESSAGE).into_iter().collect()
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
pub fn qualified_name(text: &str) -> Vec<String> {
    if text.matches('/').count() > 1 {
        let rule = QUALIFIED_MESSAGE
            .strip_prefix("name part")
            .unwrap_or_default();
        return vec![format!(
            "a valid label key{rule} with an optional DNS subdomain prefix and '/' (e.g. \
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
            if prefix.len() > 253 {
                found.push("prefix part must be no more than 253 bytes".to_owned());
            }
            if !prefix.split('.').all(is_label) {
                found.push(format!("prefix part {SUBDOMAIN_MESSAGE}"));
            }
        }
    }
    if name.is_empty() {
        found.push("name part must be non-empty".to_owned());
    } else if name.len() > 63 {
        found.push("name part must be no more than 63 bytes".to_owned());
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
    found.extend(no_backsteps(path));
    found
}

/// Returns the errors of a path that may not lead up.
///
/// Upstream: `validatePathNoBacksteps`.
pub(crate) fn no_backsteps(path: &str) -> Vec<&'static str> {
    let is_wrong = path.split('/').any(|part| part == "..");
    is_wrong
        .then_some("must not contain '..'")
        .into_iter()
        .collect()
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

/// A name as in C.
///
/// Upstream: `IsCIdentifier`.
pub(crate) fn c_identifier(text: &str) -> Vec<&'static str> {
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let starts = text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    let message = "a valid C identifier must start with alphabetic character or '_', followed by a \
                   string of alphanumeric characters or '_' (e.g. 'my_name',  or 'MY_NAME',  or \
                   'MyName', regex used for validation is '[A-Za-z_][A-Za-z0-9_]*')";
    let is_right = starts && text.chars().all(is_part);
    (!is_right).then_some(message).into_iter().collect()
}

/// Returns the errors of an environment variable's name.
pub(crate) fn variable(name: &str) -> Vec<&'static str> {
    if name.is_empty() {
        return vec!["environment variable name must be non-empty"];
    }
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
        found.push("must be no more than 63 bytes");
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
        assert!(qualified_name("a/b/c")[0].starts_with("a valid label key must consist of"));
        assert!(label_value("").is_empty());
        assert_eq!(label_value("-"), [VALUE_MESSAGE]);
    }
}
