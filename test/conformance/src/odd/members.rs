//! Comparison of JSON texts that needn't be UTF-8, including the order of fields.

use std::ops::Range;

/// Maximum depth; values that are nested deeper are compared as text.
const DEPTH_MAX: usize = 100;

/// A part of a JSON text.
#[derive(Debug, PartialEq, Eq)]
enum Node<'a> {
    Text(&'a [u8]),
    List(Vec<Node<'a>>),
    Object(Vec<(&'a [u8], Node<'a>)>),
}

/// Differences of two texts.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Differences {
    /// Fields with different values, or in only one of the texts.
    pub(super) values: Vec<String>,
    /// Paths of objects with another order of fields.
    pub(super) orders: Vec<String>,
}

/// Compares two objects from an API server, except for values that differ between runs: uids, the
/// resource version, and the server's own times.
///
/// # Errors
///
/// One of the texts isn't JSON.
pub(super) fn compare(expected: &[u8], actual: &[u8]) -> anyhow::Result<Differences> {
    let parse = |text| parse(text).ok_or_else(|| anyhow::anyhow!("not JSON: {}", shown(text)));
    let mut differences = Differences::default();
    walk("", &parse(expected)?, &parse(actual)?, &mut differences);
    Ok(differences)
}

fn walk(path: &str, expected: &Node<'_>, actual: &Node<'_>, found: &mut Differences) {
    match (expected, actual) {
        (Node::Object(a), Node::Object(b)) if has_same_names(a, b) => {
            for ((name, a), (_, b)) in a.iter().zip(b) {
                walk(&format!("{path}.{}", unquoted(name)), a, b, found);
            }
        }
        (Node::Object(a), Node::Object(b)) => {
            for (name, node) in a {
                let path = format!("{path}.{}", unquoted(name));
                match b.iter().find(|(other, _)| is_alike("", name, other)) {
                    Some((_, other)) => walk(&path, node, other, found),
                    None => found.values.push(format!("{path}: is missing")),
                }
            }
            let is_known = |name: &[u8]| a.iter().any(|(known, _)| is_alike("", known, name));
            for (name, _) in b.iter().filter(|(name, _)| !is_known(name)) {
                let path = format!("{path}.{}", unquoted(name));
                found.values.push(format!("{path}: expected nothing"));
            }
            let in_order = |one: &[(&[u8], Node<'_>)], other: &[(&[u8], Node<'_>)]| -> Vec<_> {
                let in_both = |name: &[u8]| other.iter().any(|(o, _)| is_alike("", o, name));
                let names = one.iter().map(|(name, _)| *name);
                names.filter(|name| in_both(name)).map(masked).collect()
            };
            if in_order(a, b) != in_order(b, a) {
                found.orders.push(path.to_owned());
            }
        }
        (Node::List(a), Node::List(b)) if a.len() == b.len() => {
            let (mut a, mut b): (Vec<_>, Vec<_>) = (a.iter().collect(), b.iter().collect());
            if path == ".metadata.managedFields" {
                // Entries are ordered by time, which differs between runs.
                a.sort_by_key(|entry| entry.manager());
                b.sort_by_key(|entry| entry.manager());
            }
            for (index, (a, b)) in a.into_iter().zip(b).enumerate() {
                walk(&format!("{path}[{index}]"), a, b, found);
            }
        }
        (Node::Text(a), Node::Text(b)) if is_alike(path, a, b) => {}
        (a, b) if a == b => {}
        (a, b) => {
            let (a, b) = (a.shown(), b.shown());
            found.values.push(format!("{path}: expected {a}, is {b}"));
        }
    }
}

/// Returns true if two objects have the same field names in the same order, including repetitions.
fn has_same_names(one: &[(&[u8], Node<'_>)], other: &[(&[u8], Node<'_>)]) -> bool {
    let mut pairs = one.iter().zip(other);
    one.len() == other.len() && pairs.all(|((a, _), (b, _))| is_alike("", a, b))
}

impl Node<'_> {
    /// Identity of a field manager's entry.
    fn manager(&self) -> [&[u8]; 3] {
        ["\"manager\"", "\"operation\"", "\"subresource\""].map(|name| match self {
            Self::Object(members) => members
                .iter()
                .find_map(|(found, value)| match value {
                    Self::Text(text) if *found == name.as_bytes() => Some(*text),
                    _ => None,
                })
                .unwrap_or_default(),
            _ => &[],
        })
    }

    fn shown(&self) -> String {
        match self {
            Self::Text(text) => shown(text),
            Self::List(items) => format!("a list of {}", items.len()),
            Self::Object(members) => {
                let names: Vec<String> = members.iter().map(|(name, _)| unquoted(name)).collect();
                format!("an object of {}", names.join(", "))
            }
        }
    }
}

