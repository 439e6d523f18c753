//! JSON values as slices of a shared text.

use std::borrow::Cow;
use std::ops::Range;

use serde_json::value::RawValue;
use statefulset_client::cache::indexer::SharedText;

/// A JSON value within a larger text.
#[derive(Clone, Debug)]
pub(super) struct Part {
    whole: SharedText,
    range: Range<usize>,
}

impl Part {
    /// Wraps a complete text.
    pub(super) fn whole(text: impl Into<SharedText>) -> Self {
        let whole = text.into();
        let range = 0..whole.len();
        Self { whole, range }
    }

    /// Slices the value `part` from `whole`; copies it if it belongs to another text.
    pub(super) fn of(whole: &SharedText, part: &RawValue) -> Self {
        let (text, part) = (whole.to_str(), part.get());
        let start = part.as_ptr().addr().checked_sub(text.as_ptr().addr());
        let range = start.map(|start| start..start + part.len());
        match range {
            Some(range) if text.get(range.clone()) == Some(part) => Self {
                whole: whole.clone(),
                range,
            },
            _ => Self::whole(part),
        }
    }

    /// Text of the value.
    pub(super) fn to_str(&self) -> Cow<'_, str> {
        self.whole.get(self.range.clone())
    }

    /// Length of the value's text in bytes.
    pub(super) fn len(&self) -> usize {
        self.range.len()
    }

    /// Returns the value as a slice of `form`, if it is a slice of `whole`.
    pub(super) fn moved(&self, whole: &SharedText, form: &SharedText) -> Self {
        let is_part = self.whole.is_same(whole);
        Self {
            whole: if is_part { form } else { &self.whole }.clone(),
            range: self.range.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_share_their_text_and_copy_foreign_ones() {
        let whole = SharedText::from(r#"{"a":{"b":1},"c":2}"#);
        let text = whole.to_str();
        let members: std::collections::BTreeMap<&str, &RawValue> =
            serde_json::from_str(&text).unwrap();
        for (name, text) in [("a", r#"{"b":1}"#), ("c", "2")] {
            let part = Part::of(&whole, members[name]);
            assert_eq!(part.to_str(), text);
            assert!(part.whole.is_same(&whole), "{name}");
        }
        let other = SharedText::from("{}");
        let part = Part::of(&other, members["a"]);
        assert_eq!(part.to_str(), r#"{"b":1}"#);
    }
}
