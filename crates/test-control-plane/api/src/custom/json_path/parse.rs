//! The syntax of JSON paths.
//!
//! Upstream: `parser.go` of `k8s.io/client-go/util/jsonpath`

use serde_json::Value;

use super::compare::Operator;
use super::unquote::unquoted;

/// A step of a path.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Node {
    /// A text, quoted or outside of braces.
    Text(String),
    /// A number or a Boolean.
    Literal(Value),
    /// `.name`
    Field(String),
    /// `.*`
    Wildcard,
    /// `..`
    Recursive,
    /// `[begin:end:step]`
    Slice(Slice),
    /// `[?()]`
    Filter(Filter),
    /// `[a,b]`
    Union(Vec<Vec<Node>>),
    /// A word without a meaning, which every evaluation fails with.
    Unknown,
}

/// A filter: a path that leads somewhere, or the comparison of two.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Filter {
    pub(super) left: Vec<Node>,
    pub(super) compared: Option<(Operator, Vec<Node>)>,
}

/// Bounds in a list. Negative ones count from its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Slice {
    begin: Option<i64>,
    end: End,
    step: Option<i64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    /// That of the list.
    OfList,
    At(i64),
    /// After the element at which it begins.
    AfterBegin,
}

/// The selected elements of a list.
pub(super) struct Range {
    pub(super) begin: usize,
    pub(super) count: usize,
    pub(super) step: usize,
}

impl Slice {
    /// Returns the selected elements of a list; `None` for an empty selection.
    ///
    /// # Errors
    ///
    /// The selection is out of bounds.
    pub(super) fn range(self, length: usize) -> Result<Option<Range>, ()> {
        let length = i64::try_from(length).map_err(|_| ())?;
        let first = self.begin.unwrap_or(0);
        let begin = if first < 0 { first + length } else { first };
        let end = match self.end {
            End::OfList => length,
            End::At(end) if end < 0 => end + length,
            End::At(end) => end,
            End::AfterBegin if first < 0 => first + 1 + length,
            End::AfterBegin => first.checked_add(1).ok_or(())?,
        };
        if begin == end {
            return Ok(None);
        }
        let within = 0..=length;
        if !(0..length).contains(&begin) || !within.contains(&end) || begin > end {
            return Err(());
        }
        let step = self.step.unwrap_or(1);
        if step <= 0 {
            return Err(());
        }
        let size = |number: i64| usize::try_from(number).map_err(|_| ());
        Ok(Some(Range {
            begin: size(begin)?,
            count: size(end - begin)?,
            step: size(step)?,
        }))
    }
}

/// Reads a text with paths in braces. Returns the steps of each path, and each text between them as a
/// step; `None` for a wrong one.
pub(super) fn template(text: &str) -> Option<Vec<Vec<Node>>> {
    let mut parser = Parser {
        input: text.chars().collect(),
        at: 0,
    };
    let mut parts = Vec::new();
    while parser.at < parser.input.len() {
        let begin = parser.at;
        while parser.peek().is_some_and(|c| c != '{') {
            parser.at += 1;
        }
        if parser.at > begin {
            parts.push(vec![Node::Text(parser.text(begin))]);
        }
        if parser.peek().is_some() {
            parser.at += 1;
            parts.push(parser.action()?);
        }
    }
    Some(parts)
}

/// Reads the path that an action in braces would have.
fn action(text: &str) -> Option<Vec<Node>> {
    template(&format!("{{{text}}}"))?.into_iter().next()
}

struct Parser {
    input: Vec<char>,
    at: usize,
}

impl Parser {
    fn peek(&self) -> Option<char> {
        self.input.get(self.at).copied()
    }

    fn starts_with(&self, prefix: &str) -> bool {
        let rest = self.input.get(self.at..).unwrap_or_default();
        let prefix: Vec<char> = prefix.chars().collect();
        rest.starts_with(&prefix)
    }

    /// Returns the text since a position.
    fn text(&self, begin: usize) -> String {
        let text = self.input.get(begin..self.at).unwrap_or_default();
        text.iter().collect()
    }

    /// Reads steps up to the closing brace.
    fn action(&mut self) -> Option<Vec<Node>> {
        let mut nodes = Vec::new();
        loop {
            if self.starts_with("[?(") {
                self.at += 3;
                nodes.push(Node::Filter(self.filter()?));
                continue;
            }
            if self.starts_with("..") {
                if nodes.last() == Some(&Node::Recursive) {
                    return None;
                }
                self.at += 2;
                nodes.push(Node::Recursive);
                if self.peek().is_some_and(is_word) {
                    nodes.push(self.field());
                }
                continue;
            }
            let begin = self.at;
            let found = self.peek()?;
            match found {
                '+' | '-' => nodes.push(self.number()?),
                digit if digit.is_ascii_digit() => nodes.push(self.number()?),
                word if is_word(word) => {
                    while self.peek().is_some_and(|c| !is_terminator(c)) {
                        self.at += 1;
                    }
                    nodes.push(match self.text(begin).as_str() {
                        "true" => Node::Literal(Value::Bool(true)),
                        "false" => Node::Literal(Value::Bool(false)),
                        _ => Node::Unknown,
                    });
                }
                other => {
                    self.at += 1;
                    match other {
                        '}' => return Some(nodes),
                        ' ' | '@' | '$' => {}
                        '[' => nodes.extend(self.brackets()?),
                        '"' | '\'' => nodes.push(Node::Text(self.quoted(other)?)),
                        '.' => nodes.push(self.field()),
                        _ => return None,
                    }
                }
            }
        }
    }