/// Start of a text, for messages.
fn shown(text: &[u8]) -> String {
    let shown = &text[..text.len().min(120)];
    let more = if shown.len() < text.len() { " …" } else { "" };
    format!("{}{more}", String::from_utf8_lossy(shown))
}

fn unquoted(name: &[u8]) -> String {
    String::from_utf8_lossy(name).trim_matches('"').to_owned()
}

/// Returns true if two scalars are equal except for values that differ between runs.
fn is_alike(path: &str, expected: &[u8], actual: &[u8]) -> bool {
    let is_own_time = matches!(
        path,
        ".metadata.creationTimestamp" | ".metadata.deletionTimestamp"
    ) || path.starts_with(".metadata.managedFields[") && path.ends_with("].time");
    if is_own_time || path == ".metadata.resourceVersion" {
        return expected.first() == actual.first();
    }
    expected == actual || masked(expected) == masked(actual)
}

/// Replaces uids with zeros.
fn masked(text: &[u8]) -> Vec<u8> {
    let mut masked = text.to_vec();
    let mut at = 0;
    while at + UID_LEN <= masked.len() {
        if is_uid(&masked[at..at + UID_LEN]) {
            masked[at..at + UID_LEN].fill(b'0');
            at += UID_LEN;
        } else {
            at += 1;
        }
    }
    masked
}

const UID_LEN: usize = 36;

fn is_uid(text: &[u8]) -> bool {
    let is_right = |(index, byte): (usize, &u8)| match index {
        8 | 13 | 18 | 23 => *byte == b'-',
        _ => byte.is_ascii_hexdigit(),
    };
    text.iter().enumerate().all(is_right)
}

fn parse(text: &[u8]) -> Option<Node<'_>> {
    let mut parser = Parser { text, at: 0 };
    let node = parser.value(0)?;
    parser.skip_space();
    (parser.at == text.len()).then_some(node)
}

struct Parser<'a> {
    text: &'a [u8],
    at: usize,
}

