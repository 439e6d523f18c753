//! Admission: the review of a request by the stored policies and webhooks, in upstream's order.
//!
//! Mutating policies and webhooks change a request before its validation, in two rounds if a later
//! one changes what an earlier one has seen. Validating ones see the result. The compiled policies
//! and webhooks are below, in the state; the handlers above call the functions of this room, which
//! changes no stored object.
//!
//! Upstream: `reinvoker`, `AdmissionToValidateObjectFunc` and its siblings

mod form;
mod input;
mod mutation;
mod pod_security;
#[cfg(feature = "cel")]
mod policies;
#[cfg(not(feature = "cel"))]
#[path = "review/policies_without_cel.rs"]
mod policies;
mod reinvocation;
mod webhooks;

use std::borrow::Cow;
use std::sync::Arc;

use kube_test_control_plane_api::admission::Operation;
use kube_test_control_plane_api::custom::DEFINITIONS;
use kube_test_control_plane_api::kinds::{Subresource, Target, Verb, stored};
use kube_test_control_plane_api::object::Draft;
use kube_test_control_plane_api::options::{DeleteOptions, WriteOptions};
use kube_test_control_plane_api::status::ApiResult;
use kube_test_control_plane_api::views;
use serde_json::{Map, Value, json};

use crate::admission::Phase;
use crate::route::ResourceRequest;
use crate::state::Access;
use input::{Objects, served};
use mutation::Mutation;

/// The plug-ins of the server itself, which run before policies and webhooks in each round.
pub(crate) type Plugins<'a> = &'a (dyn Fn(&mut Draft) -> ApiResult<()> + Send + Sync);

/// Changes a created or changed object before its validation. The plug-ins have run once. Returns
/// true if a policy or webhook changed the object.
///
/// # Errors
///
/// A policy or webhook fails or denies the request.
pub(crate) async fn mutate_write(
    access: &Arc<Access>,
    request: &ResourceRequest,
    old: Option<&Draft>,
    new: &mut Draft,
    options: &WriteOptions,
    plugins: Plugins<'_>,
) -> ApiResult<bool> {
    let is_scale = request.requested == Target::Part(Subresource::Scale);
    if !is_reviewed(access, request, Phase::Mutating)
        || is_scale
        || request.is_posted() && old.is_some()
    {
        return Ok(false);
    }
    let objects = written(request, old, new, options);
    let name = match old {
        None => new.metadata().name().to_owned(),
        Some(_) => request.name.clone(),
    };
    Box::pin(async {
        let mut mutation = Mutation::new(access, request, &name, objects);
        run(&mut mutation).await?;
        let is_again = mutation.is_changed;
        if is_again {
            replace(request, new, mutation.take_object());
            plugins(new)?;
            mutation.objects.object = Some(served(request, new));
            run_again(&mut mutation).await?;
            replace(request, new, mutation.take_object());
        }
        Ok(is_again)
    })
    .await
}

/// Changes a scale before its validation.
///
/// # Errors
///
/// A policy or webhook fails or denies the request.
pub(crate) async fn mutate_scale(
    access: &Arc<Access>,
    request: &ResourceRequest,
    old: Value,
    new: Value,
    options: &WriteOptions,
) -> ApiResult<Value> {
    let objects = Objects {
        operation: Operation::Update,
        object: Some(new),
        old_object: Some(old),
        options: Some(&options.sent),
        dry_run: options.dry_run,
    };
    let object = mutate(access, request, &request.name, objects).await?;
    Ok(object.unwrap_or_default())
}

/// Changes a body posted to a subresource, or of a kind that is never stored, before its validation.
///
/// # Errors
///
/// A policy or webhook fails or denies the request.
pub(crate) async fn mutate_posted(
    access: &Arc<Access>,
    request: &ResourceRequest,
    body: Value,
    options: &WriteOptions,
) -> ApiResult<Value> {
    if !is_reviewed(access, request, Phase::Mutating) {
        return Ok(body);
    }
    let name = posted_name(request, &body);
    let objects = posted(body, options);
    let object = mutate(access, request, &name, objects).await?;
    Ok(object.unwrap_or_default())
}

/// Reviews a body posted to a subresource, or of a kind that is never stored.
///
/// # Errors
///
/// A policy or webhook fails or denies the request.
pub(crate) async fn review_posted(
    access: &Arc<Access>,
    request: &ResourceRequest,
    body: &Value,
    options: &WriteOptions,
) -> ApiResult<()> {
    if !is_reviewed(access, request, Phase::Validating) {
        return Ok(());
    }
    let name = posted_name(request, body);
    let objects = posted(body.clone(), options);
    Box::pin(validate(access, request, &name, &objects)).await
}

fn posted_name(request: &ResourceRequest, body: &Value) -> String {
    let name = body.pointer("/metadata/name").and_then(Value::as_str);
    let name = Some(&*request.name)
        .filter(|name| !name.is_empty())
        .or(name);
    name.unwrap_or_default().to_owned()
}

fn posted(body: Value, options: &WriteOptions) -> Objects<'_> {
    Objects {
        operation: Operation::Create,
        object: Some(body),
        old_object: None,
        options: Some(&options.sent),
        dry_run: options.dry_run,
    }
}

fn written<'a>(
    request: &ResourceRequest,
    old: Option<&Draft>,
    new: &Draft,
    options: &'a WriteOptions,
) -> Objects<'a> {
    Objects {
        operation: operation(old.is_some()),
        object: Some(served(request, new)),
        old_object: old.map(|old| served(request, old)),
        options: Some(&options.sent),
        dry_run: options.dry_run,
    }
}

