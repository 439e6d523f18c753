//! The layout of documents, lists, mappings and strings.

use std::cmp::Ordering;

use serde_json::{Map, Value};

use super::scalar::{Style, escaped, style};

/// Folds a string at the next space after this column.
const BEST_WIDTH: usize = 80;

/// Maximum length in bytes of a key without an explicit `?` mark.
const SIMPLE_KEY_MAX: usize = 128;

/// Writes a document.
#[derive(Default)]
pub(super) struct Writer {
    text: String,
    /// Number of characters in the last line.
    column: usize,
}

impl Writer {
    /// Returns the written text.
    pub(super) fn finish(self) -> String {
        self.text
    }

    /// Writes a whole document.
    pub(super) fn document(&mut self, value: &Value) {
        match value {
            Value::Object(members) if !members.is_empty() => self.members(members, 0),
            Value::Array(items) if !items.is_empty() => self.items(items, 0),
            other => {
                self.scalar(other, 0);
                self.put('\n');
            }
        }
    }

    /// Writes the members of a mapping, one per line. The first starts at the current position.
    fn members(&mut self, members: &Map<String, Value>, indent: usize) {
        let names = sorted(members.keys().collect());
        for (i, name) in names.into_iter().enumerate() {
            if i > 0 {
                self.indent(indent);
            }
            let value = &members[name];
            if name.len() > SIMPLE_KEY_MAX || name.contains('\n') {
                self.all("? ");
                self.string(name, indent + 2, true);
                self.end_line();
                self.indent(indent);
                self.all(": ");
                self.nested(value, indent + 2);
                continue;
            }
            self.string(name, indent, false);
            self.put(':');
            match value {
                Value::Object(inner) if !inner.is_empty() => {
                    self.put('\n');
                    self.indent(indent + 2);
                    self.members(inner, indent + 2);
                }
                Value::Array(inner) if !inner.is_empty() => {
                    self.put('\n');
                    self.indent(indent);
                    self.items(inner, indent);
                }
                other => {
                    self.put(' ');
                    self.scalar(other, indent + 2);
                    self.end_line();
                }
            }
        }
    }

    /// Writes the items of a list, one per line. The first starts at the current position.
    fn items(&mut self, items: &[Value], indent: usize) {
        for (i, item) in items.iter().enumerate() {
            if i > 0 {
                self.indent(indent);
            }
            self.all("- ");
            self.nested(item, indent + 2);
        }
    }

    /// Writes a value that starts on its parent's line.
    fn nested(&mut self, value: &Value, indent: usize) {
        match value {
            Value::Object(inner) if !inner.is_empty() => self.members(inner, indent),
            Value::Array(inner) if !inner.is_empty() => self.items(inner, indent),
            other => {
                self.scalar(other, indent);
                self.end_line();
            }
        }
    }

    /// Writes an empty value or a scalar.
    fn scalar(&mut self, value: &Value, indent: usize) {
        match value {
            Value::Object(_) => self.all("{}"),
            Value::Array(_) => self.all("[]"),
            Value::String(text) => self.string(text, indent, true),
            other => self.all(&other.to_string()),
        }
    }

    /// Writes a string. A string that may not break is a key.
    fn string(&mut self, text: &str, indent: usize, breaks: bool) {
        match style(text, breaks) {
            Style::Plain => self.folded(text, indent, breaks, Style::Plain),
            Style::Single => {
                self.put('\'');
                self.folded(text, indent, breaks, Style::Single);
                self.put('\'');
            }
            Style::Double => {
                self.put('"');
                self.folded(text, indent, breaks, Style::Double);
                self.put('"');
            }
            Style::Literal => self.literal(text, indent),
        }
    }

