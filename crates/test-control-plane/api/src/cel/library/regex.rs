//! Searches by patterns.
//!
//! Upstream: `Regex` of `k8s.io/apiserver/pkg/cel/library`

use cel::common::types::{CelBool, CelInt, CelList, CelString};
use cel::common::value::Val;
use cel::{DeclarationError, Env, ExecutionError, add_member_overload, add_overload};
use regex::Regex;

use crate::go::pattern;

/// The function behind `matches`, whose patterns have Go's syntax.
pub(in crate::cel) const MATCHES: &str = "@matches";

pub(super) fn add(environment: &mut Env) -> Result<(), DeclarationError> {
    add_overload!(environment,
        fn is_match: (CelString<'_>, CelString<'_>) -> Result<CelBool>, name = "@matches")?;
    add_member_overload!(environment, fn find: (CelString<'_>, CelString<'_>) -> Result<CelString<'_>>)?;
    add_member_overload!(environment, fn find_all: (CelString<'_>, CelString<'_>) -> Result<CelList<'_>>)?;
    add_member_overload!(environment,
        fn find_some: (CelString<'_>, CelString<'_>, CelInt) -> Result<CelList<'_>>, name = "findAll")
}

fn is_match(text: &CelString<'_>, source: &CelString<'_>) -> Result<CelBool, ExecutionError> {
    let pattern = pattern::compile(source.inner());
    let pattern = pattern.map_err(|error| ExecutionError::function_error("matches", error))?;
    Ok(pattern.is_match(text.inner()).into())
}

fn compile(source: &CelString<'_>) -> Result<Regex, ExecutionError> {
    pattern::compile(source.inner()).map_err(|error| {
        let text = format!("Illegal regex: {error}");
        ExecutionError::function_error("find", text)
    })
}

fn find<'v>(
    text: &CelString<'v>,
    pattern: &CelString<'v>,
) -> Result<CelString<'v>, ExecutionError> {
    let pattern = compile(pattern)?;
    let found = pattern.find(text.inner());
    let found = found.map_or("", |found| found.as_str());
    Ok(CelString::from(found.to_owned()))
}

fn find_all<'v>(
    text: &CelString<'v>,
    pattern: &CelString<'v>,
) -> Result<CelList<'v>, ExecutionError> {
    matches(text, pattern, usize::MAX)
}

/// Finds up to `most` matches; all if it is negative.
#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "the signature of an overload"
)]
fn find_some<'v>(
    text: &CelString<'v>,
    pattern: &CelString<'v>,
    most: &CelInt,
) -> Result<CelList<'v>, ExecutionError> {
    let most = usize::try_from(*most.inner()).unwrap_or(usize::MAX);
    matches(text, pattern, most)
}

fn matches<'v>(
    text: &CelString<'v>,
    pattern: &CelString<'v>,
    most: usize,
) -> Result<CelList<'v>, ExecutionError> {
    let pattern = compile(pattern)?;
    let found: Vec<Box<dyn Val + 'v>> = pattern
        .find_iter(text.inner())
        .take(most)
        .map(|found| -> Box<dyn Val + 'v> { Box::new(CelString::from(found.as_str().to_owned())) })
        .collect();
    Ok(CelList::from(found))
}