impl<'a> Parser<'a> {
    fn value(&mut self, depth: usize) -> Option<Node<'a>> {
        self.skip_space();
        let is_deep = depth >= DEPTH_MAX;
        match self.text.get(self.at)? {
            b'{' if !is_deep => self.object(depth),
            b'[' if !is_deep => self.list(depth),
            _ => {
                let range = self.span()?;
                Some(Node::Text(&self.text[range]))
            }
        }
    }

    fn object(&mut self, depth: usize) -> Option<Node<'a>> {
        let mut members = Vec::new();
        self.at += 1;
        if self.closes(b'}') {
            return Some(Node::Object(members));
        }
        loop {
            self.skip_space();
            let name = self.span()?;
            self.skip_space();
            self.take(b':')?;
            let value = self.value(depth + 1)?;
            members.push((&self.text[name], value));
            if self.closes(b'}') {
                return Some(Node::Object(members));
            }
            self.take(b',')?;
        }
    }

    fn list(&mut self, depth: usize) -> Option<Node<'a>> {
        let mut items = Vec::new();
        self.at += 1;
        if self.closes(b']') {
            return Some(Node::List(items));
        }
        loop {
            items.push(self.value(depth + 1)?);
            if self.closes(b']') {
                return Some(Node::List(items));
            }
            self.take(b',')?;
        }
    }

    fn skip_space(&mut self) {
        while self
            .text
            .get(self.at)
            .is_some_and(|byte| matches!(byte, b' ' | b'\t' | b'\r' | b'\n'))
        {
            self.at += 1;
        }
    }

    fn take(&mut self, byte: u8) -> Option<()> {
        (self.text.get(self.at) == Some(&byte)).then(|| self.at += 1)
    }

    fn closes(&mut self, byte: u8) -> bool {
        self.skip_space();
        self.take(byte).is_some()
    }

    /// Range of a whole value, of any depth.
    fn span(&mut self) -> Option<Range<usize>> {
        let start = self.at;
        let mut open = 0_usize;
        loop {
            match self.text.get(self.at)? {
                b'"' => self.string()?,
                b'{' | b'[' => {
                    open += 1;
                    self.at += 1;
                }
                b'}' | b']' => {
                    open = open.checked_sub(1)?;
                    self.at += 1;
                }
                b',' | b':' | b' ' | b'\t' | b'\r' | b'\n' if open > 0 => self.at += 1,
                _ => self.word()?,
            }
            if open == 0 {
                return Some(start..self.at);
            }
        }
    }

    fn string(&mut self) -> Option<()> {
        self.at += 1;
        loop {
            match self.text.get(self.at)? {
                b'"' => {
                    self.at += 1;
                    return Some(());
                }
                b'\\' => self.at += 2,
                _ => self.at += 1,
            }
        }
    }

    /// Consumes a number or a literal.
    fn word(&mut self) -> Option<()> {
        let rest = &self.text[self.at..];
        let is_part = |byte: &&u8| byte.is_ascii_alphanumeric() || b"+-.".contains(byte);
        let length = rest.iter().take_while(is_part).count();
        self.at += length;
        (length > 0).then_some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn differences(a: &[u8], b: &[u8]) -> (Vec<String>, Vec<String>) {
        let found = compare(a, b).unwrap();
        (found.values, found.orders)
    }

    #[test]
    fn values_are_compared_by_bytes() {
        let (values, orders) = differences(
            b"{\"a\": [1.0, \"\xff\"], \"b\": 1, \"c\": {}}",
            b"{\"a\":[1,\"\xfe\"],\"c\":{},\"d\":2}",
        );
        assert_eq!(orders, [""; 0]);
        assert_eq!(
            values,
            [
                ".a[0]: expected 1.0, is 1",
                ".a[1]: expected \"\u{fffd}\", is \"\u{fffd}\"",
                ".b: is missing",
                ".d: expected nothing",
            ]
        );
    }

    #[test]
    fn repeated_members_are_compared_in_order() {
        let twice = b"{\"a\":1,\"a\":2}";
        assert_eq!(differences(twice, twice), (Vec::new(), Vec::new()));
        let (values, _) = differences(twice, b"{\"a\":1,\"a\":3}");
        assert_eq!(values, [".a: expected 2, is 3"]);
    }

    #[test]
    fn order_of_managers_is_ignored() {
        let entries = |one: &str, two: &str| {
            let text = format!(r#"{{"metadata":{{"managedFields":[{one},{two}]}}}}"#);
            text.into_bytes()
        };
        let (one, two) = (r#"{"manager":"a"}"#, r#"{"manager":"b","fieldsV1":{}}"#);
        let found = differences(&entries(one, two), &entries(two, one));
        assert_eq!(found, (Vec::new(), Vec::new()));
        assert_eq!(
            differences(&entries(one, two), &entries(one, one)).0.len(),
            2
        );
    }

    #[test]
    fn member_order_is_reported_separately() {
        let found = differences(b"{\"x\":{\"a\":1,\"b\":2}}", b"{\"x\":{\"b\":2,\"a\":1}}");
        assert_eq!(found, (Vec::new(), vec![".x".to_owned()]));
    }

    #[test]
    fn uids_versions_and_server_times_are_masked() {
        let a = br#"{"metadata":{"uid":"f7033e9d-153c-416c-921d-bc1e7735b314",
            "resourceVersion":"8","creationTimestamp":"2026-11-22T15:46:22Z",
            "managedFields":[{"time":"2026-11-22T15:46:22Z","fieldsV1":{
            "k:{\"uid\":\"f7033e9d-153c-416c-921d-bc1e7735b314\"}":{}}}]},"spec":{"time":"1"}}"#;
        let text = String::from_utf8_lossy(a);
        let b = text
            .replace("f7033e9d-153c", "00033e9d-153d")
            .replace("15:46", "16:46")
            .replace("\"8\"", "\"9\"");
        assert_eq!(differences(a, b.as_bytes()), (Vec::new(), Vec::new()));
        let other = b.replace("\"time\":\"1\"", "\"time\":\"2\"");
        assert_eq!(differences(a, other.as_bytes()).0.len(), 1);
    }

    #[test]
    fn deep_values_compare_as_text() {
        let nested = |inner: &str| {
            let text = format!("{}{inner}{}", "[".repeat(9000), "]".repeat(9000));
            text.into_bytes()
        };
        assert!(differences(&nested("1"), &nested("1")).0.is_empty());
        assert_eq!(differences(&nested("1"), &nested("2")).0.len(), 1);
    }

    #[test]
    fn broken_text_is_an_error() {
        for text in ["{\"a\":", "{\"a\" 1}", "[1", "{}x", "", "\"a"] {
            assert!(compare(text.as_bytes(), b"{}").is_err(), "{text}");
        }
    }
}
