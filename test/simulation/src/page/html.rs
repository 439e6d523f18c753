//! Text as HTML.

use std::fmt;

/// Text that is shown unchanged.
pub(super) struct Text<'a>(pub(super) &'a str);

impl fmt::Display for Text<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for part in self.0.split_inclusive(['&', '<', '>', '"', '\'']) {
            let (plain, last) = match part.char_indices().next_back() {
                Some((at, last)) if entity(last).is_some() => (&part[..at], entity(last)),
                _ => (part, None),
            };
            f.write_str(plain)?;
            f.write_str(last.unwrap_or_default())?;
        }
        Ok(())
    }
}

fn entity(char: char) -> Option<&'static str> {
    match char {
        '&' => Some("&amp;"),
        '<' => Some("&lt;"),
        '>' => Some("&gt;"),
        '"' => Some("&quot;"),
        '\'' => Some("&#39;"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markup_becomes_text() {
        let shown = Text("<b a=\"1\">'x' & y</b>").to_string();
        let expected = "&lt;b a=&quot;1&quot;&gt;&#39;x&#39; &amp; y&lt;/b&gt;";
        assert_eq!(shown, expected);
        assert_eq!(Text("plain").to_string(), "plain");
    }
}
