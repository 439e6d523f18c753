//! How a text is written: as it is, in quotes, or in lines of its own.

use super::resolve::is_string;

/// The form of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Style {
    /// As it is.
    Plain,
    /// In single quotes.
    Single,
    /// In double quotes, with escapes.
    Double,
    /// In lines of its own.
    Literal,
}

/// The form of a text; one that may not be broken into lines is a key.
///
/// Upstream: `stringv`, `yaml_emitter_select_scalar_style`.
pub(super) fn style(text: &str, may_break: bool) -> Style {
    let found = Found::in_text(text);
    if text.contains('\n') {
        let is_literal =
            may_break && !found.is_special && !found.has_blank_before_break && !text.ends_with(' ');
        return if is_literal {
            Style::Literal
        } else {
            Style::Double
        };
    }
    if !is_string(text) || found.is_special {
        return Style::Double;
    }
    if found.is_indicator || text.starts_with(' ') || text.ends_with(' ') {
        return Style::Single;
    }
    Style::Plain
}

/// What stands in a text that not every form can hold.
///
/// Upstream: `yaml_emitter_analyze_scalar`.
struct Found {
    /// Characters that must be escaped.
    is_special: bool,
    /// What would mean something else without quotes.
    is_indicator: bool,
    /// A line that ends in a blank.
    has_blank_before_break: bool,
}

impl Found {
    fn in_text(text: &str) -> Self {
        let mut found = Self {
            is_special: false,
            is_indicator: text.starts_with("---") || text.starts_with("..."),
            has_blank_before_break: text.contains(" \n"),
        };
        let mut before = ' ';
        let mut characters = text.chars().enumerate().peekable();
        while let Some((i, c)) = characters.next() {
            let is_before_blank = characters
                .peek()
                .is_none_or(|(_, next)| matches!(next, ' ' | '\t' | '\n' | '\r'));
            found.is_indicator |= match c {
                '#' => matches!(before, ' ' | '\t' | '\n'),
                ':' => is_before_blank,
                '?' | '-' => i == 0 && is_before_blank,
                ',' | '[' | ']' | '{' | '}' | '&' | '*' | '!' | '|' | '>' | '\'' | '"' | '%'
                | '@' | '`' => i == 0,
                _ => false,
            };
            found.is_special |= c != '\n' && !is_printable(c);
            before = c;
        }
        found
    }
}

/// Whether a character is written as it is. Those beyond the first plane never are.
fn is_printable(c: char) -> bool {
    let is_break = matches!(c, '\u{2028}' | '\u{2029}');
    matches!(c, ' '..='~' | '\u{a0}'..='\u{d7ff}' | '\u{e000}'..='\u{fffd}')
        && c != '\u{feff}'
        && !is_break
}

/// The escape of a character in double quotes; none if it needs none. In a text that begins with a
/// byte order mark every character has one.
pub(super) fn escaped(c: char, has_mark: bool) -> Option<String> {
    let short = match c {
        '\0' => '0',
        '\u{7}' => 'a',
        '\u{8}' => 'b',
        '\t' => 't',
        '\n' => 'n',
        '\u{b}' => 'v',
        '\u{c}' => 'f',
        '\r' => 'r',
        '\u{1b}' => 'e',
        '"' => '"',
        '\\' => '\\',
        '\u{85}' => 'N',
        '\u{2028}' => 'L',
        '\u{2029}' => 'P',
        _ if is_printable(c) && !has_mark => return None,
        _ => {
            let code = u32::from(c);
            return Some(match code {
                0..=0xff => format!("\\x{code:02X}"),
                0x100..=0xffff => format!("\\u{code:04X}"),
                _ => format!("\\U{code:08X}"),
            });
        }
    };
    Some(format!("\\{short}"))
}
