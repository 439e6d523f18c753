//! Delete: graceful deletion of pods, finalizers, propagation policies, collections.

mod namespaces;

use std::sync::Arc;

use bytes::Bytes;
use http::StatusCode;
use jiff::SignedDuration;
use kube_apimachinery::time;
use kube_test_control_plane_api::custom::{self, DEFINITIONS};
use kube_test_control_plane_api::kinds::{Kind, Trait, stored};
use kube_test_control_plane_api::members::set_or_remove;
use kube_test_control_plane_api::object::{Draft, FOREGROUND, ORPHAN, Object};
use kube_test_control_plane_api::options::{DeleteOptions, Propagation};
use kube_test_control_plane_api::status::{ApiError, ApiResult};
use kube_test_control_plane_store::clock::Clock;
use kube_test_control_plane_store::store::Expect;
use serde_json::{Value, json};

use super::Page;
use super::admit::review_deletion;
use super::read::list_text;
use crate::policies;
use crate::reply::{self, Reply};
use crate::route::ResourceRequest;
use crate::state::{Writes, now_text};
use crate::write::{served_draft, served_text};
use namespaces::begin_termination;

/// Namespaces that can't be deleted.
const IMMORTAL_NAMESPACES: [&str; 3] = ["default", "kube-system", "kube-public"];

/// A stored object marked for deletion.
struct Marked {
    draft: Draft,
    /// True if it is removed immediately.
    remove: bool,
    /// True if the mark changes the stored object.
    changed: bool,
}

/// Deletes an object.
pub(crate) fn delete(
    writes: &Writes,
    request: &ResourceRequest,
    options: &DeleteOptions,
) -> ApiResult<Reply> {
    let (text, uid) = delete_one(writes, request, options)?;
    Ok(match text {
        Some(text) => reply::json_text(StatusCode::OK, text),
        None => reply::deleted(stored(&request.kind), &request.name, &uid),
    })
}

/// Deletes an object. Returns its uid, and its text if the response contains it.
fn delete_one(
    writes: &Writes,
    request: &ResourceRequest,
    options: &DeleteOptions,
) -> ApiResult<(Option<Bytes>, String)> {
    let kind = stored(&request.kind);
    let key = request.key();
    let mut last: Option<Arc<Object>> = None;
    loop {
        let current = writes.store.get(&key);
        let current = match (current, &last) {
            (Some(current), None) => current,
            (Some(current), Some(last)) if current.uid == last.uid => current,
            (None, None) => return Err(ApiError::not_found(kind, &request.name)),
            // Another client removed the marked object first.
            (_, Some(last)) => {
                let text = kind
                    .has(Trait::ReturnsDeleted)
                    .then(|| served_text(&request.kind, last));
                return Ok((text.transpose()?, last.uid.to_string()));
            }
        };
        check_preconditions(kind, &current, options)?;
        if &*kind.storage == "namespaces" && IMMORTAL_NAMESPACES.contains(&&*request.name) {
            let why = "this namespace may not be deleted";
            return Err(ApiError::forbidden(kind, &request.name, why));
        }
        let draft = current.draft();
        if let Some(custom) = &kind.custom {
            custom.check_conversion(&draft.value, &kind.api_version())?;
        }
        if last.is_none() {
            review_deletion(&writes.admission, request, &draft, options.dry_run)?;
            policies::review_deletion(&writes.access, request, &draft, options)?;
        }
        let marked = mark(writes.reads.clock(), kind, draft, options);
        let uid = current.uid.to_string();
        let served = &request.kind;
        if options.dry_run {
            let shown = !marked.remove || kind.has(Trait::ReturnsDeleted);
            let text = shown.then(|| served_draft(served, marked.draft));
            return Ok((text.transpose()?, uid));
        }
        match commit_deletion(writes, served, &current, marked) {
            Ok(shown) => {
                let text = shown.map(|object| served_text(served, &object));
                return Ok((text.transpose()?, uid));
            }
            Err(WriteConflict { marked }) => last = marked.or(last),
        }
    }
}

