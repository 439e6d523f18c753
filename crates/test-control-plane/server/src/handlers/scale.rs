//! The scale subresource of a stateful set, as `autoscaling/v1`.

use std::sync::Arc;

use bytes::Bytes;
use kube_apimachinery::schema::{self, UnknownMembers};
use kube_test_control_plane_api::kinds::{Kind, SCALE, Target, stored};
use kube_test_control_plane_api::managed_fields::{self, Writer, to_parent};
use kube_test_control_plane_api::members::{object_mut, set_or_remove};
use kube_test_control_plane_api::object::{Draft, MetadataRef};
use kube_test_control_plane_api::options::WriteOptions;
use kube_test_control_plane_api::patch::Patch;
use kube_test_control_plane_api::settings::{EmulatedVersion, ServerGates};
use kube_test_control_plane_api::status::{ApiError, ApiResult};
use kube_test_control_plane_api::validation::{self, Subject};
use serde_json::{Value, json};

use super::Source;
use super::update::update;
use crate::incoming::Incoming;
use crate::review;
use crate::route::ResourceRequest;
use crate::state::{Behaviour, Reads, Writes, now_text};
use crate::write::{self, check_name, handled_form, live_scale, scale_of};

/// Returns the scale of an object.
pub(crate) async fn get_scale(reads: &Reads, request: &ResourceRequest) -> ApiResult<Bytes> {
    let object = reads
        .store
        .get(&request.key())
        .ok_or_else(|| ApiError::not_found(stored(&request.kind), &request.name))?;
    let draft = handled_form(reads, &request.kind, &object).await?;
    if let Some(scale) = request.kind.scale()
        && scale.wanted(&draft.value).is_none()
    {
        let why = format!("the spec replicas field {:?} does not exist", scale.spec);
        return Err(ApiError::internal_error(&why));
    }
    Ok(scale_of(&request.kind, &draft).to_string().into())
}

/// Updates the scale of an object.
pub(crate) async fn update_scale(
    writes: &Writes,
    request: &ResourceRequest,
    source: &ScaleSource<'_>,
    options: &WriteOptions,
) -> ApiResult<Bytes> {
    let kind = stored(&request.kind);
    let key = request.key();
    let whole = ResourceRequest {
        target: Target::Object,
        ..request.clone()
    };
    loop {
        let object = writes
            .store
            .get(&key)
            .ok_or_else(|| ApiError::not_found(kind, &request.name))?;
        let old = handled_form(&writes.reads, kind, &object).await?;
        let scaled = scaled(&writes.reads, request, source, &old, options)?;
        let (scale, managed) = admit(writes, request, &old, scaled, options).await?;
        let scale = check_scale(request, scale)?;
        check_uid(request, source, &old, &scale)?;
        let mut draft = old.clone();
        match kind.scale() {
            Some(paths) => paths.set_wanted(&mut draft.value, replicas(&scale)),
            None => draft.value["spec"]["replicas"] = replicas(&scale),
        }
        let conditional = set_preconditions(&mut draft, &scale);
        let before = old.value.pointer("/metadata/managedFields");
        let managed = to_parent(kind, before, Some(&managed));
        set_or_remove(draft.metadata_mut(), "managedFields", Some(managed));
        let options = WriteOptions {
            field_manager: None,
            ..options.clone()
        };
        match update(writes, &whole, &Source::Put(draft), &options).await {
            Ok(written) => {
                let updated = Draft::parse(kind, &written.text).map_err(|err| {
                    ApiError::internal(format!("reading the updated object: {err}"))
                })?;
                return Ok(scale_of(kind, &updated).to_string().into());
            }
            // A concurrent write happened; apply the scale to the newer object.
            Err(err) if err.reason == "Conflict" && !conditional => {
                let now = writes.store.get(&key);
                if now.is_some_and(|now| Arc::ptr_eq(&now, &object)) {
                    return Err(err);
                }
            }
            Err(err) => return Err(err),
        }
    }
}

/// Decodes the body of a PUT; the second part holds warnings.
pub(crate) fn decode_scale(
    behaviour: Behaviour,
    request: &ResourceRequest,
    incoming: &Incoming,
    options: &WriteOptions,
) -> ApiResult<(Value, Vec<String>)> {
    let scale = ResourceRequest {
        kind: Arc::clone(&SCALE),
        ..request.clone()
    };
    let (draft, warnings) = write::decode(behaviour, &scale, incoming, options)?;
    Ok((draft.value, warnings))
}

