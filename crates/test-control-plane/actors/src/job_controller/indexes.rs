//! Sets of indexes as text: `1,3-5`.

use std::collections::BTreeSet;

/// Reads a set; parts that are no indexes are skipped.
///
/// Upstream: `parseIndexesFromString`
pub(super) fn parse(text: &str, count: u32) -> BTreeSet<u32> {
    let mut found = BTreeSet::new();
    for part in text.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        if let (Ok(first), Ok(last)) = (first.parse::<u32>(), last.parse::<u32>()) {
            found.extend((first..=last).take_while(|index| *index < count));
        }
    }
    found
}

/// Prints a set. Three or more indexes in a row are a range.
///
/// Upstream: `orderedIntervals`
pub(super) fn print(indexes: &BTreeSet<u32>) -> String {
    let mut ranges: Vec<(u32, u32)> = Vec::new();
    for index in indexes {
        match ranges.last_mut() {
            Some((_, last)) if *last + 1 == *index => *last = *index,
            _ => ranges.push((*index, *index)),
        }
    }
    let range = |(first, last): (u32, u32)| match last - first {
        0 => first.to_string(),
        1 => format!("{first},{last}"),
        _ => format!("{first}-{last}"),
    };
    ranges.into_iter().map(range).collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn indexes_print_and_parse_back() {
        for text in ["", "0", "1,2", "1,3-5,7"] {
            assert_eq!(print(&parse(text, 10)), text);
        }
        assert_eq!(print(&parse("x,3-9,1", 6)), "1,3-5");
    }
}
