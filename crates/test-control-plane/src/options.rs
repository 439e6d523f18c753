//! Options of writes and deletes, from query and body.

use serde_json::{Value, json};

use crate::query::Query;
use crate::status::{ApiError, ApiResult};
use crate::validation::FieldError;

/// The longest name of a field manager, in bytes.
const FIELD_MANAGER_MAX: usize = 128;

/// How strictly unknown and repeated fields of a body are taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FieldValidation {
    /// Refuse the request.
    Strict,
    /// Warn about them.
    Warn,
    /// The client doesn't say: warn about what gets lost.
    Unasked,
    /// Say nothing.
    Ignore,
}

/// Options of creates, updates and patches.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WriteOptions {
    /// Do everything but store.
    pub dry_run: bool,
    /// What to do about unknown fields.
    pub field_validation: FieldValidation,
}

impl WriteOptions {
    /// Reads them from a query; `options` is their kind, such as `CreateOptions`.
    ///
    /// # Errors
    ///
    /// 422 for a value that isn't allowed.
    pub(crate) fn parse(options: &str, query: &Query) -> ApiResult<Self> {
        let dry_run = dry_run(options, query.get("dryRun"))?;
        if query
            .get("fieldManager")
            .is_some_and(|m| m.len() > FIELD_MANAGER_MAX)
        {
            let detail = format!("may not be more than {FIELD_MANAGER_MAX} bytes");
            let error = FieldError::too_long("fieldManager", &detail);
            return Err(ApiError::invalid_options(options, error));
        }
        let field_validation = match query.get("fieldValidation") {
            None => FieldValidation::Unasked,
            Some("Warn") => FieldValidation::Warn,
            Some("Strict") => FieldValidation::Strict,
            Some("Ignore") => FieldValidation::Ignore,
            Some(other) => {
                let known = ["", "Ignore", "Strict", "Warn"];
                let error = FieldError::not_supported("fieldValidation", &json!(other), &known);
                return Err(ApiError::invalid_options(options, error));
            }
        };
        Ok(Self {
            dry_run,
            field_validation,
        })
    }
}

fn dry_run(options: &str, value: Option<&str>) -> ApiResult<bool> {
    match value {
        None => Ok(false),
        Some("All") => Ok(true),
        Some(other) => {
            let error = FieldError::not_supported("dryRun", &json!([other]), &["All"]);
            Err(ApiError::invalid_options(options, error))
        }
    }
}

/// What happens to the dependents of a deleted object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Propagation {
    /// They stay, without the reference.
    Orphan,
    /// They are deleted after it.
    Background,
    /// They are deleted before it.
    Foreground,
}

/// Options of a deletion.
#[derive(Clone, Debug, Default)]
pub(crate) struct DeleteOptions {
    /// The grace period asked for, in seconds.
    pub grace_period_seconds: Option<i64>,
    /// What to do with dependents; none leaves it to the object's finalizers.
    pub propagation: Option<Propagation>,
    /// Delete only this object.
    pub uid: Option<String>,
    /// Delete only this version.
    pub resource_version: Option<String>,
    /// Do everything but delete.
    pub dry_run: bool,
}

impl DeleteOptions {
    /// Reads them from the body, or from the query where the body is empty.
    ///
    /// # Errors
    ///
    /// 422 for values that aren't allowed or don't go together.
    pub(crate) fn parse(query: &Query, body: &Value) -> ApiResult<Self> {
        let invalid = |error| ApiError::invalid_options("DeleteOptions", error);
        let text = |member: &str| -> Option<String> {
            let value = body.get(member).and_then(Value::as_str);
            value.or_else(|| query.get(member)).map(str::to_owned)
        };
        let orphan = match body.get("orphanDependents") {
            Some(Value::Bool(orphan)) => Some(*orphan),
            _ => query.get("orphanDependents").map(|v| v == "true"),
        };
        let policy = text("propagationPolicy");
        if orphan.is_some() && policy.is_some() {
            return Err(invalid(FieldError::invalid(
                "propagationPolicy",
                &json!(policy),
                "orphanDependents and deletionPropagation cannot be both set",
            )));
        }
        let propagation = match (orphan, policy.as_deref()) {
            (Some(true), _) | (None, Some("Orphan")) => Some(Propagation::Orphan),
            (Some(false), _) | (None, Some("Background")) => Some(Propagation::Background),
            (None, Some("Foreground")) => Some(Propagation::Foreground),
            (None, None) => None,
            (None, Some(other)) => {
                let known = ["Foreground", "Background", "Orphan", "nil"];
                let error = FieldError::not_supported("propagationPolicy", &json!(other), &known);
                return Err(invalid(error));
            }
        };
        let grace = body.get("gracePeriodSeconds").and_then(Value::as_i64);
        let dry = body.pointer("/dryRun/0").and_then(Value::as_str);
        let precondition = |member: &str| -> Option<String> {
            let value = body.get("preconditions")?.get(member)?.as_str()?;
            Some(value.to_owned())
        };
        Ok(Self {
            grace_period_seconds: match grace {
                Some(seconds) => Some(seconds),
                None => query.integer("gracePeriodSeconds")?,
            },
            propagation,
            uid: precondition("uid"),
            resource_version: precondition("resourceVersion"),
            dry_run: dry_run("DeleteOptions", dry.or_else(|| query.get("dryRun")))?,
        })
    }
}
