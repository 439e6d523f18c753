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
use crate::reply::{self, Reply};
use crate::review;
use crate::route::ResourceRequest;
use crate::state::{Writes, now_text};
use crate::write::Earlier;
use crate::write::{handled_form, served_draft, served_text};
use namespaces::begin_termination;

/// Namespaces that can't be deleted.
const IMMORTAL_NAMESPACES: [&str; 3] = ["default", "kube-system", "kube-public"];

/// A stored object marked for deletion.
struct Marked {
    draft: Draft,
    fate: Fate,
    /// True if the mark changes the stored object.
    changed: bool,
}

/// The effect of a deletion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    /// The object is removed immediately.
    Removed,
    /// The object stays, marked for its removal.
    Kept,
    /// An earlier deletion goes on; this one is not reviewed.
    Pending,
}

/// Deletes an object.
pub(crate) async fn delete(
    writes: &Writes,
    request: &ResourceRequest,
    options: &DeleteOptions,
) -> ApiResult<Reply> {
    let (text, uid) = delete_one(writes, request, options).await?;
    Ok(match text {
        Some(text) => reply::json_text(StatusCode::OK, text),
        None => reply::deleted(stored(&request.kind), &request.name, &uid),
    })
}

/// The end of an attempt to delete an object.
enum Attempt {
    /// The object is removed, or marked for its removal.
    Done(Arc<Object>),
    /// The object is marked, and its removal is to be reviewed.
    Marked(Arc<Object>),
    /// Another client wrote the object first. The object that this request has marked before, if it
    /// has.
    Raced(Option<Arc<Object>>),
}

/// Deletes an object. Returns its text, if the response contains it, and its uid.
async fn delete_one(
    writes: &Writes,
    request: &ResourceRequest,
    options: &DeleteOptions,
) -> ApiResult<(Option<Bytes>, String)> {
    let kind = stored(&request.kind);
    let reads = &*writes.reads;
    let is_reviewed = reads.has_reviews();
    let mut last: Option<Arc<Object>> = None;
    loop {
        let Some(current) = find(writes, request, options, last.as_ref())? else {
            // Another client removed the marked object first.
            let last = last.ok_or_else(|| ApiError::not_found(kind, &request.name))?;
            let text = if kind.has(Trait::ReturnsDeleted) {
                Some(served_text(reads, &request.kind, &last, Earlier::Used).await?)
            } else {
                None
            };
            return Ok((text, last.uid.to_string()));
        };
        let old = current.draft();
        let marked = mark(writes.reads.clock(), kind, &old, options);
        if last.is_none() && marked.fate != Fate::Pending {
            review_deletion(&writes.admission, request, &old, options.dry_run)?;
        }
        if is_reviewed || kind.custom.is_some() {
            // Upstream reads the object in the version of the request.
            let handled = handled_form(reads, kind, &current).await?;
            if is_reviewed && marked.fate != Fate::Pending {
                review::review_deletion(&writes.access, request, &handled, options).await?;
            }
        }
        let shown = marked.fate != Fate::Removed || kind.has(Trait::ReturnsDeleted);
        let uid = current.uid.to_string();
        if options.dry_run {
            let text = if shown {
                let draft = marked.draft;
                Some(served_draft(reads, &request.kind, draft, Earlier::Used).await?)
            } else {
                None
            };
            return Ok((text, uid));
        }
        match attempt(writes, request, &current, marked, is_reviewed) {
            Attempt::Done(latest) => {
                let text = if shown {
                    Some(served_text(reads, &request.kind, &latest, Earlier::Used).await?)
                } else {
                    None
                };
                return Ok((text, uid));
            }
            Attempt::Marked(marked) => last = Some(marked),
            Attempt::Raced(marked) => last = marked.or(last),
        }
    }
}

/// Deletes an object without a review: the server itself does, or it was reviewed otherwise.
pub(crate) fn delete_admitted(
    writes: &Writes,
    request: &ResourceRequest,
    options: &DeleteOptions,
) -> ApiResult<()> {
    let kind = stored(&request.kind);
    let mut last: Option<Arc<Object>> = None;
    loop {
        let Some(current) = find(writes, request, options, last.as_ref())? else {
            return Ok(());
        };
        let marked = mark(writes.reads.clock(), kind, &current.draft(), options);
        if options.dry_run {
            return Ok(());
        }
        match attempt(writes, request, &current, marked, false) {
            Attempt::Done(_) => return Ok(()),
            Attempt::Marked(marked) => last = Some(marked),
            Attempt::Raced(marked) => last = marked.or(last),
        }
    }
}

