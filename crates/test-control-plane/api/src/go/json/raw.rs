//! Compaction of raw JSON text.

/// The characters that are escaped inside strings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Escape {
    /// `<`, `>`, `&`, U+2028 and U+2029.
    Html,
    /// None.
    Nothing,
}

/// Compacts JSON text as Go's encoder does with embedded raw text: no space between tokens, and
/// inside strings `<`, `>`, `&`, U+2028 and U+2029 escaped. Keeps the order of members and bytes
/// that aren't UTF-8.
pub(crate) fn compact(text: &[u8]) -> Vec<u8> {
    compact_with(text, Escape::Html)
}

/// Compacts JSON text. Keeps the order of members and bytes that aren't UTF-8.
pub(crate) fn compact_with(text: &[u8], escape: Escape) -> Vec<u8> {
    let is_html = escape == Escape::Html;
    let mut out = Vec::with_capacity(text.len());
    let mut in_string = false;
    let mut escaped = false;
    let mut rest = text;
    while let Some((byte, after)) = rest.split_first() {
        let mut next = after;
        if in_string {
            match byte {
                b'<' if is_html => out.extend_from_slice(b"\\u003c"),
                b'>' if is_html => out.extend_from_slice(b"\\u003e"),
                b'&' if is_html => out.extend_from_slice(b"\\u0026"),
                0xe2 if is_html && after.starts_with(b"\x80\xa8") => {
                    out.extend_from_slice(b"\\u2028");
                    next = &after[2..];
                }
                0xe2 if is_html && after.starts_with(b"\x80\xa9") => {
                    out.extend_from_slice(b"\\u2029");
                    next = &after[2..];
                }
                _ => out.push(*byte),
            }
            in_string = escaped || *byte != b'"';
            escaped = !escaped && *byte == b'\\';
        } else {
            in_string = *byte == b'"';
            if !byte.is_ascii_whitespace() {
                out.push(*byte);
            }
        }
        rest = next;
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn compacted(text: &str) -> String {
        String::from_utf8(compact(text.as_bytes())).unwrap()
    }

    #[test]
    fn compact_removes_space_and_keeps_order() {
        assert_eq!(
            compacted("{\"z\": 1, \"a\" : [ \"x y\", \"\\\" b\" ]}\n"),
            "{\"z\":1,\"a\":[\"x y\",\"\\\" b\"]}"
        );
    }

    #[test]
    fn compact_escapes_html_inside_strings() {
        assert_eq!(
            compacted("{\"a\":\"<&>\u{2028}\u{2030}\"}"),
            "{\"a\":\"\\u003c\\u0026\\u003e\\u2028\u{2030}\"}"
        );
    }

    #[test]
    fn compact_keeps_invalid_utf8() {
        assert_eq!(compact(b"\"\xff\xe2\""), b"\"\xff\xe2\"");
    }
}
