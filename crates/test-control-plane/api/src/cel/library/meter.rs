//! The cost of an evaluation, counted while it runs.
//!
//! Upstream: `CostTracker` of cel-go

use std::any::Any;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use cel::common::types::{CelInt, DYN_TYPE, INT_TYPE, Type};
use cel::common::value::{CowVal, StaticVal, Val};
use cel::{DeclarationError, Env, ExecutionError};

/// The name of the function that counts: it takes a meter, a number and a value, and returns the
/// value.
pub(in crate::cel) const CHARGE: &str = "@charge";

/// The variable with the meter.
pub(in crate::cel) const METER: &str = "@meter";

/// The error of an evaluation that costs too much.
pub(crate) const LIMIT_EXCEEDED: &str = "operation cancelled: actual cost limit exceeded";

/// The largest cost of an evaluation.
///
/// Upstream: `PerCallLimit`
const LIMIT: u64 = 1_000_000;

/// The cost of an evaluation so far.
#[derive(Clone, Debug, Default)]
pub(in crate::cel) struct Meter(Arc<AtomicU64>);

impl PartialEq for Meter {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

opaque!(Meter, TYPE, "@meter");

impl Meter {
    /// Adds a cost. Returns false if the limit is exceeded.
    pub(in crate::cel) fn charge(&self, cost: u64) -> bool {
        let before = self.0.fetch_add(cost, Ordering::Relaxed);
        before.saturating_add(cost) <= LIMIT
    }

    /// Returns the cost.
    pub(in crate::cel) fn spent(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    /// Returns true if the limit is exceeded.
    pub(in crate::cel) fn is_exceeded(&self) -> bool {
        self.spent() > LIMIT
    }
}

pub(super) fn add(environment: &mut Env) -> Result<(), DeclarationError> {
    let parameters = vec![TYPE.to_owned(), INT_TYPE, DYN_TYPE];
    environment.add_overload(CHARGE, "charge", parameters, charge)
}

fn charge<'b, 'v>(arguments: Vec<CowVal<'b, 'v>>) -> Result<CowVal<'b, 'v>, ExecutionError> {
    let mut arguments = arguments.into_iter();
    let (Some(meter), Some(cost), Some(value)) =
        (arguments.next(), arguments.next(), arguments.next())
    else {
        return Err(ExecutionError::missing_argument_or_target());
    };
    let cost = cost
        .downcast_ref::<CelInt>()
        .map_or(0, |cost| *cost.inner());
    let meter = meter.downcast_ref::<Meter>();
    if meter.is_none_or(|meter| meter.charge(cost.unsigned_abs())) {
        return Ok(value);
    }
    Err(ExecutionError::function_error(CHARGE, LIMIT_EXCEEDED))
}