/// Returns the object to delete; `None` if another client has removed it since it was marked.
fn find(
    writes: &Writes,
    request: &ResourceRequest,
    options: &DeleteOptions,
    marked: Option<&Arc<Object>>,
) -> ApiResult<Option<Arc<Object>>> {
    let kind = stored(&request.kind);
    let current = writes.store.get(&request.key());
    let current = match (current, marked) {
        (Some(current), None) => current,
        (Some(current), Some(marked)) if current.uid == marked.uid => current,
        (None, None) => return Err(ApiError::not_found(kind, &request.name)),
        (_, Some(_)) => return Ok(None),
    };
    check_preconditions(kind, &current, marked, options)?;
    if &*kind.storage == "namespaces" && IMMORTAL_NAMESPACES.contains(&&*request.name) {
        let why = "this namespace may not be deleted";
        return Err(ApiError::forbidden(kind, &request.name, why));
    }
    Ok(Some(current))
}

/// Stores the mark or removes the object. The removal of an object that it has just marked is left to
/// the next attempt if it is to be reviewed.
fn attempt(
    writes: &Writes,
    request: &ResourceRequest,
    current: &Arc<Object>,
    marked: Marked,
    is_reviewed: bool,
) -> Attempt {
    let kind = stored(&request.kind);
    let key = current.key.clone();
    let mut latest = Arc::clone(current);
    if marked.changed {
        let expect = Expect::Version(current.resource_version);
        match writes.store.put(kind, key.clone(), expect, marked.draft) {
            Ok(object) => latest = object,
            Err(_) => return Attempt::Raced(None),
        }
    }
    match marked.fate {
        Fate::Removed if marked.changed && is_reviewed => Attempt::Marked(latest),
        Fate::Removed => match writes.store.delete(kind, key, latest.resource_version) {
            Ok(object) => Attempt::Done(object),
            Err(_) => Attempt::Raced(marked.changed.then_some(latest)),
        },
        Fate::Kept | Fate::Pending => Attempt::Done(latest),
    }
}

/// Decides how the object is deleted.
fn mark(clock: &dyn Clock, kind: &Kind, old: &Draft, options: &DeleteOptions) -> Marked {
    let mut draft = old.clone();
    let fate = mark_draft(clock, kind, &mut draft, options);
    Marked {
        changed: draft != *old,
        fate,
        draft,
    }
}

/// Marks an object as deleting, unless it is removed immediately.
///
/// Upstream: `BeforeDelete` and `updateForGracefulDeletionAndFinalizers`.
fn mark_draft(clock: &dyn Clock, kind: &Kind, draft: &mut Draft, options: &DeleteOptions) -> Fate {
    let is_deleting = draft.metadata().is_deleting();
    if &*kind.storage == DEFINITIONS {
        if !is_deleting {
            custom::begin_deletion(&mut draft.value, &now_text(clock));
        }
        return Fate::Kept;
    }
    if &*kind.storage == "namespaces" && !namespaces::is_empty(draft) {
        if is_deleting {
            return Fate::Pending;
        }
        begin_termination(clock, draft, options);
        return Fate::Kept;
    }
    let grace = if kind.has(Trait::Graceful) {
        begin_grace(clock, draft, options)
    } else {
        Grace::None
    };
    if grace == Grace::Pending {
        return Fate::Pending;
    }
    let finalizers = propagation_finalizers(kind, draft, options.propagation);
    let is_free = finalizers.is_empty();
    if is_free && grace == Grace::None {
        return Fate::Removed;
    }
    let list = Some(json!(finalizers)).filter(|_| !is_free);
    set_or_remove(draft.metadata_mut(), "finalizers", list);
    if let Grace::Begun(seconds) = grace {
        return if is_free && seconds == 0 {
            Fate::Removed
        } else {
            Fate::Kept
        };
    }
    mark_as_deleting(clock, draft);
    Fate::Kept
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
pub(crate) async fn delete_collection(
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
        match delete_one(writes, &one, options).await {
            // Another client deleted it in the meantime.
            Err(err) if err.code == 404 => {}
            deleted => drop(deleted?),
        }
    }
    let text = list_text(&writes.reads, &request.kind, page).await?;
    Ok(reply::json_pieces(StatusCode::OK, text))
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

/// Checks the preconditions. Its own mark doesn't fail the one about the version.
fn check_preconditions(
    kind: &Kind,
    object: &Object,
    marked: Option<&Arc<Object>>,
    options: &DeleteOptions,
) -> ApiResult<()> {
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
    let is_own = marked.is_some_and(|own| own.resource_version == object.resource_version);
    if let Some(wanted) = &options.resource_version
        && *wanted != version
        && !is_own
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
