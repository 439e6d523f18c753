//! Functions of lists.
//!
//! Upstream: `Lists` of `k8s.io/apiserver/pkg/cel/library`

use std::cmp::Ordering;

use cel::common::types::{CelBool, CelInt, CelList, DYN_TYPE, LIST_TYPE};
use cel::common::value::{CowVal, Val};
use cel::{DeclarationError, Env, ExecutionError, add_member_overload};

type Answer<'b, 'v> = Result<CowVal<'b, 'v>, ExecutionError>;

pub(super) fn add(environment: &mut Env) -> Result<(), DeclarationError> {
    add_member_overload!(environment, fn is_sorted: (CelList<'_>) -> Result<CelBool>)?;
    // The macro has no type for elements.
    let mut add = |name: &str, parameters, function| {
        let id = format!("list_{name}");
        environment.add_member_overload(name, &id, LIST_TYPE, parameters, function)
    };
    add("sum", Vec::new(), |arguments| sum(list(&arguments)?))?;
    add("min", Vec::new(), |arguments| {
        extreme(list(&arguments)?, "min", Ordering::Less)
    })?;
    add("max", Vec::new(), |arguments| {
        extreme(list(&arguments)?, "max", Ordering::Greater)
    })?;
    add("indexOf", vec![DYN_TYPE], |arguments| {
        let mut elements = list(&arguments)?.inner().iter();
        let wanted = element(&arguments)?;
        Ok(number(elements.position(|found| found.equals(wanted))))
    })?;
    add("lastIndexOf", vec![DYN_TYPE], |arguments| {
        let mut elements = list(&arguments)?.inner().iter();
        let wanted = element(&arguments)?;
        Ok(number(elements.rposition(|found| found.equals(wanted))))
    })
}

/// Returns the list that a method is called on.
pub(super) fn list<'r, 'v>(
    arguments: &'r [CowVal<'_, 'v>],
) -> Result<&'r CelList<'v>, ExecutionError> {
    let list = arguments.first();
    let list = list.and_then(|list| list.downcast_ref::<CelList<'v>>());
    list.ok_or_else(ExecutionError::missing_argument_or_target)
}

/// Returns the argument of a method.
fn element<'r, 'v>(arguments: &'r [CowVal<'_, 'v>]) -> Result<&'r (dyn Val + 'v), ExecutionError> {
    let found = arguments.get(1).map(|argument| &**argument);
    found.ok_or_else(ExecutionError::missing_argument_or_target)
}

fn compare(one: &dyn Val, other: &dyn Val) -> Result<Ordering, ExecutionError> {
    let comparer = one.as_comparer();
    comparer
        .ok_or_else(|| ExecutionError::function_error("compare", "no such overload"))?
        .compare(other)
}

fn is_sorted(list: &CelList<'_>) -> Result<CelBool, ExecutionError> {
    for pair in list.inner().windows(2) {
        if let [one, other] = pair
            && compare(one.as_ref(), other.as_ref())? == Ordering::Greater
        {
            return Ok(false.into());
        }
    }
    Ok(true.into())
}

/// Adds elements, by their own addition. The sum of none is 0.
fn sum<'b, 'v>(list: &CelList<'v>) -> Answer<'b, 'v> {
    let Some((first, rest)) = list.inner().split_first() else {
        return Ok(CowVal::owned(CelInt::from(0)));
    };
    let mut total = first.clone_as_boxed();
    for element in rest {
        let adder = total.as_adder();
        let adder =
            adder.ok_or_else(|| ExecutionError::function_error("sum", "no such overload"))?;
        total = adder.add(element.as_ref())?.into_owned();
    }
    Ok(CowVal::Owned(total))
}

fn extreme<'b, 'v>(list: &CelList<'v>, name: &str, wanted: Ordering) -> Answer<'b, 'v> {
    let Some((mut found, rest)) = list.inner().split_first() else {
        let text = format!("{name} called on empty list");
        return Err(ExecutionError::function_error(name, text));
    };
    for element in rest {
        if compare(element.as_ref(), found.as_ref())? == wanted {
            found = element;
        }
    }
    Ok(CowVal::Owned(found.clone_as_boxed()))
}

/// Returns an index; -1 if there is none.
fn number<'b, 'v>(index: Option<usize>) -> CowVal<'b, 'v> {
    let index = index.and_then(|index| i64::try_from(index).ok());
    CowVal::owned(CelInt::from(index.unwrap_or(-1)))
}
