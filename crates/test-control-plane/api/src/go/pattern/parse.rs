//! Translation of patterns from the syntax of Go, with Go's errors.
//!
//! Upstream: `regexp/syntax`

use regex::Regex;

/// The largest count of a repetition, and the largest product of nested ones.
const COUNT_MAX: u32 = 1000;

/// The largest depth of groups.
const DEPTH_MAX: usize = 1000;

/// The letters of classes such as `\d`, with their content in a class of this crate.
const PERL: [(char, &str); 6] = [
    ('d', "0-9"),
    ('D', "[^0-9]"),
    ('s', r"\t\n\f\r "),
    ('S', r"[^\t\n\f\r ]"),
    ('w', "0-9A-Za-z_"),
    ('W', "[^0-9A-Za-z_]"),
];

/// The names of classes such as `[:alpha:]`.
const POSIX: [&str; 14] = [
    "alnum", "alpha", "ascii", "blank", "cntrl", "digit", "graph", "lower", "print", "punct",
    "space", "upper", "word", "xdigit",
];

/// Returns a pattern in the syntax of the `regex` crate.
///
/// # Errors
///
/// Go's text on a syntax error.
pub(super) fn translate(source: &str) -> Result<String, String> {
    let mut parser = Parser {
        source,
        translated: String::with_capacity(source.len()),
        groups: Vec::new(),
        group: Group::default(),
    };
    let (mut rest, mut repeated) = (source, None);
    while let Some(letter) = rest.chars().next() {
        let before = rest;
        let count = match letter {
            '*' | '+' | '?' => Some((1, &rest[1..])),
            '{' => count(rest),
            _ => None,
        };
        if let Some((count, after)) = count {
            rest = parser.repeat(count, before, after, repeated)?;
            repeated = Some(before);
        } else {
            rest = parser.one(letter, rest)?;
            repeated = None;
        }
    }
    if parser.groups.is_empty() {
        Ok(parser.translated)
    } else {
        Err(error("missing closing )", source))
    }
}

/// Returns the text of an error.
fn error(code: &str, at: &str) -> String {
    format!("error parsing regexp: {code}: `{at}`")
}

/// Returns the part of a text before its end.
fn head<'a>(text: &'a str, end: &str) -> &'a str {
    &text[..text.len() - end.len()]
}

struct Parser<'a> {
    source: &'a str,
    translated: String,
    /// The groups around the current one.
    groups: Vec<Group>,
    group: Group,
}

/// A group, by the products of the counts in it.
#[derive(Clone, Copy, Default)]
struct Group {
    /// That of the last operand, if a repetition can follow.
    last: Option<u32>,
    /// The largest one.
    most: u32,
}

impl<'a> Parser<'a> {
    fn operand(&mut self, count: u32) {
        self.group.last = Some(count);
        self.group.most = self.group.most.max(count);
    }

