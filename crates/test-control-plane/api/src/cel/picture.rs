//! Faults in words, with a picture of the place.
//!
//! Upstream: `ToDisplayString` of cel-go

use super::check::Fault;

/// The place of a fault: line and column, both from 1, the column in characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Place {
    pub(super) line: usize,
    pub(super) column: usize,
}

impl Place {
    /// Returns the place of a byte of the source.
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

/// Returns all faults in the order of their places.
pub(super) fn draw(source: &str, faults: &[Fault], place_of: impl Fn(&Fault) -> Place) -> String {
    let mut placed: Vec<(Place, &str)> = faults
        .iter()
        .map(|fault| (place_of(fault), fault.text.as_str()))
        .collect();
    placed.sort_by_key(|(place, _)| *place);
    let drawn: Vec<String> = placed
        .into_iter()
        .map(|(place, text)| one(source, place, text))
        .collect();
    drawn.join("\n")
}

/// Returns one fault with its line of the source and a mark below it.
pub(super) fn one(source: &str, place: Place, text: &str) -> String {
    let Place { line, column } = place;
    let mut drawn = format!("ERROR: <input>:{line}:{column}: {text}");
    let Some(shown) = source.split('\n').nth(line - 1) else {
        return drawn;
    };
    drawn.push_str("\n | ");
    drawn.push_str(&shown.replace('\t', " "));
    let mut mark = String::new();
    let mut letters = shown.chars();
    for letter in letters.by_ref().take(column.saturating_sub(1)) {
        mark.push(if letter.is_ascii() { '.' } else { '\u{ff0e}' });
    }
    let is_wide = letters.next().is_some_and(|letter| !letter.is_ascii());
    mark.push(if is_wide { '\u{ff3e}' } else { '^' });
    drawn.push_str("\n | ");
    drawn.push_str(&mark);
    drawn
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mark_is_below_the_place() {
        let source = "true &&\n'é' == 1";
        let place = Place::of(source, 13);
        assert_eq!((place.line, place.column), (2, 5));
        assert_eq!(
            one(source, place, "wrong"),
            "ERROR: <input>:2:5: wrong\n | 'é' == 1\n | .\u{ff0e}..^"
        );
    }
}
