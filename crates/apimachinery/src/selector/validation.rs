//! Syntax of label keys and values.

const NAME_LENGTH_MAX: usize = 63;
const PREFIX_LENGTH_MAX: usize = 253;

const NAME_RULE: &str = "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";
const VALUE_RULE: &str = "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')";
const QUALIFIED_NAME_RULE: &str = "a valid label key must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]') with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')";
const PREFIX_RULE: &str = "prefix part a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";

/// Validates a label key: an optional DNS subdomain with a slash, then a name.
///
/// # Errors
///
/// The first violated rule, in the API server's words.
///
/// Upstream: `validation.IsQualifiedName`.
pub fn validate_label_key(key: &str) -> Result<(), String> {
    let name = match key.split_once('/') {
        None => key,
        Some((_, name)) if name.contains('/') => {
            return Err(QUALIFIED_NAME_RULE.to_owned());
        }
        Some(("", _)) => return Err("prefix part must be non-empty".to_owned()),
        Some((prefix, name)) => {
            if prefix.len() > PREFIX_LENGTH_MAX {
                return Err(format!(
                    "prefix part must be no more than {PREFIX_LENGTH_MAX} bytes"
                ));
            }
            if !prefix.split('.').all(is_dns_label) {
                return Err(PREFIX_RULE.to_owned());
            }
            name
        }
    };
    if name.is_empty() {
        return Err("name part must be non-empty".to_owned());
    }
    if name.len() > NAME_LENGTH_MAX {
        return Err(format!(
            "name part must be no more than {NAME_LENGTH_MAX} bytes"
        ));
    }
    if is_name(name) {
        Ok(())
    } else {
        Err(NAME_RULE.to_owned())
    }
}

/// Validates a label value: empty, or a name of at most 63 bytes.
///
/// # Errors
///
/// The first violated rule, in the API server's words.
///
/// Upstream: `validation.IsValidLabelValue`.
pub fn validate_label_value(value: &str) -> Result<(), String> {
    if value.len() > NAME_LENGTH_MAX {
        return Err(format!("must be no more than {NAME_LENGTH_MAX} bytes"));
    }
    if value.is_empty() || is_name(value) {
        Ok(())
    } else {
        Err(VALUE_RULE.to_owned())
    }
}

fn is_name(text: &str) -> bool {
    let inner = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    text.bytes().all(inner) && has_ends(text, |byte| byte.is_ascii_alphanumeric())
}

fn is_dns_label(text: &str) -> bool {
    let end = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    text.bytes().all(|byte| end(byte) || byte == b'-') && has_ends(text, end)
}

fn has_ends(text: &str, end: impl Fn(u8) -> bool) -> bool {
    let bytes = text.as_bytes();
    bytes.first().is_some_and(|byte| end(*byte)) && bytes.last().is_some_and(|byte| end(*byte))
}
