//! Parts of an object's text, which is kept once for all of them.

use std::ops::Range;
use std::sync::Arc;

use serde_json::value::RawValue;

/// A JSON value within a larger text.
#[derive(Clone, Debug)]
pub(super) struct Part {
    whole: Arc<str>,
    range: Range<usize>,
}

impl Part {
    /// A text of its own.
    pub(super) fn whole(text: impl Into<Arc<str>>) -> Self {
        let whole = text.into();
        let range = 0..whole.len();
        Self { whole, range }
    }

    /// The value `part` of `whole`. A value of another text is copied.
    pub(super) fn of(whole: &Arc<str>, part: &RawValue) -> Self {
        let part = part.get();
        let start = part.as_ptr().addr().checked_sub(whole.as_ptr().addr());
        let range = start.map(|start| start..start + part.len());
        match range {
            Some(range) if whole.get(range.clone()) == Some(part) => Self {
                whole: Arc::clone(whole),
                range,
            },
            _ => Self::whole(part),
        }
    }

    /// The text of the value.
    pub(super) fn as_str(&self) -> &str {
        self.whole.get(self.range.clone()).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_shares_its_text_and_another_text_is_copied() {
        let whole: Arc<str> = r#"{"a":{"b":1},"c":2}"#.into();
        let members: std::collections::BTreeMap<&str, &RawValue> =
            serde_json::from_str(&whole).unwrap();
        for (name, text) in [("a", r#"{"b":1}"#), ("c", "2")] {
            let part = Part::of(&whole, members[name]);
            assert_eq!(part.as_str(), text);
            assert!(Arc::ptr_eq(&part.whole, &whole), "{name}");
        }
        let other: Arc<str> = "{}".into();
        let part = Part::of(&other, members["a"]);
        assert_eq!(part.as_str(), r#"{"b":1}"#);
    }
}
