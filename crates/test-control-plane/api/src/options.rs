//! Options of writes and deletions, from query and body.

use serde_json::{Map, Value, json};

use crate::go;
use crate::managed_fields::{check_field_manager, manager_of};
use crate::query::Query;
use crate::status::{ApiError, ApiResult, FieldError};

/// The treatment of unknown and repeated fields of a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FieldValidation {
    /// Reject the request.
    Strict,
    /// Return warnings.
    Warn,
    /// Return warnings about dropped fields.
    Unspecified,
    /// Accept silently.
    Ignore,
}

/// The type of a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Write {
    /// Create an object.
    Create,
    /// Replace it.
    Update,
    /// Patch it without apply.
    Patch,
    /// Apply a configuration to it.
    Apply,
}

impl Write {
    /// Returns the kind of the write's options.
    fn options(self) -> &'static str {
        match self {
            Self::Create => "CreateOptions",
            Self::Update => "UpdateOptions",
            Self::Patch | Self::Apply => "PatchOptions",
        }
    }
}

/// Options of creates, updates and patches.
#[derive(Clone, Debug)]
pub struct WriteOptions {
    /// Do everything except storing.
    pub dry_run: bool,
    /// The treatment of unknown fields.
    pub field_validation: FieldValidation,
    /// The manager of the changed fields; `None` keeps the managers in the object.
    pub field_manager: Option<String>,
    /// Take ownership of conflicting fields.
    pub force: bool,
    /// The options as sent, for admission.
    pub sent: Map<String, Value>,
}

impl WriteOptions {
    /// Parses the options of a query. The manager defaults to the user agent's name.
    ///
    /// # Errors
    ///
    /// 422 for values that aren't allowed.
    pub fn parse(write: Write, query: &Query, user_agent: &str) -> ApiResult<Self> {
        let mut errors = Vec::new();
        let manager = query.get("fieldManager");
        if write == Write::Apply && manager.is_none() {
            let error = FieldError::required("fieldManager", "is required for apply patch");
            errors.push(error);
        }
        if write == Write::Patch && query.has("force") {
            let detail = "may not be specified for non-apply patch";
            errors.push(FieldError::forbidden("force", detail));
        }
        let path = || "fieldManager".to_owned();
        errors.extend(check_field_manager(path, manager.unwrap_or_default()));
        let dry_run: Vec<String> = query.get("dryRun").map(str::to_owned).into_iter().collect();
        errors.extend(dry_run_error(&dry_run));
        let field_validation = match query.get("fieldValidation") {
            None => FieldValidation::Unspecified,
            Some("Warn") => FieldValidation::Warn,
            Some("Strict") => FieldValidation::Strict,
            Some("Ignore") => FieldValidation::Ignore,
            Some(other) => {
                let known = ["", "Ignore", "Strict", "Warn"];
                let error = FieldError::not_supported("fieldValidation", &json!(other), &known);
                errors.push(error);
                FieldValidation::Unspecified
            }
        };
        if !errors.is_empty() {
            let options = write.options();
            return Err(ApiError::invalid_kind(options, "meta.k8s.io", "", &errors));
        }
        let manager = manager.map_or_else(|| manager_of(user_agent), str::to_owned);
        Ok(Self {
            dry_run: !dry_run.is_empty(),
            field_validation,
            field_manager: Some(manager),
            force: query.flag("force"),
            sent: sent(query, &dry_run),
        })
    }

    /// Returns the options of the server's own writes.
    pub fn internal() -> Self {
        Self {
            dry_run: false,
            field_validation: FieldValidation::Ignore,
            field_manager: None,
            force: false,
            sent: Map::new(),
        }
    }
}

/// Returns the fields of the options of creates and updates, without empty ones.
fn sent(query: &Query, dry_run: &[String]) -> Map<String, Value> {
    let texts = ["fieldManager", "fieldValidation"].into_iter();
    let texts = texts.filter_map(|name| Some((name, json!(query.get(name)?))));
    let dry_run = Some(("dryRun", json!(dry_run)));
    let all = dry_run.into_iter().chain(texts);
    let filled = all.filter(|(_, value)| *value != "" && *value != json!([]));
    filled
        .map(|(name, value)| (name.to_owned(), value))
        .collect()
}

fn dry_run_error(values: &[String]) -> Option<FieldError> {
    let is_known = values.iter().all(|value| value == "All");
    (!is_known).then(|| FieldError::not_supported("dryRun", &json!(values), &["All"]))
}

/// The treatment of a deleted object's dependents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Propagation {
    /// Keep them, without the owner reference.
    Orphan,
    /// Delete them after the object.
    Background,
    /// Delete them before the object.
    Foreground,
}

/// Options of a deletion.
#[derive(Clone, Debug, Default)]
pub struct DeleteOptions {
    /// The requested grace period, in seconds.
    pub grace_period_seconds: Option<i64>,
    /// The treatment of dependents; `None` leaves it to the object's finalizers.
    pub propagation: Option<Propagation>,
    /// The same for namespaces, for which `orphanDependents: false` means foreground deletion.
    pub of_namespace: Option<Propagation>,
    /// Precondition: the object's uid.
    pub uid: Option<String>,
    /// Precondition: the object's resource version.
    pub resource_version: Option<String>,
    /// Do everything except deleting.
    pub dry_run: bool,
    /// The options as sent, for admission.
    pub sent: Map<String, Value>,
}

