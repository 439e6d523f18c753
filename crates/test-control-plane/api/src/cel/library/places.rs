//! Places of texts in others.
//!
//! Upstream: `indexOfOffset` and `lastIndexOfOffset` of cel-go's extension for strings

use cel::common::types::{CelInt, CelString};
use cel::{DeclarationError, Env, ExecutionError, add_overload};

/// The functions behind `indexOf` and `lastIndexOf` with an offset.
pub(in crate::cel) const INDEX_OF: &str = "@indexOf";
pub(in crate::cel) const LAST_INDEX_OF: &str = "@lastIndexOf";

pub(super) fn add(environment: &mut Env) -> Result<(), DeclarationError> {
    add_overload!(environment,
        fn index_of: (CelString<'_>, CelString<'_>, CelInt) -> Result<CelInt>,
        name = "@indexOf")?;
    add_overload!(environment,
        fn last_index_of: (CelString<'_>, CelString<'_>, CelInt) -> Result<CelInt>,
        name = "@lastIndexOf")
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "the signature of an overload"
)]
fn index_of(
    text: &CelString<'_>,
    part: &CelString<'_>,
    offset: &CelInt,
) -> Result<CelInt, ExecutionError> {
    found(
        text.inner(),
        part.inner(),
        *offset.inner(),
        |begins, least| begins.iter().find(|begin| **begin >= least).copied(),
    )
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "the signature of an overload"
)]
fn last_index_of(
    text: &CelString<'_>,
    part: &CelString<'_>,
    offset: &CelInt,
) -> Result<CelInt, ExecutionError> {
    found(
        text.inner(),
        part.inner(),
        *offset.inner(),
        |begins, most| begins.iter().rfind(|begin| **begin <= most).copied(),
    )
}

/// Selects one of the places, in characters, at which a part begins; -1 if there is none, and for an
/// offset beyond the text.
fn found(
    text: &str,
    part: &str,
    offset: i64,
    select: impl Fn(&[usize], usize) -> Option<usize>,
) -> Result<CelInt, ExecutionError> {
    if part.is_empty() {
        return Ok(offset.into());
    }
    let Ok(limit) = usize::try_from(offset) else {
        let text = format!("index out of range: {offset}");
        return Err(ExecutionError::function_error("indexOf", text));
    };
    let (text, part): (Vec<char>, Vec<char>) = (text.chars().collect(), part.chars().collect());
    let begins = text.windows(part.len()).enumerate();
    let begins = begins.filter(|(_, window)| *window == part.as_slice());
    let begins: Vec<usize> = begins.map(|(begin, _)| begin).collect();
    let place = Some(limit).filter(|limit| *limit < text.len());
    let place = place.and_then(|limit| select(&begins, limit));
    let place = place.and_then(|place| i64::try_from(place).ok());
    Ok(place.unwrap_or(-1).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_those_of_go() {
        let of = |text: &str| CelString::from(text.to_owned());
        for (part, offset, first, last) in [
            ("b", 0, Some(1), Some(-1)),
            ("b", 2, Some(3), Some(1)),
            ("b", 3, Some(3), Some(3)),
            ("ab", 3, Some(-1), Some(2)),
            ("b", 9, Some(-1), Some(-1)),
            ("", 9, Some(9), Some(9)),
            ("b", -1, None, None),
        ] {
            let (text, part, offset) = (of("abab"), of(part), CelInt::from(offset));
            let shown = |found: Result<CelInt, _>| found.ok().map(|found| *found.inner());
            assert_eq!(shown(index_of(&text, &part, &offset)), first);
            assert_eq!(shown(last_index_of(&text, &part, &offset)), last);
        }
    }
}
