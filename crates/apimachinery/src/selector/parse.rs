//! The query-string form of selectors: `key`, `!key`, `=`, `==`, `!=`, `in`, `notin`, `>`, `<`.

use super::requirement::{Operator, Requirement, SelectorError};
use super::validation::validate_label_key;

#[derive(Clone, Debug, PartialEq, Eq)]
enum Token {
    Word(String),
    Not,
    Equals,
    NotEquals,
    GreaterThan,
    LessThan,
    Open,
    Close,
    Comma,
}

impl Token {
    fn text(&self) -> &str {
        match self {
            Self::Word(word) => word,
            Self::Not => "!",
            Self::Equals => "=",
            Self::NotEquals => "!=",
            Self::GreaterThan => ">",
            Self::LessThan => "<",
            Self::Open => "(",
            Self::Close => ")",
            Self::Comma => ",",
        }
    }
}

/// Parses a comma-separated list of requirements, which may be empty.
pub(super) fn parse(text: &str) -> Result<Vec<Requirement>, SelectorError> {
    let mut parser = Parser {
        tokens: tokenize(text),
        position: 0,
    };
    let mut requirements = Vec::new();
    loop {
        match parser.peek() {
            None => return Ok(requirements),
            Some(Token::Word(_) | Token::Not) => {}
            other => return Err(unexpected(other, "!, identifier, or 'end of string'")),
        }
        let requirement = parser
            .requirement()
            .map_err(|err| SelectorError::Parse(format!("unable to parse requirement: {err}")))?;
        requirements.push(requirement);
        match parser.next() {
            None => return Ok(requirements),
            Some(Token::Comma) if matches!(parser.peek(), Some(Token::Word(_) | Token::Not)) => {}
            Some(Token::Comma) => {
                return Err(unexpected(parser.peek(), "identifier after ','"));
            }
            other => return Err(unexpected(other.as_ref(), "',' or 'end of string'")),
        }
    }
}

fn tokenize(text: &str) -> Vec<Token> {
    let mut tokens = Vec::new();
    let mut rest = text.trim_ascii_start();
    while let Some(first) = rest.chars().next() {
        let (token, length) = match first {
            '(' => (Token::Open, 1),
            ')' => (Token::Close, 1),
            ',' => (Token::Comma, 1),
            '>' => (Token::GreaterThan, 1),
            '<' => (Token::LessThan, 1),
            '=' if rest.starts_with("==") => (Token::Equals, 2),
            '=' => (Token::Equals, 1),
            '!' if rest.starts_with("!=") => (Token::NotEquals, 2),
            '!' => (Token::Not, 1),
            _ => {
                let is_end = |c: char| c.is_ascii_whitespace() || "(),=!<>".contains(c);
                let word = rest.split(is_end).next().unwrap_or(rest);
                (Token::Word(word.to_owned()), word.len())
            }
        };
        tokens.push(token);
        rest = rest.get(length..).unwrap_or_default().trim_ascii_start();
    }
    tokens
}

fn unexpected(found: Option<&Token>, expected: &str) -> SelectorError {
    let found = found.map_or("", Token::text);
    SelectorError::Parse(format!("found '{found}', expected: {expected}"))
}

struct Parser {
    tokens: Vec<Token>,
    position: usize,
}

impl Parser {
    fn peek(&self) -> Option<&Token> {
        self.tokens.get(self.position)
    }

    fn next(&mut self) -> Option<Token> {
        let token = self.tokens.get(self.position).cloned();
        self.position += 1;
        token
    }

    fn requirement(&mut self) -> Result<Requirement, SelectorError> {
        let negated = self.peek() == Some(&Token::Not);
        if negated {
            self.position += 1;
        }
        let key = match self.next() {
            Some(Token::Word(word)) => word,
            other => return Err(unexpected(other.as_ref(), "identifier")),
        };
        if let Err(reason) = validate_label_key(&key) {
            let message = format!("<nil>: Invalid value: {key:?}: {reason}");
            return Err(SelectorError::Invalid(message));
        }
        if negated {
            return Requirement::new(&key, Operator::DoesNotExist, Vec::new());
        }
        if matches!(self.peek(), None | Some(Token::Comma)) {
            return Requirement::new(&key, Operator::Exists, Vec::new());
        }
        let operator = match self.next() {
            Some(Token::Equals) => Operator::Equals,
            Some(Token::NotEquals) => Operator::NotEquals,
            Some(Token::GreaterThan) => Operator::GreaterThan,
            Some(Token::LessThan) => Operator::LessThan,
            Some(Token::Word(word)) if word == "in" => Operator::In,
            Some(Token::Word(word)) if word == "notin" => Operator::NotIn,
            other => {
                return Err(unexpected(other.as_ref(), "in, notin, =, ==, !=, gt, lt"));
            }
        };
        let mut values = match operator {
            Operator::In | Operator::NotIn => self.values()?,
            _ => vec![self.exact_value()?],
        };
        values.sort();
        values.dedup();
        Requirement::new(&key, operator, values)
    }

    /// Parses the value after `=`, `!=`, `>` or `<`; a missing one is the empty value.
    fn exact_value(&mut self) -> Result<String, SelectorError> {
        if matches!(self.peek(), None | Some(Token::Comma)) {
            return Ok(String::new());
        }
        match self.next() {
            Some(Token::Word(word)) => Ok(word),
            other => Err(unexpected(other.as_ref(), "identifier")),
        }
    }

    /// Parses a list in parentheses; nothing between two commas is the empty value.
    fn values(&mut self) -> Result<Vec<String>, SelectorError> {
        match self.next() {
            Some(Token::Open) => {}
            other => {
                let found = other.as_ref().map_or("", Token::text);
                let message = format!("found '{found}' expected: '('");
                return Err(SelectorError::Parse(message));
            }
        }
        match self.peek() {
            Some(Token::Word(_) | Token::Comma | Token::Close) => {}
            other => return Err(unexpected(other, "',', ')' or identifier")),
        }
        let mut values = Vec::new();
        loop {
            match self.next() {
                Some(Token::Word(word)) => {
                    values.push(word);
                    match self.next() {
                        Some(Token::Comma) => {}
                        Some(Token::Close) => return Ok(values),
                        other => return Err(unexpected(other.as_ref(), "',' or ')'")),
                    }
                }
                Some(Token::Comma) => values.push(String::new()),
                Some(Token::Close) => {
                    values.push(String::new());
                    return Ok(values);
                }
                other => return Err(unexpected(other.as_ref(), "',', or identifier")),
            }
        }
    }
}