impl DeleteOptions {
    /// Parses the options from the body, or from the query if the body is empty.
    ///
    /// # Errors
    ///
    /// 422 for values that aren't allowed or that conflict, 400 for an invalid number in the query,
    /// 500 for a field of another type, as upstream responds.
    pub fn parse(query: &Query, body: &Value) -> ApiResult<Self> {
        let raw = if body.is_null() {
            Raw::of_query(query)?
        } else {
            Raw::of_body(body).map_err(ApiError::internal)?
        };
        let mut errors = Vec::new();
        if let Some(policy) = &raw.policy {
            if raw.orphan.is_some() {
                errors.push(FieldError::invalid(
                    "propagationPolicy",
                    &json!(policy),
                    "orphanDependents and deletionPropagation cannot be both set",
                ));
            }
            if !["Foreground", "Background", "Orphan"].contains(&policy.as_str()) {
                let known = ["Foreground", "Background", "Orphan", "nil"];
                let error = FieldError::not_supported("propagationPolicy", &json!(policy), &known);
                errors.push(error);
            }
        }
        errors.extend(dry_run_error(&raw.dry_run));
        if !errors.is_empty() {
            return Err(ApiError::invalid_kind(
                "DeleteOptions",
                "meta.k8s.io",
                "",
                &errors,
            ));
        }
        let propagation = match (raw.orphan, raw.policy.as_deref()) {
            (Some(true), _) | (None, Some("Orphan")) => Some(Propagation::Orphan),
            (Some(false), _) | (None, Some("Background")) => Some(Propagation::Background),
            (None, Some("Foreground")) => Some(Propagation::Foreground),
            (None, _) => None,
        };
        let of_namespace = match raw.orphan {
            Some(false) => Some(Propagation::Foreground),
            _ => propagation,
        };
        let sent = raw.members();
        Ok(Self {
            sent,
            grace_period_seconds: raw.grace_period_seconds,
            propagation,
            of_namespace,
            uid: raw.uid,
            resource_version: raw.resource_version,
            dry_run: !raw.dry_run.is_empty(),
        })
    }
}

/// Options of a deletion as sent.
#[derive(Default)]
struct Raw {
    grace_period_seconds: Option<i64>,
    orphan: Option<bool>,
    policy: Option<String>,
    uid: Option<String>,
    resource_version: Option<String>,
    dry_run: Vec<String>,
}

impl Raw {
    /// Returns the filled fields.
    fn members(&self) -> Map<String, Value> {
        let mut preconditions = Map::new();
        for (name, value) in [
            ("uid", &self.uid),
            ("resourceVersion", &self.resource_version),
        ] {
            if let Some(value) = value {
                preconditions.insert(name.to_owned(), json!(value));
            }
        }
        let members = [
            ("gracePeriodSeconds", json!(self.grace_period_seconds)),
            ("preconditions", Value::Object(preconditions)),
            ("orphanDependents", json!(self.orphan)),
            ("propagationPolicy", json!(self.policy)),
            ("dryRun", json!(self.dry_run)),
        ];
        let is_filled =
            |value: &Value| *value != Value::Null && *value != json!({}) && *value != json!([]);
        let filled = members.into_iter().filter(|(_, value)| is_filled(value));
        filled
            .map(|(name, value)| (name.to_owned(), value))
            .collect()
    }

    fn of_query(query: &Query) -> ApiResult<Self> {
        let text = |member: &str| query.get(member).map(str::to_owned);
        Ok(Self {
            grace_period_seconds: query.integer("gracePeriodSeconds")?,
            orphan: query.optional_flag("orphanDependents"),
            policy: text("propagationPolicy"),
            uid: text("uid"),
            resource_version: None,
            dry_run: text("dryRun").into_iter().collect(),
        })
    }

    fn of_body(body: &Value) -> Result<Self, String> {
        let member = |pointer: &str| body.pointer(pointer).filter(|value| !value.is_null());
        let wrong = |value: &Value, field: &str, wanted: &str| {
            let found = go::json::type_name(&value.to_string());
            format!("json: cannot unmarshal {found} into Go struct field {field} of type {wanted}")
        };
        let text = |pointer: &str, field: &str, wanted: &str| {
            let text = |value: &Value| {
                let text = value.as_str().map(str::to_owned);
                text.ok_or_else(|| wrong(value, field, wanted))
            };
            member(pointer).map(text).transpose()
        };
        let mut raw = Self {
            policy: text(
                "/propagationPolicy",
                "DeleteOptions.propagationPolicy",
                "v1.DeletionPropagation",
            )?,
            uid: text(
                "/preconditions/uid",
                "Preconditions.preconditions.uid",
                "types.UID",
            )?,
            resource_version: text(
                "/preconditions/resourceVersion",
                "Preconditions.preconditions.resourceVersion",
                "string",
            )?,
            ..Self::default()
        };
        if let Some(value) = member("/gracePeriodSeconds") {
            let field = "DeleteOptions.gracePeriodSeconds";
            let number = value.as_i64().ok_or_else(|| wrong(value, field, "int64"))?;
            raw.grace_period_seconds = Some(number);
        }
        if let Some(value) = member("/orphanDependents") {
            let field = "DeleteOptions.orphanDependents";
            let flag = value.as_bool().ok_or_else(|| wrong(value, field, "bool"))?;
            raw.orphan = Some(flag);
        }
        if let Some(value) = member("/dryRun") {
            let field = "DeleteOptions.dryRun";
            let list = value
                .as_array()
                .ok_or_else(|| wrong(value, field, "[]string"))?;
            for item in list {
                let text = item.as_str().ok_or_else(|| wrong(item, field, "string"))?;
                raw.dry_run.push(text.to_owned());
            }
        }
        Ok(raw)
    }
}
