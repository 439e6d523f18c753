//! Update and patch. A patch is applied first, then handled as an update.

use std::sync::Arc;

use bytes::Bytes;
use kube_test_control_plane_api::kinds::{Kind, Subresource, Target, Trait, stored};
use kube_test_control_plane_api::list_options::parse_version;
use kube_test_control_plane_api::normalize::Empties;
use kube_test_control_plane_api::object::{Draft, Object};
use kube_test_control_plane_api::options::WriteOptions;
use kube_test_control_plane_api::patch::Patch;
use kube_test_control_plane_api::status::{ApiError, ApiResult, FieldError};
use kube_test_control_plane_api::validation::Subject;
use kube_test_control_plane_api::{defaults, normalize, views, warnings};
use kube_test_control_plane_store::store::Expect;
use serde_json::json;

use super::admit::review_write;
use super::allocate::allocate;
use super::classes::{admit_resize, check_default_class};
use super::create::{Origin, create, creates_on_update};
use super::limit_ranges::admit_limits;
use super::pod_resize::admit_pod_resize;
use super::signing_request::{check_approval, complete_signing_request};
use super::validate::validate;
use crate::access;
use crate::review;
use crate::route::ResourceRequest;
use crate::state::{Reads, Writes};
use crate::write::Earlier;
use crate::write::{
    self, Written, check_name, check_namespace, check_stored_size, count_generation, handled_form,
    keep_reset, keep_times, other_uid, prepare_update, served_draft, served_text, stored_form,
};

/// Source of the new object.
#[derive(Clone, Debug)]
pub(crate) enum Source {
    /// The body of a PUT.
    Put(Draft),
    /// A patch of the stored object.
    Patch(Patch),
}

/// A requested object.
struct Changed {
    new: Draft,
    empties: Empties,
    /// Warning about the patch.
    warning: Option<String>,
}

/// Outcome of one attempt to commit.
pub(crate) enum Outcome {
    Done(Written),
    Raced,
}

impl Outcome {
    fn updated(text: Bytes, warnings: Vec<String>) -> Self {
        Self::Done(Written {
            text,
            created: false,
            warnings,
        })
    }
}

/// Updates an object, or creates it where a PUT may.
pub(crate) async fn update(
    writes: &Writes,
    request: &ResourceRequest,
    source: &Source,
    options: &WriteOptions,
) -> ApiResult<Written> {
    let updated = update_decoded(writes, request, source, options).await;
    match (updated, source) {
        // Upstream decodes the body first, so its error precedes all others.
        (Err(error), Source::Put(draft)) => {
            let behaviour = writes.reads.behaviour();
            write::normalize(behaviour, &request.kind, &mut draft.clone())?;
            Err(error)
        }
        (updated, _) => updated,
    }
}

async fn update_decoded(
    writes: &Writes,
    request: &ResourceRequest,
    source: &Source,
    options: &WriteOptions,
) -> ApiResult<Written> {
    let kind = stored(&request.kind);
    let key = request.key();
    if let Source::Put(draft) = source {
        check_namespace(request, draft)?;
        check_name(request, draft)?;
    }
    loop {
        let Some(current) = writes.store.get(&key) else {
            if let Source::Put(draft) = source
                && creates_on_update(request)
            {
                let mut draft = draft.clone();
                draft.metadata_mut().remove("resourceVersion");
                return create(writes, request, (draft, Origin::Body), options).await;
            }
            return Err(ApiError::not_found(kind, &request.name));
        };
        let old = handled_form(&writes.reads, kind, &current).await?;
        let Changed {
            mut new,
            empties,
            warning,
        } = changed(&writes.reads, request, source, &old, options)?;
        admit(writes, request, &old, &mut new, options).await?;
        let names_version = check_version(request, &new, &old)?;
        complete(&writes.reads, request, &old, &mut new);
        let new = (new, &empties);
        match commit_update(writes, request, &current, &old, new, options).await? {
            Outcome::Done(mut written) => {
                written.warnings.splice(0..0, warning);
                return Ok(written);
            }
            // A patch applies to the version that it is built from. The concurrent write has made
            // progress, so this terminates.
            Outcome::Raced if !names_version || matches!(source, Source::Patch(_)) => {}
            Outcome::Raced => return Err(ApiError::modified(kind, &request.name)),
        }
    }
}

