//! JSON for people: one member per line.

/// Indents JSON text by two spaces per level and keeps the order of members. The last line doesn't
/// end.
pub fn indent(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len() * 2);
    let mut depth = 0_usize;
    let (mut in_string, mut escaped) = (false, false);
    let mut bytes = text.iter().copied().peekable();
    while let Some(byte) = bytes.next() {
        if in_string {
            out.push(byte);
            in_string = escaped || byte != b'"';
            escaped = byte == b'\\' && !escaped;
            continue;
        }
        match byte {
            b' ' | b'\n' | b'\r' | b'\t' => {}
            b'{' | b'[' => {
                out.push(byte);
                while bytes.next_if(u8::is_ascii_whitespace).is_some() {}
                if let Some(end) = bytes.next_if(|next| matches!(next, b'}' | b']')) {
                    out.push(end);
                } else {
                    depth += 1;
                    break_line(&mut out, depth);
                }
            }
            b'}' | b']' => {
                depth = depth.saturating_sub(1);
                break_line(&mut out, depth);
                out.push(byte);
            }
            b',' => {
                out.push(byte);
                break_line(&mut out, depth);
            }
            b':' => out.extend_from_slice(b": "),
            other => {
                in_string = other == b'"';
                out.push(other);
            }
        }
    }
    out
}

fn break_line(out: &mut Vec<u8>, depth: usize) {
    out.push(b'\n');
    out.resize(out.len() + 2 * depth, b' ');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn indent_puts_one_member_per_line_and_keeps_order() {
        let text = br#"{"b":[1, {"x":"a\\\",{"}],"a":{ },"c":[]}"#;
        let wanted = r#"{
  "b": [
    1,
    {
      "x": "a\\\",{"
    }
  ],
  "a": {},
  "c": []
}"#;
        assert_eq!(String::from_utf8(indent(text)).unwrap(), wanted);
    }
}