    /// Writes a string and folds its full lines.
    fn folded(&mut self, text: &str, indent: usize, breaks: bool, style: Style) {
        let has_mark = text.starts_with('\u{feff}');
        let count = text.chars().count();
        let mut after_blank = false;
        let mut characters = text.chars().enumerate().peekable();
        while let Some((i, c)) = characters.next() {
            let next = characters.peek().map(|(_, c)| *c);
            if c == ' ' {
                let is_inside = style == Style::Plain || (i > 0 && i + 1 < count);
                let fits = style == Style::Double || next != Some(' ');
                if breaks && !after_blank && self.column > BEST_WIDTH && is_inside && fits {
                    self.put('\n');
                    self.indent(indent);
                    if style == Style::Double && next == Some(' ') {
                        self.put('\\');
                    }
                } else {
                    self.put(c);
                }
                after_blank = true;
                continue;
            }
            after_blank = false;
            match (style, c) {
                (Style::Single, '\'') => self.all("''"),
                (Style::Double, c) => match escaped(c, has_mark) {
                    Some(escape) => self.all(&escape),
                    None => self.put(c),
                },
                (_, c) => self.put(c),
            }
        }
    }

    /// Writes a string as a literal block.
    fn literal(&mut self, text: &str, indent: usize) {
        self.put('|');
        if text.starts_with([' ', '\n']) {
            self.put('2');
        }
        match text.strip_suffix('\n') {
            None => self.put('-'),
            Some(rest) if rest.is_empty() || rest.ends_with('\n') => self.put('+'),
            Some(_) => {}
        }
        self.put('\n');
        let indent = indent.max(2);
        for line in text.split_inclusive('\n') {
            if line != "\n" {
                self.indent(indent);
            }
            self.all(line);
        }
    }

    fn end_line(&mut self) {
        if self.column > 0 {
            self.put('\n');
        }
    }

    fn indent(&mut self, count: usize) {
        for _ in 0..count {
            self.put(' ');
        }
    }

    fn all(&mut self, text: &str) {
        text.chars().for_each(|c| self.put(c));
    }

    fn put(&mut self, c: char) {
        self.text.push(c);
        self.column = if c == '\n' { 0 } else { self.column + 1 };
    }
}

/// Maximum number of keys for an insertion sort.
const FEW: usize = 12;

/// Sorts keys. Their order isn't total, and the standard library's sorts may panic on such an
/// order.
fn sorted(names: Vec<&String>) -> Vec<&String> {
    let mut found: Vec<&String> = Vec::with_capacity(names.len());
    if names.len() <= FEW {
        for name in names {
            let greater = found.iter().rev().take_while(|n| in_order(name, n).is_lt());
            found.insert(found.len() - greater.count(), name);
        }
        return found;
    }
    let right = sorted(names[names.len() / 2..].to_vec());
    let left = sorted(names[..names.len() / 2].to_vec());
    let mut right = right.into_iter().peekable();
    for name in left {
        while let Some(other) = right.next_if(|other| in_order(other, name).is_lt()) {
            found.push(other);
        }
        found.push(name);
    }
    found.extend(right);
    found
}

/// Compares keys: numbers in them by value, other characters before letters.
///
/// Upstream: `keyList.Less`.
fn in_order(a: &str, b: &str) -> Ordering {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let Some(i) = a.iter().zip(&b).position(|(a, b)| a != b) else {
        return a.len().cmp(&b.len());
    };
    match (a[i].is_alphabetic(), b[i].is_alphabetic()) {
        (true, true) => return a[i].cmp(&b[i]),
        (true, false) => return Ordering::Greater,
        (false, true) => return Ordering::Less,
        (false, false) => {}
    }
    // A zero inside a number is a digit of it.
    let before = a[..i].iter().rev().take_while(|c| c.is_ascii_digit());
    let is_within = (a[i] == '0' || b[i] == '0') && before.clone().any(|c| *c != '0');
    let number = |text: &[char]| {
        let digits: String = text[i..]
            .iter()
            .take_while(|c| c.is_ascii_digit())
            .collect();
        let count = digits.len();
        let lead = if is_within { "1" } else { "" };
        let value: u128 = format!("{lead}{digits}").parse().unwrap_or(0);
        (value, count)
    };
    number(&a).cmp(&number(&b)).then(a[i].cmp(&b[i]))
}
