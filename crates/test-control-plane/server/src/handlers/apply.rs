//! Server-side apply: updates or creates an object from a configuration.

use http::StatusCode;
use kube_test_control_plane_api::decode::as_warnings;
use kube_test_control_plane_api::kinds::{Subresource, Target, stored};
use kube_test_control_plane_api::managed_fields::{self, Applied, Strictness, Writer, described};
use kube_test_control_plane_api::members::set_or_remove;
use kube_test_control_plane_api::normalize::Empties;
use kube_test_control_plane_api::object::Draft;
use kube_test_control_plane_api::options::WriteOptions;
use kube_test_control_plane_api::status::{ApiError, ApiResult};
use kube_test_control_plane_api::{patch, views, warnings};
use serde_json::Value;

use super::apply_body::Configuration;
use super::create::{Origin, create};
use super::scale::{ScaleSource, update_scale};
use super::update::{Outcome, admit, commit_update, complete};
use crate::reply::{self, Reply};
use crate::route::ResourceRequest;
use crate::state::{Reads, Writes, now_text};
use crate::write::{self, check_name, check_namespace, handled_form, served_value};

/// Applies the configuration in a body.
pub(crate) async fn apply(
    writes: &Writes,
    request: &ResourceRequest,
    body: &[u8],
    options: &WriteOptions,
) -> ApiResult<Reply> {
    let config = Configuration::parse(body)?;
    let warning = config.warning(options.field_validation)?;
    let warnings: Vec<String> = warning.into_iter().flat_map(as_warnings).collect();
    let reply = apply_configuration(writes, request, &config, options).await;
    reply::with_warnings(reply, &warnings)
}

async fn apply_configuration(
    writes: &Writes,
    request: &ResourceRequest,
    config: &Configuration,
    options: &WriteOptions,
) -> ApiResult<Reply> {
    if request.target == Target::Part(Subresource::Scale) {
        let source = ScaleSource::Apply(&config.value);
        let text = update_scale(writes, request, &source, options).await?;
        return Ok(reply::json_text(StatusCode::OK, text));
    }
    loop {
        let Some(current) = writes.store.get(&request.key()) else {
            match apply_to_nothing(writes, request, config, options).await {
                Err(err) if err.reason == "AlreadyExists" => continue,
                created => return created,
            }
        };
        let old = handled_form(&writes.reads, stored(&request.kind), &current).await?;
        let (mut new, empties) = applied(&writes.reads, request, &old, config, options)?;
        let warning = warnings::of_owners(&new.value, true);
        admit(writes, request, &old, &mut new, options).await?;
        if new.metadata().resource_version() != old.metadata().resource_version() {
            return Err(ApiError::modified(stored(&request.kind), &request.name));
        }
        complete(&writes.reads, request, &old, &mut new);
        let new = (new, &empties);
        match commit_update(writes, request, &current, &old, new, options).await? {
            Outcome::Done(mut written) => {
                written.warnings.splice(0..0, warning);
                let reply = reply::json_text(StatusCode::OK, written.text);
                return reply::with_warnings(Ok(reply), &written.warnings);
            }
            Outcome::Raced if names_version(config) => {
                return Err(ApiError::modified(stored(&request.kind), &request.name));
            }
            Outcome::Raced => {}
        }
    }
}

/// Returns the stored object merged with the configuration.
fn applied(
    reads: &Reads,
    request: &ResourceRequest,
    old: &Draft,
    config: &Configuration,
    options: &WriteOptions,
) -> ApiResult<(Draft, Empties)> {
    let live = served_value(&request.kind, old);
    let applied = merge(reads, request, Some(&live), config, options)?;
    let (mut new, empties) = decode_applied(reads, request, applied.object, config)?;
    if config.value.get("data").is_none() && old.data.is_some() {
        new.data.clone_from(&old.data);
    }
    check_namespace(request, &new)?;
    check_name(request, &new)?;
    let managed = Some(applied.managed_fields);
    set_or_remove(new.metadata_mut(), "managedFields", managed);
    Ok((new, empties))
}

/// Creates the object from the configuration.
async fn apply_to_nothing(
    writes: &Writes,
    request: &ResourceRequest,
    config: &Configuration,
    options: &WriteOptions,
) -> ApiResult<Reply> {
    let kind = stored(&request.kind);
    let name = &request.name;
    let applied = merge(&writes.reads, request, None, config, options)?;
    let (mut new, _) = decode_applied(&writes.reads, request, applied.object, config)?;
    let uid = new.metadata().uid();
    if !uid.is_empty() {
        let why = format!(
            "uid mismatch: the provided object specified uid {uid}, and no existing object \
             was found"
        );
        return Err(ApiError::conflict(kind, name, &why));
    }
    check_namespace(request, &new)?;
    check_name(request, &new)?;
    if request.target != Target::Object {
        return Err(ApiError::not_found(kind, name));
    }
    let metadata = new.metadata_mut();
    metadata.remove("resourceVersion");
    let managed = Some(applied.managed_fields);
    set_or_remove(metadata, "managedFields", managed);
    views::to_served(&request.kind, &mut new.value);
    let options = WriteOptions {
        field_manager: None,
        ..options.clone()
    };
    let written = create(writes, request, (new, Origin::Apply), &options).await?;
    let reply = reply::json_text(StatusCode::CREATED, written.text);
    reply::with_warnings(Ok(reply), &written.warnings)
}

/// Merges the configuration into the object and reports conflicts.
fn merge(
    reads: &Reads,
    request: &ResourceRequest,
    live: Option<&Value>,
    config: &Configuration,
    options: &WriteOptions,
) -> ApiResult<Applied> {
    let writer = Writer {
        kind: &request.kind,
        subresource: request.target.subresource(),
        manager: options.field_manager.as_deref().unwrap_or_default(),
        now: &now_text(reads.clock()),
    };
    let strictness = match &request.kind.custom {
        Some(_) => Strictness::Declared(reads.behaviour().version),
        None => reads.behaviour().strictness(),
    };
    let applied = managed_fields::apply(&writer, live, &config.value, options.force, strictness)?;
    config.warning(options.field_validation)?;
    Ok(applied)
}

/// Converts a merged object to the stored form, with defaults.
fn decode_applied(
    reads: &Reads,
    request: &ResourceRequest,
    mut object: Value,
    config: &Configuration,
) -> ApiResult<(Draft, Empties)> {
    let (kind, behaviour) = (stored(&request.kind), reads.behaviour());
    patch::convert_integers(&request.kind, &config.value, &mut object);
    let mut new = Draft::from_value(&request.kind, object);
    let wrong = |err: ApiError| {
        let config = described(&config.value);
        let why = patch::unconvertible(&request.kind, err);
        let message = format!("failed to convert new object ({config}) to proper version: {why}");
        ApiError::internal(message)
    };
    write::to_stored(behaviour, &request.kind, &mut new).map_err(wrong)?;
    write::set_defaults(reads, kind, &mut new);
    let empties = Empties::of(&new.value);
    write::normalize_applied(behaviour, kind, &mut new).map_err(wrong)?;
    Ok((new, empties))
}

/// Reports whether the configuration requires a resource version.
fn names_version(config: &Configuration) -> bool {
    let version = config.value.pointer("/metadata/resourceVersion");
    version.is_some_and(|version| !version.is_null())
}