/// Stores the mark or removes the object. Returns the object if the response shows it.
fn commit_deletion(
    writes: &Writes,
    served: &Arc<Kind>,
    current: &Arc<Object>,
    marked: Marked,
) -> Result<Option<Arc<Object>>, WriteConflict> {
    let kind = stored(served);
    let key = current.key.clone();
    let mut latest = Arc::clone(current);
    if marked.changed {
        let expect = Expect::Version(current.resource_version);
        latest = writes
            .store
            .put(kind, key.clone(), expect, marked.draft)
            .map_err(|_| WriteConflict { marked: None })?;
    }
    if marked.remove {
        latest = writes
            .store
            .delete(kind, key, latest.resource_version)
            .map_err(|_| WriteConflict {
                marked: marked.changed.then_some(latest),
            })?;
    }
    let shown = !marked.remove || kind.has(Trait::ReturnsDeleted);
    Ok(shown.then_some(latest))
}

/// Decides how the object is deleted.
fn mark(clock: &dyn Clock, kind: &Kind, mut draft: Draft, options: &DeleteOptions) -> Marked {
    let before = draft.clone();
    let remove = mark_draft(clock, kind, &mut draft, options);
    Marked {
        changed: draft != before,
        remove,
        draft,
    }
}

/// Marks an object as deleting. Returns true if it is removed immediately.
///
/// Upstream: `BeforeDelete` and `updateForGracefulDeletionAndFinalizers`.
fn mark_draft(clock: &dyn Clock, kind: &Kind, draft: &mut Draft, options: &DeleteOptions) -> bool {
    let is_deleting = draft.metadata().is_deleting();
    if &*kind.storage == DEFINITIONS {
        if !is_deleting {
            custom::begin_deletion(&mut draft.value, &now_text(clock));
        }
        return false;
    }
    if &*kind.storage == "namespaces" && !namespaces::is_empty(draft) {
        if !is_deleting {
            begin_termination(clock, draft, options);
        }
        return false;
    }
    let grace = if kind.has(Trait::Graceful) {
        begin_grace(clock, draft, options)
    } else {
        Grace::None
    };
    if grace == Grace::Pending {
        return false;
    }
    let finalizers = propagation_finalizers(kind, draft, options.propagation);
    let is_free = finalizers.is_empty();
    if is_free && grace == Grace::None {
        return true;
    }
    let list = Some(json!(finalizers)).filter(|_| !is_free);
    set_or_remove(draft.metadata_mut(), "finalizers", list);
    if let Grace::Begun(seconds) = grace {
        return is_free && seconds == 0;
    }
    mark_as_deleting(clock, draft);
    false
}

/// Starts or shortens the grace period of a pod.
fn begin_grace(clock: &dyn Clock, draft: &mut Draft, options: &DeleteOptions) -> Grace {
    let metadata = draft.metadata();
    if metadata.is_deleting() {
        let Some(left) = metadata.deletion_grace_period_seconds().filter(|s| *s > 0) else {
            return Grace::None;
        };
        let Some(wanted) = options.grace_period_seconds.filter(|s| *s < left) else {
            return Grace::Pending;
        };
        let wanted = if wanted < 0 { 1 } else { wanted };
        let ends = time::parse(metadata.text("deletionTimestamp")).unwrap_or_default();
        let ends = ends
            .checked_sub(SignedDuration::from_secs(left - wanted))
            .unwrap_or(ends);
        set_deletion(draft, &time::format_seconds(ends), wanted);
        return Grace::Begun(wanted);
    }
    let seconds = grace_period(draft, options.grace_period_seconds);
    let now = clock.now();
    let ends = now
        .checked_add(SignedDuration::from_secs(seconds))
        .unwrap_or(now);
    set_deletion(draft, &time::format_seconds(ends), seconds);
    bump_generation(draft);
    Grace::Begun(seconds)
}

/// Upstream: `markAsDeleting`.
fn mark_as_deleting(clock: &dyn Clock, draft: &mut Draft) {
    if draft.metadata().is_deleting() {
        draft
            .metadata_mut()
            .insert("deletionGracePeriodSeconds".to_owned(), json!(0));
        return;
    }
    bump_generation(draft);
    set_deletion(draft, &now_text(clock), 0);
}