    fn field(&mut self) -> Node {
        let begin = self.at;
        while let Some(next) = self.peek() {
            if next == '\\' {
                self.at = (self.at + 2).min(self.input.len());
            } else if is_terminator(next) {
                break;
            } else {
                self.at += 1;
            }
        }
        match self.text(begin).as_str() {
            "*" => Node::Wildcard,
            name => Node::Field(name.replace('\\', "")),
        }
    }

    fn number(&mut self) -> Option<Node> {
        let begin = self.at;
        if matches!(self.peek(), Some('+' | '-')) {
            self.at += 1;
        }
        while self.peek().is_some_and(|c| c == '.' || c.is_ascii_digit()) {
            self.at += 1;
        }
        let text = self.text(begin);
        let whole = text.parse::<i64>().map(Value::from);
        let float = || text.parse::<f64>().ok().filter(|float| float.is_finite());
        let number = whole.ok().or_else(|| float().map(Value::from));
        number.map(Node::Literal)
    }

    /// Reads a quoted text after its first quote.
    fn quoted(&mut self, quote: char) -> Option<String> {
        let begin = self.at;
        loop {
            let next = self.peek()?;
            self.at += 1;
            let before = self.input.get(self.at.checked_sub(2)?);
            if next == '\n' {
                return None;
            }
            if next == quote && before != Some(&'\\') {
                break;
            }
        }
        let text = self.text(begin);
        unquoted(text.strip_suffix(quote)?, quote)
    }

    /// Reads an index, a slice, a name or several of them, after the opening bracket.
    fn brackets(&mut self) -> Option<Vec<Node>> {
        let begin = self.at;
        while self.peek().filter(|c| *c != '\n')? != ']' {
            self.at += 1;
        }
        let text = self.text(begin);
        self.at += 1;
        let text = if text == "*" { ":" } else { text.as_str() };
        if text.contains(',') {
            let parts = text.split(',').map(|part| {
                let part = part.trim_matches(' ');
                action(&format!("[{part}]"))
            });
            let parts: Option<Vec<Vec<Node>>> = parts.collect();
            return Some(vec![Node::Union(parts?)]);
        }
        let quoted = text.strip_prefix('\'').and_then(|it| it.strip_suffix('\''));
        if let Some(name) = quoted.filter(|name| !name.contains('\'')) {
            return action(&format!(".{name}"));
        }
        slice(text).map(|slice| vec![Node::Slice(slice)])
    }

    /// Reads a filter after its opening parenthesis.
    fn filter(&mut self) -> Option<Filter> {
        let begin = self.at;
        let (mut quote, mut is_over) = (None, false);
        loop {
            let next = self.peek().filter(|c| *c != '\n')?;
            self.at += 1;
            match (next, quote) {
                ('"' | '\'', None) => quote = Some(next),
                (')', None) => break,
                (')', Some(_)) if is_over => break,
                (_, Some(quote)) if next == quote => {
                    let before = self.input.get(self.at.checked_sub(2)?);
                    is_over |= before != Some(&'\\');
                }
                _ => {}
            }
        }
        if self.peek()? != ']' {
            return None;
        }
        self.at += 1;
        let inside = self.input.get(begin..self.at - 2)?;
        let is_sign = |c: &char| matches!(c, '!' | '<' | '>' | '=');
        let text = |part: &[char]| -> String { part.iter().collect() };
        let left = inside.iter().take_while(|c| !is_sign(c)).count();
        let signs = inside.iter().skip(left).take_while(|c| is_sign(c)).count();
        // The right side has at least one character, if need be that of a sign.
        let signs = signs.min(inside.len().saturating_sub(left + 1));
        if left == 0 || signs == 0 {
            let (left, compared) = (action(&text(inside))?, None);
            return Some(Filter { left, compared });
        }
        let (left, rest) = inside.split_at_checked(left)?;
        let (signs, right) = rest.split_at_checked(signs)?;
        let (left, right) = (action(&text(left))?, action(&text(right))?);
        let compared = Some((Operator::of_text(&text(signs)), right));
        Some(Filter { left, compared })
    }
}

/// Reads `begin:end:step`, of which each part may be missing.
fn slice(text: &str) -> Option<Slice> {
    let mut parts = text.split(':');
    let number = |part: &str| -> Option<Option<i64>> {
        let digits = part.strip_prefix('-').unwrap_or(part);
        match part {
            "" => Some(None),
            _ if digits.bytes().all(|byte| byte.is_ascii_digit()) => Some(Some(part.parse().ok()?)),
            _ => None,
        }
    };
    let begin = number(parts.next()?)?;
    let end = match parts.next().map(number) {
        None => End::AfterBegin,
        Some(end) => end?.map_or(End::OfList, End::At),
    };
    let step = match parts.next().map(number) {
        None => None,
        Some(step) => step?,
    };
    let slice = Slice { begin, end, step };
    parts.next().is_none().then_some(slice)
}

fn is_terminator(c: char) -> bool {
    matches!(
        c,
        ' ' | '\t' | '\r' | '\n' | '.' | ',' | '[' | ']' | '$' | '@' | '{' | '}'
    )
}

fn is_word(c: char) -> bool {
    c == '_' || c.is_alphabetic() || c.is_ascii_digit()
}
