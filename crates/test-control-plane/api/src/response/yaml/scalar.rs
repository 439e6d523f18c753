//! The styles of a string: plain, quoted or as a block of lines.

use super::resolve::is_string;

/// The style of a string.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Style {
    /// Unquoted.
    Plain,
    /// In single quotes.
    Single,
    /// In double quotes, with escapes.
    Double,
    /// As a literal block.
    Literal,
}

/// Selects the style of a string. A string that may not break is a key.
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

/// The properties of a string that rule out some styles.
///
/// Upstream: `yaml_emitter_analyze_scalar`.
struct Found {
    /// Characters that must be escaped.
    is_special: bool,
    /// Syntax that would change the meaning of the unquoted string.
    is_indicator: bool,
    /// A line that ends in a space.
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

/// Returns true if the character needs no escape. Characters beyond the first plane always need
/// one.
fn is_printable(c: char) -> bool {
    let is_break = matches!(c, '\u{2028}' | '\u{2029}');
    matches!(c, ' '..='~' | '\u{a0}'..='\u{d7ff}' | '\u{e000}'..='\u{fffd}')
        && c != '\u{feff}'
        && !is_break
}

/// Returns the escape of a character in double quotes, or `None` if it needs none. In a string that
/// begins with a byte order mark every character is escaped.
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