    /// Reads a repetition; `repeated` is the text from the one directly before it on.
    fn repeat(
        &mut self,
        count: u32,
        before: &'a str,
        after: &'a str,
        repeated: Option<&'a str>,
    ) -> Result<&'a str, String> {
        let wrong_size = |after| error("invalid repeat count", head(before, after));
        if count > COUNT_MAX {
            return Err(wrong_size(after));
        }
        let after = after.strip_prefix('?').unwrap_or(after);
        if let Some(repeated) = repeated {
            let code = "invalid nested repetition operator";
            return Err(error(code, head(repeated, after)));
        }
        let Some(last) = self.group.last else {
            let code = "missing argument to repetition operator";
            return Err(error(code, head(before, after)));
        };
        let product = last.saturating_mul(count);
        if count >= 2 && product > COUNT_MAX {
            return Err(wrong_size(after));
        }
        self.operand(product);
        self.translated.push_str(head(before, after));
        Ok(after)
    }

    /// Reads anything but a repetition.
    fn one(&mut self, letter: char, rest: &'a str) -> Result<&'a str, String> {
        let after = &rest[letter.len_utf8()..];
        match letter {
            '(' => return self.open(rest),
            ')' => {
                let around = self.groups.pop();
                let around = around.ok_or_else(|| error("unexpected )", self.source))?;
                let count = std::mem::replace(&mut self.group, around).most;
                self.operand(count.max(1));
                self.translated.push(letter);
            }
            '|' => {
                self.group.last = None;
                self.translated.push(letter);
            }
            '[' => {
                let after = self.class(rest)?;
                self.operand(1);
                return Ok(after);
            }
            '\\' => {
                let after = self.escape(rest)?;
                self.operand(1);
                return Ok(after);
            }
            '^' | '$' | '.' => {
                self.operand(1);
                self.translated.push(letter);
            }
            _ => {
                self.operand(1);
                self.literal(letter);
            }
        }
        Ok(after)
    }

    fn literal(&mut self, letter: char) {
        self.translated
            .push_str(&regex::escape(letter.encode_utf8(&mut [0; 4])));
    }

    /// Reads the start of a group.
    ///
    /// Upstream: `parsePerlFlags`
    fn open(&mut self, rest: &'a str) -> Result<&'a str, String> {
        let Some(flags) = rest.strip_prefix("(?") else {
            self.enter("(")?;
            return Ok(&rest[1..]);
        };
        let name = flags.strip_prefix("P<").or(flags.strip_prefix('<'));
        if let Some(name) = name.filter(|name| !name.is_empty()) {
            let code = "invalid named capture";
            let Some((name, after)) = name.split_once('>') else {
                return Err(error(code, rest));
            };
            let is_word = |letter: char| letter == '_' || letter.is_ascii_alphanumeric();
            if name.is_empty() || !name.chars().all(is_word) {
                return Err(error(code, head(rest, after)));
            }
            self.enter("(")?;
            return Ok(after);
        }
        let (mut is_off, mut has_flag) = (false, false);
        for (index, letter) in flags.char_indices() {
            let after = &flags[index + letter.len_utf8()..];
            match letter {
                'i' | 'm' | 's' | 'U' => has_flag = true,
                '-' if !is_off => (is_off, has_flag) = (true, false),
                ':' if has_flag || !is_off => {
                    self.enter(head(rest, after))?;
                    return Ok(after);
                }
                ')' if has_flag || !is_off => {
                    if index > 0 {
                        self.translated.push_str(head(rest, after));
                    }
                    return Ok(after);
                }
                _ => {
                    let code = "invalid or unsupported Perl syntax";
                    return Err(error(code, head(rest, after)));
                }
            }
        }
        Err(error("invalid or unsupported Perl syntax", rest))
    }

    fn enter(&mut self, start: &str) -> Result<(), String> {
        self.translated.push_str(start);
        self.groups.push(std::mem::take(&mut self.group));
        if self.groups.len() < DEPTH_MAX {
            Ok(())
        } else {
            Err(error("expression nests too deeply", self.source))
        }
    }

    /// Reads an escape sequence outside of a class.
    fn escape(&mut self, rest: &'a str) -> Result<&'a str, String> {
        let mut letters = rest[1..].chars();
        let letter = letters.next();
        let after = letters.as_str();
        match letter {
            Some('A' | 'B' | 'z') => self.translated.push_str(head(rest, after)),
            // A word consists of ASCII letters.
            Some('b') => self.translated.push_str(r"(?-u:\b)"),
            Some('Q') => {
                let (verbatim, after) = after.split_once("\\E").unwrap_or((after, ""));
                self.translated.push_str(&regex::escape(verbatim));
                return Ok(after);
            }
            _ => {
                if let Some((inside, after)) = named(rest)? {
                    self.translated.extend(["[", &inside, "]"]);
                    return Ok(after);
                }
                let (letter, after) = escaped(rest)?;
                self.literal(letter);
                return Ok(after);
            }
        }
        Ok(after)
    }

    /// Reads a class.
    ///
    /// Upstream: `parseClass`
    fn class(&mut self, whole: &'a str) -> Result<&'a str, String> {
        let mut rest = &whole[1..];
        self.translated.push('[');
        if let Some(after) = rest.strip_prefix('^') {
            self.translated.push('^');
            rest = after;
        }
        let mut is_first = true;
        while is_first || !rest.starts_with(']') {
            is_first = false;
            if let Some((inside, after)) = named(rest)? {
                self.translated.push_str(&inside);
                rest = after;
                continue;
            }
            let begin = rest;
            let (from, after) = class_letter(rest, whole)?;
            self.literal(from);
            rest = after;
            let end = after.strip_prefix('-').filter(|end| !end.is_empty());
            if let Some(end) = end.filter(|end| !end.starts_with(']')) {
                let (to, after) = class_letter(end, whole)?;
                if to < from {
                    let code = "invalid character class range";
                    return Err(error(code, head(begin, after)));
                }
                self.translated.push('-');
                self.literal(to);
                rest = after;
            }
        }
        self.translated.push(']');
        Ok(&rest[1..])
    }
}

/// Reads a character in a class.
fn class_letter<'a>(rest: &'a str, whole: &str) -> Result<(char, &'a str), String> {
    let mut letters = rest.chars();
    match letters.next() {
        None => Err(error("missing closing ]", whole)),
        Some('\\') => escaped(rest),
        Some(letter) => Ok((letter, letters.as_str())),
    }
}

/// Reads a class with a name, and returns the content of a class for it.
///
/// Upstream: `parseNamedClass`, `parseUnicodeClass` and `parsePerlClassEscape`
fn named(rest: &str) -> Result<Option<(String, &str)>, String> {
    let code = "invalid character class range";
    let mut letters = rest.chars();
    match (letters.next(), letters.next()) {
        (Some('['), Some(':')) => {
            let Some((name, after)) = letters.as_str().split_once(":]") else {
                return Ok(None);
            };
            let found = head(rest, after);
            if POSIX.contains(&name.strip_prefix('^').unwrap_or(name)) {
                Ok(Some((found.to_owned(), after)))
            } else {
                Err(error(code, found))
            }
        }
        (Some('\\'), Some('p' | 'P')) => {
            let after = match letters.next() {
                Some('{') => letters.as_str().split_once('}').map(|(_, after)| after),
                _ => Some(letters.as_str()),
            };
            let Some(after) = after else {
                return Err(error(code, rest));
            };
            let found = head(rest, after);
            if Regex::new(found).is_ok() {
                Ok(Some((found.to_owned(), after)))
            } else {
                Err(error(code, found))
            }
        }
        (Some('\\'), Some(letter)) => {
            let inside = PERL.iter().find(|(name, _)| *name == letter);
            Ok(inside.map(|(_, inside)| ((*inside).to_owned(), letters.as_str())))
        }
        _ => Ok(None),
    }
}

/// Reads an escape sequence for one character.
///
/// Upstream: `parseEscape`
fn escaped(rest: &str) -> Result<(char, &str), String> {
    let mut letters = rest[1..].chars();
    let Some(letter) = letters.next() else {
        return Err(error("trailing backslash at end of expression", ""));
    };
    let mut after = letters.as_str();
    let is_octal = |text: &str| text.starts_with(|letter| ('0'..='7').contains(&letter));
    let found = match letter {
        'a' => Some('\x07'),
        'f' => Some('\x0c'),
        'n' => Some('\n'),
        'r' => Some('\r'),
        't' => Some('\t'),
        'v' => Some('\x0b'),
        'x' => {
            let found;
            (found, after) = hexadecimal(after);
            found
        }
        '0' | '1'..='7' if letter == '0' || is_octal(after) => {
            let digits = after.bytes().take(2);
            let digits = digits
                .take_while(|digit| (b'0'..=b'7').contains(digit))
                .count();
            let text = format!("{letter}{}", &after[..digits]);
            after = &after[digits..];
            u32::from_str_radix(&text, 8).ok().and_then(char::from_u32)
        }
        _ if letter.is_ascii() && !letter.is_ascii_alphanumeric() => Some(letter),
        _ => None,
    };
    match found {
        Some(found) => Ok((found, after)),
        None => Err(error("invalid escape sequence", head(rest, after))),
    }
}

/// Reads the number of a character, and returns the rest behind it or behind the first wrong letter.
fn hexadecimal(rest: &str) -> (Option<char>, &str) {
    let (is_braced, mut number, mut count) = (rest.starts_with('{'), 0, 0);
    let mut letters = rest[usize::from(is_braced)..].chars();
    for letter in letters.by_ref() {
        match letter.to_digit(16) {
            Some(digit) => number = number * 16 + digit,
            None if letter == '}' && is_braced && count > 0 => break,
            None => return (None, letters.as_str()),
        }
        count += 1;
        if number > u32::from(char::MAX) {
            return (None, letters.as_str());
        }
        if count == 2 && !is_braced {
            break;
        }
    }
    let found = char::from_u32(number).unwrap_or(char::REPLACEMENT_CHARACTER);
    let is_complete = count == 2 || is_braced && rest.contains('}');
    (is_complete.then_some(found), letters.as_str())
}

/// Reads a count such as `{1,3}`; the larger bound, or a number beyond the largest count if it is
/// out of bounds. Returns `None` for a brace that stands for itself.
///
/// Upstream: `parseRepeat`
fn count(rest: &str) -> Option<(u32, &str)> {
    let (inside, after) = rest.strip_prefix('{')?.split_once('}')?;
    let number = |text: &str| {
        let is_number = text.bytes().all(|digit| digit.is_ascii_digit()) && !text.is_empty();
        let has_zeros = text.len() > 1 && text.starts_with('0');
        (is_number && !has_zeros).then(|| text.parse().unwrap_or(u32::MAX))
    };
    let (min, max) = match inside.split_once(',') {
        None => (number(inside)?, None),
        Some((min, "")) => (number(min)?, None),
        Some((min, max)) => (number(min)?, Some(number(max)?)),
    };
    let count = match max {
        Some(max) if min > max => u32::MAX,
        Some(max) => max,
        None => min,
    };
    Some((count, after))
}
