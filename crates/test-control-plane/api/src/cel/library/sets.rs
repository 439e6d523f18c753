//! Lists as sets.
//!
//! Upstream: `Sets` of `cel-go/ext`

use cel::common::types::{CelBool, CelList};
use cel::{DeclarationError, Env, add_overload};

pub(super) fn add(environment: &mut Env) -> Result<(), DeclarationError> {
    add_overload!(environment, fn contains: (CelList<'_>, CelList<'_>) -> CelBool, name = "sets.contains")?;
    add_overload!(environment, fn equivalent: (CelList<'_>, CelList<'_>) -> CelBool, name = "sets.equivalent")?;
    add_overload!(environment, fn intersects: (CelList<'_>, CelList<'_>) -> CelBool, name = "sets.intersects")
}

/// Returns true if the first list has all elements of the second.
fn has_all(one: &CelList<'_>, other: &CelList<'_>) -> bool {
    let mut wanted = other.inner().iter();
    wanted.all(|element| {
        let mut found = one.inner().iter();
        found.any(|found| found.equals(element.as_ref()))
    })
}

fn contains(one: &CelList<'_>, other: &CelList<'_>) -> CelBool {
    has_all(one, other).into()
}

fn equivalent(one: &CelList<'_>, other: &CelList<'_>) -> CelBool {
    (has_all(one, other) && has_all(other, one)).into()
}

fn intersects(one: &CelList<'_>, other: &CelList<'_>) -> CelBool {
    let mut elements = one.inner().iter();
    let is_shared = elements.any(|element| {
        let mut found = other.inner().iter();
        found.any(|found| element.equals(found.as_ref()))
    });
    is_shared.into()
}
