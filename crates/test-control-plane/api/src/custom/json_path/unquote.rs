//! Quoted texts.
//!
//! Upstream: `UnquoteExtend`, and `UnquoteChar` of Go's `strconv`

/// Returns the text between two quotes without its escapes; `None` for a wrong one.
pub(super) fn unquoted(text: &str, quote: char) -> Option<String> {
    let mut out = String::new();
    let mut chars = text.chars();
    while let Some(next) = chars.next() {
        if next == quote {
            return None;
        }
        if next != '\\' {
            out.push(next);
            continue;
        }
        let escape = chars.next()?;
        let mut number = |begin: &str, digits: usize, radix: u32| {
            let more = chars.by_ref().take(digits);
            let text: String = begin.chars().chain(more).collect();
            let is_whole = text.len() == begin.len() + digits;
            let number = u32::from_str_radix(&text, radix).ok();
            number.filter(|_| is_whole && text.bytes().all(|byte| byte.is_ascii_alphanumeric()))
        };
        out.push(match escape {
            'a' => '\u{7}',
            'b' => '\u{8}',
            'f' => '\u{c}',
            'n' => '\n',
            'r' => '\r',
            't' => '\t',
            'v' => '\u{b}',
            '\\' => '\\',
            'x' => char::from_u32(number("", 2, 16)?)?,
            'u' => char::from_u32(number("", 4, 16)?)?,
            'U' => char::from_u32(number("", 8, 16)?)?,
            '0'..='7' => {
                let code = number(&escape.to_string(), 2, 8)?;
                char::from_u32(code).filter(|_| code <= 255)?
            }
            same if same == quote => quote,
            _ => return None,
        });
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_are_those_of_go() {
        for (text, quote, wanted) in [
            ("a b", '"', Some("a b")),
            (r#"a\"b"#, '"', Some("a\"b")),
            (r"a\'b", '\'', Some("a'b")),
            (r"\t\n\\", '"', Some("\t\n\\")),
            (r"\x41\u00e9\U0001f600\101", '"', Some("Aé😀A")),
            (r"a\'b", '"', None),
            (r"\x4", '"', None),
            (r"\u+041", '"', None),
            (r"\q", '"', None),
            ("a\"b", '"', None),
        ] {
            let found = unquoted(text, quote);
            assert_eq!(found.as_deref(), wanted, "{text}");
        }
    }
}