/// Returns the requested scale and its managers.
fn scaled(
    reads: &Reads,
    request: &ResourceRequest,
    source: &ScaleSource<'_>,
    old: &Draft,
    options: &WriteOptions,
) -> ApiResult<(Value, Value)> {
    let kind = stored(&request.kind);
    let live = live_scale(kind, old);
    let writer = Writer {
        kind: &SCALE,
        subresource: request.target.subresource(),
        manager: options.field_manager.as_deref().unwrap_or_default(),
        now: &now_text(reads.clock()),
    };
    let (scale, wrong): (_, Wrong<'_>) = match source {
        ScaleSource::Put(scale) => ((*scale).clone(), Box::new(|error| error)),
        ScaleSource::Patch(patch) => {
            let before = Draft {
                value: live.clone(),
                data: None,
            };
            let patched = patch.apply(&SCALE, &before)?;
            let scale = patched.draft.value.clone();
            let wrong = move |error| patch.undecodable(&SCALE, error, Some(&patched));
            (scale, Box::new(wrong))
        }
        ScaleSource::Apply(config) => {
            let strictness = reads.behaviour().strictness();
            let applied =
                managed_fields::apply(&writer, Some(&live), config, options.force, strictness)?;
            if request.kind.custom.is_some() && applied.object != live {
                return Err(unconvertible(&applied.object));
            }
            return Ok((applied.object, applied.managed_fields));
        }
    };
    let decoded = schema::normalize("Scale", &scale, UnknownMembers::Drop, "");
    let scale = decoded.map_err(|err| {
        let version = &SCALE.version;
        wrong(ApiError::bad_request(format!(
            "Scale in version {version:?} cannot be handled as a Scale: {err}"
        )))
    })?;
    let managed = managed_fields::track(&writer, Some(&live), &scale);
    Ok((scale, managed))
}

/// Returns the error of an apply that changes the scale of a custom resource: upstream converts it like
/// the resource.
fn unconvertible(scale: &Value) -> ApiError {
    let (scale, version) = (managed_fields::described(scale), SCALE.api_version());
    ApiError::internal(format!(
        "failed to convert new object ({scale}) to proper version: request to convert CR to an invalid \
         group/version: {version}"
    ))
}

/// Admits the requested scale with its managers.
async fn admit(
    writes: &Writes,
    request: &ResourceRequest,
    old: &Draft,
    (mut scale, managed): (Value, Value),
    options: &WriteOptions,
) -> ApiResult<(Value, Value)> {
    let access = &writes.access;
    if !writes.reads.has_reviews() {
        return Ok((scale, managed));
    }
    let member = "managedFields";
    set_or_remove(object_mut(&mut scale, "metadata"), member, Some(managed));
    let live = live_scale(stored(&request.kind), old);
    let mut scale = review::mutate_scale(access, request, live, scale, options).await?;
    let managed = object_mut(&mut scale, "metadata").remove(member);
    Ok((scale, managed.unwrap_or_default()))
}

/// Converts the error of a scale that can't be decoded.
type Wrong<'a> = Box<dyn Fn(ApiError) -> ApiError + 'a>;

/// Source of the new scale.
#[derive(Clone, Copy, Debug)]
pub(crate) enum ScaleSource<'a> {
    /// The body of a PUT.
    Put(&'a Value),
    /// A patch of the current scale.
    Patch(&'a Patch),
    /// A configuration applied to the current scale.
    Apply(&'a Value),
}

/// Validates the requested scale and returns it.
fn check_scale(request: &ResourceRequest, scale: Value) -> ApiResult<Value> {
    let draft = Draft {
        value: scale,
        data: None,
    };
    check_name(request, &draft)?;
    // The object's own validation reports a custom resource's.
    if request.kind.custom.is_some() {
        return Ok(draft.value);
    }
    let found = validation::validate(Subject {
        kind: &SCALE,
        served: &SCALE,
        new: &draft,
        old: None,
        target: Target::Object,
        gates: ServerGates::default(),
        version: EmulatedVersion::default(),
    });
    if found.errors.is_empty() {
        return Ok(draft.value);
    }
    let (kind, group) = ("Scale", "autoscaling");
    Err(ApiError::invalid_kind(
        kind,
        group,
        &request.name,
        &found.errors,
    ))
}

fn replicas(scale: &Value) -> Value {
    let replicas = scale.pointer("/spec/replicas").and_then(Value::as_i64);
    json!(replicas.unwrap_or(0))
}

/// Makes the write conditional on the version and the uid in the scale, or else on the version
/// read. Returns true if the scale has either.
fn set_preconditions(draft: &mut Draft, scale: &Value) -> bool {
    let scale = MetadataRef(scale.get("metadata"));
    let (version, uid) = (scale.resource_version(), scale.uid());
    let metadata = draft.metadata_mut();
    if !version.is_empty() {
        metadata.insert("resourceVersion".to_owned(), json!(version));
    }
    if !uid.is_empty() {
        metadata.insert("uid".to_owned(), json!(uid));
    }
    !version.is_empty() || !uid.is_empty()
}

/// Checks the uid in a patched scale. That in the body of a PUT is a precondition of the write.
fn check_uid(
    request: &ResourceRequest,
    source: &ScaleSource<'_>,
    old: &Draft,
    scale: &Value,
) -> ApiResult<()> {
    let (uid, before) = (
        MetadataRef(scale.get("metadata")).uid(),
        old.metadata().uid(),
    );
    let is_put = matches!(source, ScaleSource::Put(_));
    if is_put || uid.is_empty() || uid == before || request.kind.custom.is_some() {
        return Ok(());
    }
    let why =
        format!("Precondition failed: UID in precondition: {uid}, UID in object meta: {before}");
    let of_scale = Kind {
        plural: format!("{}/scale", request.kind.plural),
        ..Kind::clone(&request.kind)
    };
    Err(ApiError::conflict(&of_scale, &request.name, &why))
}