/// Returns the requested object.
fn changed(
    reads: &Reads,
    request: &ResourceRequest,
    source: &Source,
    old: &Draft,
    options: &WriteOptions,
) -> ApiResult<Changed> {
    let kind = stored(&request.kind);
    let wrong = |error| match source {
        Source::Put(_) => error,
        Source::Patch(patch) => write::undecodable(reads, request, patch, error),
    };
    let to_stored =
        |new: &mut Draft| write::to_stored(reads.behaviour(), &request.kind, new).map_err(wrong);
    let mut new = match source {
        Source::Put(draft) => {
            let mut new = draft.clone();
            to_stored(&mut new)?;
            check_uid(request, options, &new, old)?;
            new
        }
        Source::Patch(patch) => {
            let mut served = old.clone();
            views::to_served(&request.kind, &mut served.value);
            let mut new = patch.apply(&request.kind, &served)?.draft;
            to_stored(&mut new)?;
            check_namespace(request, &new)?;
            check_name(request, &new)?;
            new
        }
    };
    if new.metadata().namespace() != request.namespace {
        write::set_namespace(kind, &request.namespace, &mut new);
    }
    keep_reset(&mut new);
    write::set_defaults(reads, kind, &mut new);
    let empties = Empties::of(&new.value);
    if !write::is_scaled_custom(request) {
        write::normalize(reads.behaviour(), kind, &mut new).map_err(wrong)?;
    }
    write::track(reads.clock(), request, options, Some(old), &mut new)?;
    let is_patched = matches!(source, Source::Patch(_));
    let warning = warnings::of_owners(&new.value, true).filter(|_| is_patched);
    Ok(Changed {
        new,
        empties,
        warning,
    })
}

/// Admits the requested object, which plug-ins, policies and webhooks may change.
pub(crate) async fn admit(
    writes: &Writes,
    request: &ResourceRequest,
    old: &Draft,
    new: &mut Draft,
    options: &WriteOptions,
) -> ApiResult<()> {
    let kind = stored(&request.kind);
    let plugins = |new: &mut Draft| {
        defaults::admit_update(kind, request.target, old, new);
        Ok(())
    };
    plugins(new)?;
    review::mutate_write(&writes.access, request, Some(old), new, options, &plugins).await?;
    Ok(())
}

/// Restores the fields that the request can't change.
pub(crate) fn complete(reads: &Reads, request: &ResourceRequest, old: &Draft, new: &mut Draft) {
    if new.metadata().uid().is_empty() {
        let uid = json!(old.metadata().uid());
        new.metadata_mut().insert("uid".to_owned(), uid);
    }
    prepare_update(stored(&request.kind), request.target, new, old);
    let kind = stored(&request.kind);
    defaults::drop_disabled(kind, reads.behaviour().gates, new, Some(old));
    complete_signing_request(reads.clock(), request, old, new);
    write::remove_empty(new.metadata_mut());
    keep_times(old, new);
}