/// Deletes a page of a collection. Returns the list of objects before their deletion, with a
/// continue token as in any list.
///
/// Upstream: `Store.DeleteCollection`.
pub(crate) fn delete_collection(
    writes: &Writes,
    request: &ResourceRequest,
    page: Page,
    options: &DeleteOptions,
) -> ApiResult<Reply> {
    for object in &page.objects {
        let one = ResourceRequest {
            namespace: object.key.namespace.to_string(),
            name: object.key.name.to_string(),
            ..request.clone()
        };
        match delete_one(writes, &one, options) {
            // Another client deleted it in the meantime.
            Err(err) if err.code == 404 => {}
            deleted => drop(deleted?),
        }
    }
    let text = list_text(&request.kind, page)?;
    Ok(reply::json_pieces(StatusCode::OK, text))
}

/// Another client wrote the object first.
struct WriteConflict {
    /// The object that this request had marked before.
    marked: Option<Arc<Object>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Grace {
    /// The object is not or no longer deleted gracefully.
    None,
    /// A grace period is running and this request doesn't shorten it.
    Pending,
    /// A grace period of this number of seconds begins.
    Begun(i64),
}

fn check_preconditions(kind: &Kind, object: &Object, options: &DeleteOptions) -> ApiResult<()> {
    let name = &*object.key.name;
    if matches!(&*kind.storage, "namespaces" | DEFINITIONS) {
        return namespaces::check_preconditions(kind, object, options);
    }
    let version = object.resource_version.to_string();
    if let Some(uid) = &options.uid
        && **uid != *object.uid
    {
        let why = format!(
            "the UID in the precondition ({uid}) does not match the UID in record ({}). The \
             object might have been deleted and then recreated",
            object.uid
        );
        return Err(ApiError::precondition(kind, name, &why));
    }
    if let Some(wanted) = &options.resource_version
        && *wanted != version
    {
        let why = format!(
            "the ResourceVersion in the precondition ({wanted}) does not match the \
             ResourceVersion in record ({version}). The object might have been modified"
        );
        return Err(ApiError::precondition(kind, name, &why));
    }
    Ok(())
}

/// Upstream: `podStrategy.CheckGracefulDelete`.
fn grace_period(draft: &Draft, wanted: Option<i64>) -> i64 {
    let configured = draft
        .value
        .pointer("/spec/terminationGracePeriodSeconds")
        .and_then(Value::as_i64);
    let seconds = wanted.or(configured).unwrap_or(0);
    let unscheduled = draft.text("/spec/nodeName").unwrap_or_default().is_empty();
    let finished = matches!(draft.text("/status/phase"), Some("Succeeded" | "Failed"));
    if unscheduled || finished {
        0
    } else if seconds < 0 {
        1
    } else {
        seconds
    }
}

fn set_deletion(draft: &mut Draft, timestamp: &str, grace_period_seconds: i64) {
    let metadata = draft.metadata_mut();
    metadata.insert("deletionTimestamp".to_owned(), json!(timestamp));
    metadata.insert(
        "deletionGracePeriodSeconds".to_owned(),
        json!(grace_period_seconds),
    );
}

fn bump_generation(draft: &mut Draft) {
    let generation = draft.metadata().generation();
    if generation > 0 {
        draft
            .metadata_mut()
            .insert("generation".to_owned(), json!(generation + 1));
    }
}

/// Returns the finalizers under the propagation policy. Jobs leave their pods by default.
///
/// Upstream: `deletionFinalizersForGarbageCollection`.
fn propagation_finalizers(
    kind: &Kind,
    draft: &Draft,
    propagation: Option<Propagation>,
) -> Vec<String> {
    let by_default = (&*kind.storage == "jobs").then_some(ORPHAN);
    let mut finalizers = draft.metadata().finalizers();
    let wanted = match propagation {
        Some(Propagation::Orphan) => Some(ORPHAN),
        Some(Propagation::Foreground) => Some(FOREGROUND),
        Some(Propagation::Background) => None,
        None => [ORPHAN, FOREGROUND]
            .into_iter()
            .find(|policy| finalizers.contains(policy))
            .or(by_default),
    };
    finalizers.retain(|it| Some(*it) == wanted || !matches!(*it, ORPHAN | FOREGROUND));
    if let Some(wanted) = wanted.filter(|wanted| !finalizers.contains(wanted)) {
        finalizers.push(wanted);
    }
    finalizers.into_iter().map(str::to_owned).collect()
}
