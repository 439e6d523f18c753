//! The form of a request's objects that a policy or webhook matches: the version of the request, or
//! another one.

use std::borrow::Cow;
use std::sync::Arc;

use kube_apimachinery::schema::{self, Type, UnknownMembers};
use kube_test_control_plane_api::admission::Equivalent;
use kube_test_control_plane_api::custom::CustomResource;
use kube_test_control_plane_api::kinds::{self, Kind, Subresource, Target, Trait, stored};
use kube_test_control_plane_api::members::text;
use kube_test_control_plane_api::object::{Draft, is_semantically_equal};
use kube_test_control_plane_api::status::{ApiError, ApiResult};
#[cfg(feature = "cel")]
use kube_test_control_plane_api::strict;
use kube_test_control_plane_api::views;
use serde_json::{Value, json};

use crate::route::ResourceRequest;
use crate::state::Reads;
use crate::write;
use crate::write::conversion;

/// A form of a request's objects.
#[derive(Debug)]
pub(super) struct Form<'a> {
    request: &'a ResourceRequest,
    /// The row of the objects in this form.
    pub(super) kind: Arc<Kind>,
}

impl<'a> Form<'a> {
    /// Returns the form in which a request matches.
    pub(super) fn matched(
        reads: &Reads,
        request: &'a ResourceRequest,
        matched: &Equivalent,
    ) -> Self {
        let own = &request.kind;
        let of = &matched.resource;
        let is_own = (&of.group, &of.version) == (&own.group, &own.version);
        let found = if is_own {
            None
        } else if own.custom.is_some() {
            let rows = reads.custom_kinds();
            let found = rows.by_resource(&of.group, &of.version, &of.resource);
            found.map(Arc::clone)
        } else {
            let found = kinds::by_resource(&of.group, &of.version, &of.resource);
            found.map(Arc::clone)
        };
        Self {
            request,
            kind: found.unwrap_or_else(|| Arc::clone(own)),
        }
    }

    /// Returns true if objects are in the version of the request.
    fn is_own(&self) -> bool {
        // Scales have one version.
        Arc::ptr_eq(&self.kind, &self.request.kind)
            || self.request.requested == Target::Part(Subresource::Scale)
    }