/// Stores an update, unless it changes nothing.
pub(crate) async fn commit_update(
    writes: &Writes,
    request: &ResourceRequest,
    current: &Arc<Object>,
    old: &Draft,
    (mut new, empties): (Draft, &Empties),
    options: &WriteOptions,
) -> ApiResult<Outcome> {
    let reads = &*writes.reads;
    let behaviour = reads.behaviour();
    let kind = stored(&request.kind);
    let (hooks, dry_run) = (&writes.admission, options.dry_run);
    if review_write(hooks, request, Some(old), &mut new, dry_run)? {
        write::set_defaults(reads, kind, &mut new);
        write::normalize(behaviour, kind, &mut new)?;
        complete(reads, request, old, &mut new);
    }
    let allocated = match request.target {
        Target::Object => {
            defaults::complete_addresses(kind, &mut new, Some(old))
                .map_err(|errors| ApiError::invalid(kind, &request.name, &errors))?;
            let allocated = allocate(
                writes,
                kind,
                &current.key,
                &mut new,
                Some(old),
                options.dry_run,
            )?;
            defaults::drop_unneeded(kind, &mut new, old);
            allocated
        }
        Target::Part(_) => None,
    };
    let subject = Subject {
        kind,
        served: &request.kind,
        new: &new,
        old: Some(old),
        target: request.target,
        gates: behaviour.gates,
        version: behaviour.version,
    };
    if new != *old {
        access::check_escalation(&writes.access, request, &new, Some(old))?;
        check_approval(&writes.access, request, old)?;
    }
    let mut warnings = validate(writes, request, subject, (empties, &request.name))?;
    normalize::drop_empty_lists(kind, &mut new, behaviour.version);
    if request.target == Target::Object {
        admit_resize(reads, kind, old, &new)?;
    }
    if !matches!(
        request.target,
        Target::Part(Subresource::Status | Subresource::Finalize)
    ) {
        count_generation(kind, &mut new, old);
    }
    if request.target == Target::Part(Subresource::Resize) {
        admit_limits(reads, kind, &new)?;
        admit_pod_resize(reads, kind, old, &new)?;
    }
    let reviewed = (Some(old), &new);
    review::review_write(&writes.access, request, &request.name, reviewed, options).await?;
    write::fit_to_store(reads, request, &mut new)?;
    if !options.dry_run {
        new.metadata_mut().remove("selfLink");
    }
    if new == *old {
        let text = served_text(reads, &request.kind, current, Earlier::Used).await?;
        let warnings = warnings::of_update(kind, request.target, &new.value, &old.value);
        return Ok(Outcome::updated(text, warnings));
    }
    if request.target == Target::Object {
        check_default_class(reads, kind, &new)?;
    }
    let more = warnings::of_update(kind, request.target, &new.value, &old.value);
    warnings.extend(more);
    write::note_phase(reads.clock(), kind, &mut new, old);
    if options.dry_run {
        stored_form(reads, kind, &mut new).await?;
        let text = served_draft(reads, &request.kind, new, Earlier::Used).await?;
        return Ok(Outcome::updated(text, warnings));
    }
    let version = current.resource_version;
    if is_finalized(kind, &new, old) {
        let deleted = writes.store.delete(kind, current.key.clone(), version);
        if deleted.is_err() {
            return Ok(Outcome::Raced);
        }
        let text = served_draft(reads, &request.kind, new, Earlier::Used).await?;
        return Ok(Outcome::updated(text, warnings));
    }
    let key = current.key.clone();
    check_stored_size(kind, &key, &new)?;
    stored_form(reads, kind, &mut new).await?;
    let stored = writes.store.put(kind, key, Expect::Version(version), new);
    drop(allocated);
    let Ok(object) = stored else {
        return Ok(Outcome::Raced);
    };
    let text = served_text(reads, &request.kind, &object, Earlier::Used).await?;
    Ok(Outcome::updated(text, warnings))
}

/// Reports whether an update removes the last finalizer of a deleted object.
fn is_finalized(kind: &Kind, new: &Draft, old: &Draft) -> bool {
    let metadata = old.metadata();
    if !new.metadata().finalizers().is_empty() || !metadata.is_deleting() {
        return false;
    }
    if &*kind.storage == "namespaces" {
        let finalizers = new.value.pointer("/spec/finalizers");
        return finalizers
            .and_then(|f| f.as_array())
            .is_none_or(Vec::is_empty);
    }
    metadata
        .deletion_grace_period_seconds()
        .is_none_or(|s| s == 0)
}

/// Checks the uid in a PUT.
fn check_uid(
    request: &ResourceRequest,
    options: &WriteOptions,
    new: &Draft,
    old: &Draft,
) -> ApiResult<()> {
    let (uid, before) = (new.metadata().uid(), old.metadata().uid());
    if !uid.is_empty() && uid != before {
        return Err(other_uid(request, options.dry_run, uid, before));
    }
    Ok(())
}

/// Checks the resourceVersion of a new object. Returns true if the object has one.
fn check_version(request: &ResourceRequest, new: &Draft, old: &Draft) -> ApiResult<bool> {
    let kind = stored(&request.kind);
    let version = new.metadata().resource_version();
    if version.is_empty() || version == "0" {
        if kind.has(Trait::NoUnconditionalUpdate) {
            let error = FieldError::invalid_text(
                "metadata.resourceVersion",
                "0",
                "must be specified for an update",
            );
            // Upstream names the resource here, while other messages name the kind.
            return Err(ApiError::invalid_kind(
                &kind.plural,
                &kind.group,
                &request.name,
                &[error],
            ));
        }
        return Ok(false);
    }
    let number = parse_version(version).map_err(ApiError::internal)?;
    if old.metadata().resource_version() != number.to_string() {
        return Err(ApiError::modified(kind, &request.name));
    }
    Ok(true)
}
