//! Base64 with the rules of Go's decoder.

use super::error::DecodeError;

/// Base64 alphabet.
const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// Returns Go's base64 encoding of the bytes in `text`: without line breaks, and with unused bits
/// cleared.
///
/// # Errors
/// The text is not padded base64.
///
/// Upstream: `base64.StdEncoding`.
pub fn canonical(text: &str) -> Result<String, DecodeError> {
    let mut found = String::with_capacity(text.len());
    let mut bytes = text
        .bytes()
        .enumerate()
        .filter(|(_, byte)| !matches!(byte, b'\r' | b'\n'));
    // Number of digits in the current group.
    let mut in_group = 0;
    while let Some((at, byte)) = bytes.next() {
        if byte == b'=' {
            let mut padding = bytes.next();
            match in_group {
                0 | 1 => return Err(DecodeError::Base64(at)),
                2 => match padding {
                    None => return Err(DecodeError::Base64(text.len())),
                    Some((_, b'=')) => padding = bytes.next(),
                    Some((at, _)) => return Err(DecodeError::Base64(at - 1)),
                },
                _ => {}
            }
            if let Some((at, _)) = padding {
                return Err(DecodeError::Base64(at));
            }
            clear_unused_bits(&mut found, in_group);
            found.push_str(if in_group == 2 { "==" } else { "=" });
            return Ok(found);
        }
        if !(byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/')) {
            return Err(DecodeError::Base64(at));
        }
        found.push(char::from(byte));
        in_group = (in_group + 1) % 4;
    }
    if in_group != 0 {
        return Err(DecodeError::Base64(text.len() - in_group));
    }
    Ok(found)
}

/// Clears the unused bits of the last digit, in a group of two or three digits.
fn clear_unused_bits(found: &mut String, in_group: usize) {
    let Some(last) = found.pop() else { return };
    let unused = if in_group == 2 { 0b1111 } else { 0b11 };
    let value = DIGITS.iter().position(|digit| char::from(*digit) == last);
    let digit = value.and_then(|value| DIGITS.get(value & !unused));
    found.push(digit.map_or(last, |digit| char::from(*digit)));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_decoding_matches_go() {
        for (text, expected) in [
            ("", Ok("")),
            ("YQ==", Ok("YQ==")),
            ("YR==", Ok("YQ==")),
            ("YWI=", Ok("YWI=")),
            ("YWJ=", Ok("YWI=")),
            ("YW\nJj\r\n", Ok("YWJj")),
            ("YQ=", Err(3)),
            ("YQ=x", Err(2)),
            ("YQ", Err(0)),
            ("YWJjY", Err(4)),
            ("Y===", Err(1)),
            ("=", Err(0)),
            ("YQ==YQ==", Err(4)),
            ("YWI=x", Err(4)),
            ("a-b_", Err(1)),
            ("not base64", Err(3)),
            ("\u{e9}", Err(0)),
        ] {
            let expected = expected.map(str::to_owned).map_err(DecodeError::Base64);
            assert_eq!(canonical(text), expected, "{text:?}");
        }
    }
}
