//! Manager names: their validation, and the default from the user agent.

use crate::status::FieldError;

/// Maximum length of a manager's name, in bytes.
const NAME_MAX: usize = 128;

/// Returns the errors of a manager's name at the path that `field` builds.
///
/// Upstream: `ValidateFieldManager`.
pub(crate) fn check_field_manager(field: impl Fn() -> String, name: &str) -> Vec<FieldError> {
    let mut errors = Vec::new();
    if name.len() > NAME_MAX {
        let detail = format!("may not be more than {NAME_MAX} bytes");
        errors.push(FieldError::too_long(field(), &detail));
    }
    for (position, c) in name.char_indices().filter(|(_, c)| !is_print(*c)) {
        let code = u32::from(c);
        let detail = format!("invalid character U+{code:04X} (at position {position})");
        errors.push(FieldError::invalid_text(
            field(),
            &format!("{name:?}"),
            &detail,
        ));
    }
    errors
}

/// Returns the default manager name: the user agent up to the first slash, without
/// unprintable characters and cut to the maximum length.
///
/// Upstream: `prefixFromUserAgent`.
pub(crate) fn manager_of(user_agent: &str) -> String {
    let product = user_agent.split('/').next().unwrap_or_default();
    let mut name = String::new();
    for c in product.chars().filter(|c| is_print(*c)) {
        if name.len() + c.len_utf8() > NAME_MAX {
            break;
        }
        name.push(c);
    }
    name
}

/// Returns true if Go considers the character printable. The plain space is the only printable
/// white space.
fn is_print(c: char) -> bool {
    c == ' ' || !(c.is_control() || c.is_whitespace())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_short_and_printable() {
        let field = || "fieldManager".to_owned();
        assert!(check_field_manager(field, "my tool/1").is_empty());
        let errors = check_field_manager(field, &"x".repeat(129));
        assert_eq!(
            errors[0].message,
            "Too long: may not be more than 128 bytes"
        );
        let errors = check_field_manager(field, "a\tb");
        assert_eq!(
            errors[0].message,
            "Invalid value: \"a\\tb\": invalid character U+0009 (at position 1)"
        );
    }

    #[test]
    fn user_agent_product_is_the_manager() {
        for (agent, manager) in [
            ("", ""),
            ("foo/1.2 (x)", "foo"),
            ("kubectl", "kubectl"),
            ("two words/1", "two words"),
            ("a\tb\u{a0}c/1", "abc"),
            ("/1", ""),
        ] {
            assert_eq!(manager_of(agent), manager);
        }
        assert_eq!(manager_of(&"x".repeat(200)).len(), NAME_MAX);
        assert_eq!(manager_of(&"ä".repeat(100)).len(), NAME_MAX);
        assert_eq!(
            manager_of(&format!("x{}", "ä".repeat(100))).len(),
            NAME_MAX - 1
        );
    }
}