    /// Returns an object of the request in this form. No webhook converts it.
    pub(super) fn of<'v>(&self, object: &'v Value) -> Cow<'v, Value> {
        if self.is_own() {
            return Cow::Borrowed(object);
        }
        Cow::Owned(converted(&self.request.kind, &self.kind, object.clone()))
    }

    /// Returns an object in this form in that of the request.
    pub(super) fn back(&self, object: Value) -> Value {
        if self.is_own() {
            return object;
        }
        converted(&self.kind, &self.request.kind, object)
    }

    /// Returns an object of the request in this form, for a webhook.
    ///
    /// # Errors
    ///
    /// The webhook that converts the object fails.
    pub(super) async fn sent(&self, reads: &Reads, object: &Value) -> ApiResult<Value> {
        if self.is_own() || self.kind.custom.is_none() {
            return Ok(self.of(object).into_owned());
        }
        let mut sent = object.clone();
        conversion::to_version(reads, &self.kind, &mut sent).await?;
        Ok(sent)
    }

    /// Returns an object that a webhook changed in the form of the request.
    ///
    /// # Errors
    ///
    /// The webhook that converts the object fails.
    pub(super) async fn received(&self, reads: &Reads, mut object: Value) -> ApiResult<Value> {
        if self.is_own() || self.kind.custom.is_none() {
            return Ok(self.back(object));
        }
        conversion::to_version(reads, &self.request.kind, &mut object).await?;
        Ok(object)
    }

    /// Refuses a value with a field that its built-in kind doesn't have. Webhooks may send such fields,
    /// the patches of policies may not.
    ///
    /// # Errors
    ///
    /// 500 with the fields, as upstream's strict decoder names them.
    ///
    /// Upstream: `jsonPatcher.Patch`
    #[cfg(feature = "cel")]
    pub(super) fn check_fields(&self, reads: &Reads, value: &Value) -> ApiResult<()> {
        if self.kind.custom.is_some() {
            return Ok(());
        }
        let schema = reads.behaviour().version.schema();
        let of = schema.type_of_kind(text(value, "apiVersion"), text(value, "kind"));
        let unknown = of.map(|of| schema::unknown_members(of, value));
        let unknown = unknown.into_iter().flatten();
        let paths: Vec<String> = unknown.map(|(path, _)| path.to_string()).collect();
        if paths.is_empty() {
            return Ok(());
        }
        Err(ApiError::internal_error(&strict::unknown_error(&paths)))
    }

    /// Returns a changed object as upstream decodes it, with defaults.
    ///
    /// # Errors
    ///
    /// As [`Form::read`].
    #[cfg(feature = "cel")]
    pub(super) fn decoded(&self, reads: &Reads, value: Value) -> ApiResult<Value> {
        let value = self.read(reads, value)?;
        Ok(self.with_defaults(reads, value))
    }

    /// Returns a changed object as upstream decodes it.
    ///
    /// # Errors
    ///
    /// A value has another type than its field, or the object has another kind now.
    pub(super) fn read(&self, reads: &Reads, mut value: Value) -> ApiResult<Value> {
        if self.is_whole() && value["metadata"].is_null() {
            value["metadata"] = json!({});
        }
        if self.kind.custom.is_some() && !value["metadata"].is_object() {
            return Err(ApiError::internal_error(
                "system metadata was not initialized",
            ));
        }
        if self.custom().is_some() {
            return Ok(value);
        }
        let kind = &self.kind;
        let (version, name) = (text(&value, "apiVersion"), text(&value, "kind"));
        let Some(of) = schema_type(reads, &value) else {
            if self.is_whole() {
                return Err(unknown_kind(version, name));
            }
            // The options of connections are no objects.
            return Ok(value);
        };
        let value = schema::normalize_owned(of, value, UnknownMembers::Drop, "")
            .map_err(|error| ApiError::internal_error(&error.to_string()))?;
        let is_other =
            (text(&value, "apiVersion"), text(&value, "kind")) != (&kind.api_version(), &kind.kind);
        if self.is_whole() && is_other {
            return Err(other_kind(kind, &value));
        }
        Ok(value)
    }

    /// Returns a decoded object with defaults.
    pub(super) fn with_defaults(&self, reads: &Reads, mut value: Value) -> Value {
        if let Some(custom) = self.custom() {
            custom.set_defaults(&mut value);
            return value;
        }
        if !self.is_whole() {
            return value;
        }
        let kind = &self.kind;
        let mut draft = Draft::from_value(kind, value);
        views::to_stored(kind, &mut draft.value);
        write::set_defaults(reads, stored(kind), &mut draft);
        views::to_served(kind, &mut draft.value);
        draft.to_value()
    }

    /// Returns true if two decoded objects are equal as upstream compares them: a quantity may be
    /// written in several ways, and an empty list is none.
    pub(super) fn is_same(&self, reads: &Reads, one: &Value, other: &Value) -> bool {
        let of = schema_type(reads, one).filter(|_| self.custom().is_none());
        one == other || of.is_some_and(|of| is_semantically_equal(of, one, other))
    }

    /// Returns true if the objects are custom resources, which upstream holds as JSON.
    pub(super) fn is_custom(&self) -> bool {
        self.custom().is_some()
    }

    /// Returns the definition's version, if the objects have its form.
    fn custom(&self) -> Option<&CustomResource> {
        let is_scale = self.request.requested == Target::Part(Subresource::Scale);
        self.kind.custom.as_ref().filter(|_| !is_scale)
    }

    /// Returns the kind of the bodies of a subresource if no resource has it: upstream has no type for
    /// apply configurations of it.
    #[cfg(feature = "cel")]
    pub(super) fn untyped(&self) -> Option<String> {
        let part = self.request.requested.part().filter(|_| !self.is_whole())?;
        let (group, version, kind) = self.kind.response_type(part);
        let api_version = match group {
            "" => version.to_owned(),
            group => format!("{group}/{version}"),
        };
        let row = kinds::by_kind(&api_version, kind);
        let has_type = row.is_some_and(|row| !row.has(Trait::Bodies));
        (!has_type).then(|| format!("{group}/{version}, Kind={kind}"))
    }

    /// Returns true if the objects are those of the resource, not the bodies of a subresource.
    fn is_whole(&self) -> bool {
        let kind = &self.kind;
        let own = (&*kind.group, &*kind.version, &*kind.kind);
        let part = self.request.requested.part();
        part.is_none_or(|part| kind.response_type(part) == own)
    }
}

/// Returns the type of an object, by its own version and kind.
fn schema_type(reads: &Reads, value: &Value) -> Option<&'static Type> {
    let schema = reads.behaviour().version.schema();
    schema.type_of_kind(text(value, "apiVersion"), text(value, "kind"))
}

fn unknown_kind(version: &str, kind: &str) -> ApiError {
    ApiError::internal_error(&format!(
        "no kind {kind:?} is registered for version {version:?} in scheme \
         \"pkg/api/legacyscheme/scheme.go:30\""
    ))
}

/// Returns the error for an object of another kind than that of the request.
fn other_kind(wanted: &Kind, found: &Value) -> ApiError {
    let version = text(found, "apiVersion").rsplit('/').next();
    let group = match wanted.group.split('.').next() {
        None | Some("") => "core",
        Some(group) => group,
    };
    ApiError::internal(format!(
        "converting ({}.{}) to ({group}.{}): unknown conversion",
        version.unwrap_or_default(),
        text(found, "kind"),
        wanted.kind
    ))
}

fn converted(from: &Kind, to: &Kind, mut object: Value) -> Value {
    if from.custom.is_none() && (from.has(Trait::View) || to.has(Trait::View)) {
        views::to_stored(from, &mut object);
        views::to_served(to, &mut object);
    }
    object["apiVersion"] = json!(to.api_version());
    object["kind"] = json!(to.kind);
    object
}
