//! Semantic versions.
//!
//! Upstream: `SemverLib` of `k8s.io/apiserver/pkg/cel/library`

use std::any::Any;

use cel::common::types::{CelBool, CelInt, CelString, Type};
use cel::common::value::{StaticVal, Val};
use cel::{DeclarationError, Env, ExecutionError, add_member_overload, add_overload};

use crate::go::semver::Semver;

opaque!(Semver, SEMVER, "kubernetes.Semver");

pub(super) fn add(environment: &mut Env) -> Result<(), DeclarationError> {
    environment.add_type(SEMVER.to_owned())?;
    add_overload!(environment, fn read: (CelString<'_>) -> Result<Semver>, name = "semver")?;
    add_overload!(environment,
        fn read_loosely: (CelString<'_>, CelBool) -> Result<Semver>, name = "semver")?;
    add_overload!(environment, fn is_semver: (CelString<'_>) -> CelBool)?;
    add_overload!(environment,
        fn is_loosely: (CelString<'_>, CelBool) -> CelBool, name = "isSemver")?;
    add_member_overload!(environment, fn major: (Semver) -> CelInt)?;
    add_member_overload!(environment, fn minor: (Semver) -> CelInt)?;
    add_member_overload!(environment, fn patch: (Semver) -> CelInt)?;
    add_member_overload!(environment, fn compare_to: (Semver, Semver) -> CelInt)?;
    add_member_overload!(environment, fn is_greater_than: (Semver, Semver) -> CelBool)?;
    add_member_overload!(environment, fn is_less_than: (Semver, Semver) -> CelBool)
}

fn parse(text: &str, is_loose: bool) -> Result<Semver, String> {
    if is_loose {
        Semver::parse_loosely(text)
    } else {
        Semver::parse(text)
    }
}

fn read_as(text: &str, is_loose: bool) -> Result<Semver, ExecutionError> {
    parse(text, is_loose).map_err(|error| ExecutionError::function_error("semver", error))
}

fn read(text: &CelString<'_>) -> Result<Semver, ExecutionError> {
    read_as(text.inner(), false)
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "functions get references"
)]
fn read_loosely(text: &CelString<'_>, is_loose: &CelBool) -> Result<Semver, ExecutionError> {
    read_as(text.inner(), *is_loose.inner())
}

fn is_semver(text: &CelString<'_>) -> CelBool {
    parse(text.inner(), false).is_ok().into()
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "functions get references"
)]
fn is_loosely(text: &CelString<'_>, is_loose: &CelBool) -> CelBool {
    parse(text.inner(), *is_loose.inner()).is_ok().into()
}

/// Returns a number as CEL's, which is signed.
fn number(of: u64) -> CelInt {
    CelInt::from(of.cast_signed())
}

fn major(of: &Semver) -> CelInt {
    number(of.numbers[0])
}

fn minor(of: &Semver) -> CelInt {
    number(of.numbers[1])
}

fn patch(of: &Semver) -> CelInt {
    number(of.numbers[2])
}

fn compare_to(one: &Semver, other: &Semver) -> CelInt {
    CelInt::from(one.compare(other) as i64)
}

fn is_greater_than(one: &Semver, other: &Semver) -> CelBool {
    one.compare(other).is_gt().into()
}

fn is_less_than(one: &Semver, other: &Semver) -> CelBool {
    one.compare(other).is_lt().into()
}
