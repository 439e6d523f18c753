//! Search for a value in a JSON text, without parsing what comes before it.

use std::ops::Range;

use memchr::memchr_iter;

/// Returns the position of an object or array in a JSON text, by the names of the members that lead to
/// it. Reads no further than its end.
///
/// It looks only at strings and brackets, several times faster than a parser, and doesn't check that
/// the rest is JSON. `None` if the value isn't found this way: the path leads nowhere or to another
/// kind of value, a name is written with escapes, no string follows the value, or the text isn't JSON.
/// Of repeated names the first counts.
pub fn find_value(text: &str, path: &[&str]) -> Option<Range<usize>> {
    let mut strings = Strings {
        text,
        quotes: memchr_iter(b'"', text.as_bytes()),
        position: 0,
    };
    // Open brackets, and how many of them belong to objects of the path.
    let (mut depth, mut entered) = (0_usize, 0_usize);
    // The last string is the next name of the path, and its value has not begun.
    let mut is_named = false;
    // Start of the value, and its number of open brackets.
    let mut found = None;
    loop {
        let start = strings.position;
        let (between, string) = strings.next()?;
        for (offset, byte) in between.bytes().enumerate() {
            let at = start + offset;
            match byte {
                b'{' | b'[' => {
                    if std::mem::take(&mut is_named) {
                        entered += 1;
                        if entered == path.len() {
                            found = Some((at, depth));
                        }
                    }
                    depth += 1;
                }
                b'}' | b']' => {
                    depth = depth.checked_sub(1)?;
                    match found {
                        Some((start, outside)) if depth == outside => return Some(start..at + 1),
                        None if depth <= entered => return None,
                        _ => {}
                    }
                }
                b':' | b' ' | b'\t' | b'\n' | b'\r' => {}
                _ => is_named = false,
            }
        }
        is_named = found.is_none()
            && depth == entered + 1
            && path.get(entered).is_some_and(|name| *name == string);
    }
}

/// The strings of a JSON text.
struct Strings<'a, Q> {
    text: &'a str,
    /// Positions of the quotes that have not been read.
    quotes: Q,
    /// End of the last string.
    position: usize,
}

impl<'a, Q: Iterator<Item = usize>> Strings<'a, Q> {
    /// Returns the text up to the next string, and the string without its quotes.
    fn next(&mut self) -> Option<(&'a str, &'a str)> {
        let start = self.quotes.next()?;
        let between = self.text.get(self.position..start)?;
        loop {
            let end = self.quotes.next()?;
            let string = self.text.get(start + 1..end)?;
            let escapes = string.bytes().rev().take_while(|byte| *byte == b'\\');
            if escapes.count() % 2 == 0 {
                self.position = end + 1;
                return Some((between, string));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATH: [&str; 2] = ["metadata", "managedFields"];

    #[test]
    fn value_is_found_by_its_path_alone() {
        for (text, expected) in [
            (
                r#"{"kind":"X","metadata":{"a":{"b":[{}]},"managedFields":[{"f":{"a]\"":{}}}],"z":1},"s":""}"#,
                r#"[{"f":{"a]\"":{}}}]"#,
            ),
            (
                "{ \"metadata\" : {\"labels\":{\"managedFields\":\"[\"},\n\"managedFields\" :\t[ ]},\"s\":1}",
                "[ ]",
            ),
            (
                r#"{"a":"metadata","metadata":{"x":"managedFields","managedFields":{"y":"\\"}},"s":1}"#,
                r#"{"y":"\\"}"#,
            ),
        ] {
            let found = find_value(text, &PATH).map(|range| &text[range]);
            assert_eq!(found, Some(expected), "{text}");
        }
    }

    #[test]
    fn other_values_are_not_found() {
        for text in [
            "",
            "{",
            "}",
            "[]",
            r#"{"metadata":null,"s":1}"#,
            r#"{"metadata":{},"managedFields":[],"s":1}"#,
            r#"{"metadata":{"labels":{"managedFields":[]}},"s":1}"#,
            r#"{"metadata":{"list":[{"managedFields":[]}]},"s":1}"#,
            r#"{"metadata":[{"managedFields":[]}],"s":1}"#,
            r#"{"metadata":["managedFields",[]],"s":1}"#,
            r#"{"spec":{"metadata":{"managedFields":[]}},"s":1}"#,
            r#"{"spec":{"template":{"metadata":{"managedFields":[]}}},"metadata":{"name":"a"},"s":1}"#,
            r#"{"metadata":{"managedFields":null},"s":1}"#,
            r#"{"metadata":{"managedFields":"[]"},"s":[]}"#,
            r#"{"metadata":{"managedFields":7,"x":[]},"s":[]}"#,
            r#"{"metadata":{"managed\u0046ields":[]},"s":1}"#,
            r#"{"metadata":{"managedFields":["#,
            r#"{"metadata":{"managedFields":["x"#,
            r#"["metadata",{"managedFields":[]},""]"#,
        ] {
            assert_eq!(find_value(text, &PATH), None, "{text}");
        }
    }

    #[test]
    fn path_of_one_name_is_found() {
        let text = r#"{"a":{"b":{}},"b":{"c":[]},"d":""}"#;
        assert_eq!(
            find_value(text, &["b"]).map(|range| &text[range]),
            Some(r#"{"c":[]}"#)
        );
        assert_eq!(find_value(text, &[]), None);
    }
}