/// Reviews a created or changed object of a name before it is stored.
///
/// # Errors
///
/// A policy or webhook fails or denies the request.
pub(crate) async fn review_write(
    access: &Arc<Access>,
    request: &ResourceRequest,
    name: &str,
    (old, new): (Option<&Draft>, &Draft),
    options: &WriteOptions,
) -> ApiResult<()> {
    pod_security::annotate(&access.reads, request);
    // A post to a subresource was reviewed with its body.
    if !is_reviewed(access, request, Phase::Validating) || request.is_posted() && old.is_some() {
        return Ok(());
    }
    let objects = written(request, old, new, options);
    Box::pin(validate(access, request, name, &objects)).await
}

/// Reviews a deletion: mutating policies and webhooks, too, which have no object to change.
///
/// # Errors
///
/// A policy or webhook fails or denies the request.
pub(crate) async fn review_deletion(
    access: &Arc<Access>,
    request: &ResourceRequest,
    old: &Draft,
    options: &DeleteOptions,
) -> ApiResult<()> {
    if !is_reviewed(access, request, Phase::Mutating)
        && !is_reviewed(access, request, Phase::Validating)
    {
        return Ok(());
    }
    let sent = sent_options(request, old, options);
    let objects = Objects {
        operation: Operation::Delete,
        object: None,
        old_object: Some(served(request, old)),
        options: Some(&sent),
        dry_run: options.dry_run,
    };
    // As in upstream, the deletion of a collection names no object.
    let name = match request.verb {
        Verb::DeleteCollection => "",
        _ => &request.name,
    };
    mutate(access, request, name, objects.clone()).await?;
    Box::pin(validate(access, request, name, &objects)).await
}

/// Returns the options of a deletion. The server adds a precondition to those of namespaces and
/// definitions.
fn sent_options<'a>(
    request: &ResourceRequest,
    old: &Draft,
    options: &'a DeleteOptions,
) -> Cow<'a, Map<String, Value>> {
    let is_bound = matches!(&*request.kind.storage, "namespaces" | DEFINITIONS);
    if !is_bound || request.verb == Verb::DeleteCollection {
        return Cow::Borrowed(&options.sent);
    }
    let mut sent = options.sent.clone();
    let preconditions = sent.entry("preconditions").or_insert(Value::Null);
    preconditions["uid"] = json!(old.metadata().uid());
    Cow::Owned(sent)
}

/// Reviews a connection to a subresource. Returns its options, which policies and webhooks may change.
///
/// # Errors
///
/// A policy or webhook fails or denies the request.
pub(crate) async fn review_connection(
    access: &Arc<Access>,
    request: &ResourceRequest,
    options: Value,
) -> ApiResult<Value> {
    if !access.reads.has_reviews() {
        return Ok(options);
    }
    let mut objects = Objects {
        operation: Operation::Connect,
        object: Some(options),
        old_object: None,
        options: None,
        dry_run: false,
    };
    objects.object = mutate(access, request, &request.name, objects.clone()).await?;
    Box::pin(validate(access, request, &request.name, &objects)).await?;
    Ok(objects.object.unwrap_or_default())
}

/// Returns false if no policy or webhook reviews requests to the resource in a phase.
fn is_reviewed(access: &Access, request: &ResourceRequest, phase: Phase) -> bool {
    let reads = &access.reads;
    reads.is_reviewed(phase, &request.kind.plural, request.admission_revision)
}

fn operation(has_old: bool) -> Operation {
    if has_old {
        Operation::Update
    } else {
        Operation::Create
    }
}

/// Makes both rounds of the mutating review of a request without plug-ins. Returns its object.
async fn mutate(
    access: &Arc<Access>,
    request: &ResourceRequest,
    name: &str,
    objects: Objects<'_>,
) -> ApiResult<Option<Value>> {
    Box::pin(async {
        let mut mutation = Mutation::new(access, request, name, objects);
        run(&mut mutation).await?;
        if mutation.is_changed {
            run_again(&mut mutation).await?;
        }
        Ok(mutation.objects.object)
    })
    .await
}

/// Makes the validating review of a request: policies, then webhooks.
async fn validate(
    access: &Arc<Access>,
    request: &ResourceRequest,
    name: &str,
    objects: &Objects<'_>,
) -> ApiResult<()> {
    policies::prepare(&access.reads, request.admission_revision).await;
    policies::review(access, request, name, objects)?;
    webhooks::review(access, request, name, objects).await
}

/// Makes a round of the mutating review: policies, then webhooks.
async fn run(mutation: &mut Mutation<'_>) -> ApiResult<()> {
    mutation.policies.begin(mutation.objects.object.as_ref());
    let (reads, request) = (&mutation.access.reads, mutation.request);
    policies::prepare(reads, request.admission_revision).await;
    policies::mutate(mutation)?;
    mutation.policies.end(mutation.objects.object.as_ref());
    mutation.webhooks.begin(mutation.objects.object.as_ref());
    webhooks::mutate(mutation).await?;
    mutation.webhooks.end(mutation.objects.object.as_ref());
    Ok(())
}

/// Makes the second round of the mutating review.
async fn run_again(mutation: &mut Mutation<'_>) -> ApiResult<()> {
    mutation.policies.begin_again();
    mutation.webhooks.begin_again();
    run(mutation).await
}

/// Replaces an object by the one that the review returned, in the form of the request. Verbatim data
/// stays unless it was changed.
fn replace(request: &ResourceRequest, draft: &mut Draft, mut object: Value) {
    let is_kept = draft.data.is_some() && served(request, draft)["data"] == object["data"];
    let data = draft.data.take().filter(|_| is_kept);
    views::to_stored(&request.kind, &mut object);
    *draft = Draft::from_value(stored(&request.kind), object);
    draft.data = data.or_else(|| draft.data.take());
}
