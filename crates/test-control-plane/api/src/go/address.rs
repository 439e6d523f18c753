//! Addresses of mail.
//!
//! Upstream: `ParseAddress` of Go's `net/mail`, without comments and encoded words.

/// Returns true for `local@domain`, or for such an address in angle brackets behind a name.
pub(super) fn is_address(text: &str) -> bool {
    let text = text.trim_matches([' ', '\t']);
    match text
        .strip_suffix('>')
        .and_then(|text| text.rsplit_once('<'))
    {
        Some((name, address)) => is_phrase(name) && is_spec(address),
        None => is_spec(text),
    }
}

/// A local part and a domain.
fn is_spec(text: &str) -> bool {
    let Some((local, domain)) = text.rsplit_once('@') else {
        return false;
    };
    (is_dot_atom(local) || is_quoted(local)) && is_dot_atom(domain)
}

/// A name: atoms, which may have dots, and quoted texts.
fn is_phrase(text: &str) -> bool {
    if is_quoted(text.trim()) {
        return true;
    }
    let mut words = text.split_whitespace();
    words.all(|word| word.chars().all(|c| is_atom(c) || c == '.') || is_quoted(word))
}

fn is_dot_atom(text: &str) -> bool {
    let mut atoms = text.split('.');
    atoms.all(|atom| !atom.is_empty() && atom.chars().all(is_atom))
}

fn is_quoted(text: &str) -> bool {
    let inner = text
        .strip_prefix('"')
        .and_then(|text| text.strip_suffix('"'));
    inner.is_some_and(|inner| {
        let mut is_escaped = false;
        let is_inside = inner.chars().all(|c| {
            let is_fine = is_escaped || c != '"';
            is_escaped = !is_escaped && c == '\\';
            is_fine && !c.is_control()
        });
        is_inside && !is_escaped
    })
}

fn is_atom(c: char) -> bool {
    c.is_ascii_alphanumeric() || !c.is_ascii() || "!#$%&'*+-/=?^_`{|}~".contains(c)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_have_atoms_with_single_dots() {
        for text in [
            "a@b",
            "a.b@c.d",
            "Bob <a@b.c>",
            "\"B. Ob\" <a@b>",
            "\"a b\"@c",
            " a@b ",
        ] {
            assert!(is_address(text), "{text}");
        }
        for text in [
            "", "a", "a..b@c", ".a@b", "a.@b", "a;b@c", "a@b@c", "Bob a@b", "a@", "@b",
        ] {
            assert!(!is_address(text), "{text}");
        }
    }
}
