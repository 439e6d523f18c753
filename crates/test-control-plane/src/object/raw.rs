//! JSON text that is kept as text.

/// Compacts JSON text as Go's encoder does with embedded raw text: no space between tokens, and
/// inside strings `<`, `>`, `&`, U+2028 and U+2029 escaped. The order of members is kept.
pub fn compact(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut in_string = false;
    let mut escaped = false;
    for c in text.chars() {
        if in_string {
            match c {
                '<' | '>' | '&' | '\u{2028}' | '\u{2029}' => {
                    out.push_str("\\u");
                    let digits = format!("{:04x}", u32::from(c));
                    out.push_str(&digits);
                }
                _ => out.push(c),
            }
            in_string = escaped || c != '"';
            escaped = !escaped && c == '\\';
        } else {
            in_string = c == '"';
            if !c.is_ascii_whitespace() {
                out.push(c);
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn space_goes_and_order_stays() {
        assert_eq!(
            compact("{\"z\": 1, \"a\" : [ \"x y\", \"\\\" b\" ]}\n"),
            "{\"z\":1,\"a\":[\"x y\",\"\\\" b\"]}"
        );
    }

    #[test]
    fn html_is_escaped_inside_strings() {
        assert_eq!(
            compact("{\"a\":\"<&>\"}"),
            "{\"a\":\"\\u003c\\u0026\\u003e\"}"
        );
    }
}
