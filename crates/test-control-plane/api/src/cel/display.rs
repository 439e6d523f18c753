//! Error messages with the source line and a caret.
//!
//! Upstream: `ToDisplayString` of cel-go

use super::check::Fault;

/// The location of a fault: line and column, both from 1, the column in characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Location {
    pub(super) line: usize,
    pub(super) column: usize,
}

impl Location {
    /// Returns the location of a byte of the source.
    pub(super) fn of(source: &str, byte: usize) -> Self {
        let (mut line, mut column) = (1, 1);
        let before = source.char_indices().take_while(|(at, _)| *at < byte);
        for (_, letter) in before {
            if letter == '\n' {
                (line, column) = (line + 1, 1);
            } else {
                column += 1;
            }
        }
        Self { line, column }
    }
}

/// Returns all faults in the order of their locations.
pub(super) fn to_display_string(
    source: &str,
    faults: &[Fault],
    location_of: impl Fn(&Fault) -> Location,
) -> String {
    let mut located: Vec<(Location, &str)> = faults
        .iter()
        .map(|fault| (location_of(fault), fault.text.as_str()))
        .collect();
    located.sort_by_key(|(location, _)| *location);
    let shown: Vec<String> = located
        .into_iter()
        .map(|(location, text)| one(source, location, text))
        .collect();
    shown.join("\n")
}

/// Returns one fault with its line of the source and a caret below it.
pub(super) fn one(source: &str, location: Location, text: &str) -> String {
    let Location { line, column } = location;
    let mut message = format!("ERROR: <input>:{line}:{column}: {text}");
    let Some(shown) = source.split('\n').nth(line - 1) else {
        return message;
    };
    message.push_str("\n | ");
    message.push_str(&shown.replace('\t', " "));
    let mut mark = String::new();
    let mut letters = shown.chars();
    for letter in letters.by_ref().take(column.saturating_sub(1)) {
        mark.push(if letter.is_ascii() { '.' } else { '\u{ff0e}' });
    }
    let is_wide = letters.next().is_some_and(|letter| !letter.is_ascii());
    mark.push(if is_wide { '\u{ff3e}' } else { '^' });
    message.push_str("\n | ");
    message.push_str(&mark);
    message
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn caret_is_below_the_location() {
        let source = "true &&\n'é' == 1";
        let location = Location::of(source, 13);
        assert_eq!((location.line, location.column), (2, 5));
        assert_eq!(
            one(source, location, "wrong"),
            "ERROR: <input>:2:5: wrong\n | 'é' == 1\n | .\u{ff0e}..^"
        );
    }
}
