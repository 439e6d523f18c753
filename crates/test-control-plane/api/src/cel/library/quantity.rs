//! Quantities of resources.
//!
//! Upstream: `Quantity` of `k8s.io/apiserver/pkg/cel/library`

use std::any::Any;

use cel::common::types::{CelBool, CelDouble, CelInt, CelString, Type};
use cel::common::value::{StaticVal, Val};
use cel::{DeclarationError, Env, ExecutionError, add_member_overload, add_overload};
use kube_apimachinery::quantity;

/// A quantity.
#[derive(Clone, Debug, PartialEq)]
struct Quantity(quantity::Quantity);

opaque!(Quantity, TYPE, "kubernetes.Quantity");

pub(super) fn add(environment: &mut Env) -> Result<(), DeclarationError> {
    environment.add_type(TYPE.to_owned())?;
    add_overload!(environment, fn read: (CelString<'_>) -> Result<Quantity>, name = "quantity")?;
    add_overload!(environment, fn is_quantity: (CelString<'_>) -> CelBool)?;
    add_member_overload!(environment, fn sign: (Quantity) -> CelInt)?;
    add_member_overload!(environment, fn is_integer: (Quantity) -> CelBool)?;
    add_member_overload!(environment, fn as_integer: (Quantity) -> Result<CelInt>)?;
    add_member_overload!(environment, fn as_approximate_float: (Quantity) -> CelDouble)?;
    add_member_overload!(environment, fn compare_to: (Quantity, Quantity) -> CelInt)?;
    add_member_overload!(environment, fn is_greater_than: (Quantity, Quantity) -> CelBool)?;
    add_member_overload!(environment, fn is_less_than: (Quantity, Quantity) -> CelBool)?;
    add_member_overload!(environment, fn add_to: (Quantity, Quantity) -> Result<Quantity>, name = "add")?;
    add_member_overload!(environment, fn add_int: (Quantity, CelInt) -> Result<Quantity>, name = "add")?;
    add_member_overload!(environment, fn sub: (Quantity, Quantity) -> Result<Quantity>)?;
    add_member_overload!(environment, fn sub_int: (Quantity, CelInt) -> Result<Quantity>, name = "sub")
}

fn written(sum: Option<quantity::Quantity>) -> Result<Quantity, ExecutionError> {
    let text = "quantities differ too much in scale to be added";
    sum.map(Quantity)
        .ok_or_else(|| ExecutionError::function_error("add", text))
}

fn add_to(one: &Quantity, other: &Quantity) -> Result<Quantity, ExecutionError> {
    written(one.0.checked_add(&other.0))
}

fn sub(one: &Quantity, other: &Quantity) -> Result<Quantity, ExecutionError> {
    written(one.0.checked_sub(&other.0))
}

/// Returns an integer as a quantity.
fn of_int(of: CelInt) -> Result<Quantity, ExecutionError> {
    read(&CelString::from(of.inner().to_string()))
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "functions get references"
)]
fn add_int(one: &Quantity, other: &CelInt) -> Result<Quantity, ExecutionError> {
    add_to(one, &of_int(*other)?)
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "functions get references"
)]
fn sub_int(one: &Quantity, other: &CelInt) -> Result<Quantity, ExecutionError> {
    sub(one, &of_int(*other)?)
}

fn read(text: &CelString<'_>) -> Result<Quantity, ExecutionError> {
    let found: Result<quantity::Quantity, _> = text.inner().parse();
    found
        .map(Quantity)
        .map_err(|error| ExecutionError::function_error("quantity", error))
}

fn is_quantity(text: &CelString<'_>) -> CelBool {
    text.inner().parse::<quantity::Quantity>().is_ok().into()
}

fn sign(of: &Quantity) -> CelInt {
    let order = of.0.cmp(&quantity::Quantity::default());
    CelInt::from(order as i64)
}

/// Returns the whole number, if the quantity is one.
fn whole(of: &Quantity) -> Option<i64> {
    let value = of.0.value();
    let same: quantity::Quantity = value.to_string().parse().ok()?;
    (same == of.0).then_some(value)
}

fn is_integer(of: &Quantity) -> CelBool {
    whole(of).is_some().into()
}

fn as_integer(of: &Quantity) -> Result<CelInt, ExecutionError> {
    let text = "cannot convert value to integer";
    let found = whole(of).map(CelInt::from);
    found.ok_or_else(|| ExecutionError::function_error("asInteger", text))
}

#[expect(
    clippy::cast_precision_loss,
    reason = "the function's name says that it approximates"
)]
fn as_approximate_float(of: &Quantity) -> CelDouble {
    let value = match whole(of) {
        Some(value) => value as f64,
        None => of.0.milli_value() as f64 / 1000.0,
    };
    CelDouble::from(value)
}

fn compare_to(one: &Quantity, other: &Quantity) -> CelInt {
    CelInt::from(one.0.cmp(&other.0) as i64)
}

fn is_greater_than(one: &Quantity, other: &Quantity) -> CelBool {
    (one.0 > other.0).into()
}

fn is_less_than(one: &Quantity, other: &Quantity) -> CelBool {
    (one.0 < other.0).into()
}
