//! Syntax of the shell: lists, pipelines, `for`, `while`, `if`, groups, quotes and redirections.

use std::iter::Peekable;
use std::str::Chars;

/// Commands joined by `;`, `&&` or `||`.
pub(super) type List = Vec<(Joint, Pipeline)>;

/// Commands joined by `|`.
pub(super) type Pipeline = Vec<Command>;

/// The condition under which a pipeline runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Joint {
    Always,
    AfterSuccess,
    AfterFailure,
}

/// A command with its redirections.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Command {
    pub(super) body: Body,
    pub(super) redirects: Vec<Redirect>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Body {
    Simple(Vec<Word>),
    For(String, Vec<Word>, List),
    While(List, List),
    If(List, List, List),
    Group(List),
    /// A group in parentheses, which only ends itself.
    Subshell(List),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Redirect {
    OutToErr,
    ErrToOut,
    Out { file: Word, append: bool },
    Err { file: Word },
    In { file: Word },
}

/// A word: its pieces are joined after their expansion.
pub(super) type Word = Vec<Piece>;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Piece {
    Text(String),
    /// Quoted values are not split at blanks.
    Variable {
        name: String,
        quoted: bool,
    },
    Output {
        script: String,
        quoted: bool,
    },
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Token {
    Word(Word),
    Operator(&'static str),
}

/// Operators, the longest first.
const OPERATORS: [&str; 15] = [
    "1>&2", "2>&1", ">&2", "&&", "||", ">>", "2>", ";", "\n", "|", "&", "(", ")", ">", "<",
];

/// Parses a script.
///
/// # Errors
///
/// The message of a syntax error.
pub(super) fn parse(script: &str) -> Result<List, String> {
    let mut parser = Parser {
        tokens: tokens(script)?,
        next: 0,
        depth: 0,
    };
    let list = parser.list(&[])?;
    match parser.peek() {
        None => Ok(list),
        Some(token) => Err(unexpected(Some(token))),
    }
}

/// Reports whether a script ends in the middle of a command.
pub(super) fn is_incomplete(script: &str) -> bool {
    matches!(parse(script), Err(message) if message == unexpected(None) || message == UNTERMINATED)
}

/// Reports whether a script starts commands that run alongside the next ones.
pub(super) fn starts_jobs(script: &str) -> bool {
    let starts_one = |token: &Token| matches!(token, Token::Operator("&"));
    tokens(script).is_ok_and(|tokens| tokens.iter().any(starts_one))
}

/// Limit of commands within commands, so that no script exhausts the stack.
const DEPTH_MAX: usize = 40;

const UNTERMINATED: &str = "syntax error: unterminated quoted string";

fn unexpected(token: Option<&Token>) -> String {
    match token {
        None => "syntax error: unexpected end of file".to_owned(),
        Some(Token::Operator("\n")) => "syntax error: unexpected newline".to_owned(),
        Some(Token::Operator(operator)) => format!("syntax error: unexpected \"{operator}\""),
        Some(Token::Word(word)) => {
            let text = plain(word).unwrap_or("word");
            format!("syntax error: unexpected \"{text}\"")
        }
    }
}

/// Returns the text of a word without quotes and expansions.
fn plain(word: &[Piece]) -> Option<&str> {
    match word {
        [Piece::Text(text)] => Some(text),
        _ => None,
    }
}

fn tokens(script: &str) -> Result<Vec<Token>, String> {
    let mut tokens = Vec::new();
    let mut rest = script;
    loop {
        rest = rest.trim_start_matches([' ', '\t', '\r']);
        if rest.starts_with('#') {
            rest = &rest[rest.find('\n').unwrap_or(rest.len())..];
        }
        if rest.is_empty() {
            return Ok(tokens);
        }
        let operator = OPERATORS.iter().find(|it| rest.starts_with(**it));
        if let Some(operator) = operator {
            tokens.push(Token::Operator(operator));
            rest = &rest[operator.len()..];
        } else {
            let mut chars = rest.chars().peekable();
            let word = word(&mut chars)?;
            tokens.push(Token::Word(word));
            let left: usize = chars.map(char::len_utf8).sum();
            rest = &rest[rest.len() - left..];
        }
    }
}

fn word(chars: &mut Peekable<Chars<'_>>) -> Result<Word, String> {
    let mut pieces = Vec::new();
    let mut text = String::new();
    let mut is_quoted = false;
    while let Some(&next) = chars.peek() {
        match next {
            ' ' | '\t' | '\r' | '\n' | ';' | '&' | '|' | '(' | ')' | '<' | '>' => break,
            _ => {}
        }
        chars.next();
        match next {
            '\\' => text.extend(chars.next()),
            '\'' => {
                is_quoted = true;
                text.push_str(&until(chars, '\'')?);
            }
            '"' => {
                is_quoted = true;
                quoted(chars, &mut text, &mut pieces)?;
            }
            '$' => expansion(chars, false, &mut text, &mut pieces)?,
            '`' => {
                let script = until(chars, '`')?;
                flush(&mut text, &mut pieces);
                pieces.push(Piece::Output {
                    script,
                    quoted: false,
                });
            }
            other => text.push(other),
        }
    }
    if !text.is_empty() || pieces.is_empty() && is_quoted {
        pieces.push(Piece::Text(text));
    }
    Ok(pieces)
}

fn quoted(
    chars: &mut Peekable<Chars<'_>>,
    text: &mut String,
    pieces: &mut Word,
) -> Result<(), String> {
    loop {
        match chars.next().ok_or(UNTERMINATED)? {
            '"' => return Ok(()),
            '\\' => match chars.next().ok_or(UNTERMINATED)? {
                escaped @ ('"' | '\\' | '$' | '`') => text.push(escaped),
                other => text.extend(['\\', other]),
            },
            '$' => expansion(chars, true, text, pieces)?,
            other => text.push(other),
        }
    }
}

/// Reads the expansion after a dollar sign.
fn expansion(
    chars: &mut Peekable<Chars<'_>>,
    quoted: bool,
    text: &mut String,
    pieces: &mut Word,
) -> Result<(), String> {
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let piece = match chars.peek() {
        Some('(') => {
            chars.next();
            let script = nested(chars)?;
            Piece::Output { script, quoted }
        }
        Some('{') => {
            chars.next();
            let name = until(chars, '}')?;
            Piece::Variable { name, quoted }
        }
        Some('?') => {
            chars.next();
            let name = "?".to_owned();
            Piece::Variable { name, quoted }
        }
        Some(c) if is_name(*c) => {
            let mut name = String::new();
            while let Some(c) = chars.next_if(|c| is_name(*c)) {
                name.push(c);
            }
            Piece::Variable { name, quoted }
        }
        _ => {
            text.push('$');
            return Ok(());
        }
    };
    flush(text, pieces);
    pieces.push(piece);
    Ok(())
}

fn flush(text: &mut String, pieces: &mut Word) {
    if !text.is_empty() {
        pieces.push(Piece::Text(std::mem::take(text)));
    }
}

fn until(chars: &mut Peekable<Chars<'_>>, end: char) -> Result<String, String> {
    let mut text = String::new();
    loop {
        match chars.next().ok_or(UNTERMINATED)? {
            found if found == end => return Ok(text),
            other => text.push(other),
        }
    }
}

/// Reads up to the parenthesis that closes a command substitution.
fn nested(chars: &mut Peekable<Chars<'_>>) -> Result<String, String> {
    let mut text = String::new();
    let mut depth = 1;
    loop {
        let next = chars.next().ok_or(UNTERMINATED)?;
        match next {
            '(' => depth += 1,
            ')' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return Ok(text);
        }
        text.push(next);
    }
}

struct Parser {
    tokens: Vec<Token>,
    next: usize,
    /// Number of commands around the current one.
    depth: usize,
}

impl Parser {
    fn peek(&self) -> Option<&Token> {
        self.tokens.get(self.next)
    }

    fn take_operator(&mut self, operators: &[&'static str]) -> Option<&'static str> {
        match self.peek() {
            Some(Token::Operator(found)) if operators.contains(found) => {
                let found = *found;
                self.next += 1;
                Some(found)
            }
            _ => None,
        }
    }

    /// Returns true if the next token is one of these reserved words.
    fn is_at(&self, reserved: &[&str]) -> bool {
        match self.peek() {
            Some(Token::Word(word)) => plain(word).is_some_and(|text| reserved.contains(&text)),
            Some(Token::Operator(operator)) => reserved.contains(operator),
            None => false,
        }
    }

    fn expect(&mut self, reserved: &str) -> Result<(), String> {
        if !self.is_at(&[reserved]) {
            return Err(unexpected(self.peek()));
        }
        self.next += 1;
        Ok(())
    }

    fn list(&mut self, ends: &[&str]) -> Result<List, String> {
        let mut list = List::new();
        let mut joint = Joint::Always;
        loop {
            while self.take_operator(&[";", "\n", "&"]).is_some() {}
            if self.peek().is_none() || self.is_at(ends) {
                return Ok(list);
            }
            list.push((joint, self.pipeline()?));
            joint = match self.take_operator(&["&&", "||", ";", "\n", "&"]) {
                Some("&&") => Joint::AfterSuccess,
                Some("||") => Joint::AfterFailure,
                Some(_) => Joint::Always,
                None => return Ok(list),
            };
            if joint != Joint::Always && self.peek().is_none() {
                return Err(unexpected(None));
            }
        }
    }

    fn pipeline(&mut self) -> Result<Pipeline, String> {
        let mut commands = vec![self.command()?];
        while self.take_operator(&["|"]).is_some() {
            commands.push(self.command()?);
        }
        Ok(commands)
    }

    fn command(&mut self) -> Result<Command, String> {
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            return Err("syntax error: nested too deeply".to_owned());
        }
        let command = self.shallow_command();
        self.depth -= 1;
        command
    }

    fn shallow_command(&mut self) -> Result<Command, String> {
        let mut redirects = Vec::new();
        let body = if self.is_at(&["for"]) {
            self.for_loop()?
        } else if self.is_at(&["while"]) {
            self.next += 1;
            let condition = self.list(&["do"])?;
            Body::While(condition, self.body()?)
        } else if self.is_at(&["if"]) {
            self.condition()?
        } else if self.take_operator(&["("]).is_some() {
            let list = self.list(&[")"])?;
            self.expect(")")?;
            Body::Subshell(list)
        } else if self.is_at(&["{"]) {
            self.next += 1;
            let list = self.list(&["}"])?;
            self.expect("}")?;
            Body::Group(list)
        } else {
            let mut words = Vec::new();
            loop {
                if let Some(Token::Word(word)) = self.peek() {
                    words.push(word.clone());
                    self.next += 1;
                } else if let Some(redirect) = self.redirect()? {
                    redirects.push(redirect);
                } else {
                    break;
                }
            }
            if words.is_empty() && redirects.is_empty() {
                return Err(unexpected(self.peek()));
            }
            Body::Simple(words)
        };
        while let Some(redirect) = self.redirect()? {
            redirects.push(redirect);
        }
        Ok(Command { body, redirects })
    }

    fn for_loop(&mut self) -> Result<Body, String> {
        self.next += 1;
        let name = match self.peek() {
            Some(Token::Word(word)) => plain(word).map(str::to_owned),
            _ => None,
        };
        let name = name.ok_or_else(|| unexpected(self.peek()))?;
        self.next += 1;
        self.expect("in")?;
        let mut words = Vec::new();
        while let Some(Token::Word(word)) = self.peek() {
            words.push(word.clone());
            self.next += 1;
        }
        while self.take_operator(&[";", "\n"]).is_some() {}
        Ok(Body::For(name, words, self.body()?))
    }

    fn body(&mut self) -> Result<List, String> {
        self.expect("do")?;
        let list = self.list(&["done"])?;
        self.expect("done")?;
        Ok(list)
    }

    /// Parses from `if` or `elif` to `fi`.
    fn condition(&mut self) -> Result<Body, String> {
        self.next += 1;
        let condition = self.list(&["then"])?;
        self.expect("then")?;
        let then = self.list(&["elif", "else", "fi"])?;
        if self.is_at(&["elif"]) {
            let body = self.condition()?;
            let redirects = Vec::new();
            let nested = vec![(Joint::Always, vec![Command { body, redirects }])];
            return Ok(Body::If(condition, then, nested));
        }
        let mut otherwise = List::new();
        if self.is_at(&["else"]) {
            self.next += 1;
            otherwise = self.list(&["fi"])?;
        }
        self.expect("fi")?;
        Ok(Body::If(condition, then, otherwise))
    }

    fn redirect(&mut self) -> Result<Option<Redirect>, String> {
        let operators = ["1>&2", ">&2", "2>&1", "2>", ">>", ">", "<"];
        let Some(operator) = self.take_operator(&operators) else {
            return Ok(None);
        };
        match operator {
            "1>&2" | ">&2" => return Ok(Some(Redirect::OutToErr)),
            "2>&1" => return Ok(Some(Redirect::ErrToOut)),
            _ => {}
        }
        let Some(Token::Word(file)) = self.peek() else {
            return Err(unexpected(self.peek()));
        };
        let file = file.clone();
        self.next += 1;
        Ok(Some(match operator {
            "2>" => Redirect::Err { file },
            "<" => Redirect::In { file },
            other => Redirect::Out {
                file,
                append: other == ">>",
            },
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn syntax_errors_name_the_token() {
        for (script, message) in [
            ("echo a; done", None),
            (
                "for x in a b; echo",
                Some("syntax error: unexpected \"echo\""),
            ),
            (
                "while true; do",
                Some("syntax error: unexpected end of file"),
            ),
            ("echo 'a", Some(UNTERMINATED)),
            ("( echo a", Some("syntax error: unexpected end of file")),
            ("echo a >", Some("syntax error: unexpected end of file")),
            ("&& a", Some("syntax error: unexpected \"&&\"")),
        ] {
            assert_eq!(parse(script).err().as_deref(), message, "{script}");
        }
        assert!(is_incomplete("if true; then\necho a\n"));
        assert!(!is_incomplete("echo a"));
    }

    #[test]
    fn quotes_keep_blanks_and_operators() {
        let list = parse("echo 'a; b' \"c | $d\" e\\ f").unwrap();
        let Body::Simple(words) = &list[0].1[0].body else {
            panic!("{list:?}");
        };
        let text = |text: &str| Piece::Text(text.to_owned());
        let variable = Piece::Variable {
            name: "d".to_owned(),
            quoted: true,
        };
        assert_eq!(
            *words,
            [
                vec![text("echo")],
                vec![text("a; b")],
                vec![text("c | "), variable],
                vec![text("e f")],
            ]
        );
    }
}
