//! Create.

use std::sync::Arc;

use kube_test_control_plane_api::kinds::{Kind, Target, Trait, Verb, stored};
use kube_test_control_plane_api::members::set_or_remove;
use kube_test_control_plane_api::normalize::Empties;
use kube_test_control_plane_api::object::{Draft, Key, Object};
use kube_test_control_plane_api::options::WriteOptions;
use kube_test_control_plane_api::status::{ApiError, ApiResult};
use kube_test_control_plane_api::validation::Subject;
use kube_test_control_plane_api::{defaults, managed_fields, normalize, warnings};
use kube_test_control_plane_store::store::Expect;
use serde_json::{Value, json};

use super::admit::review_write;
use super::allocate::allocate;
use super::classes::{
    admit_runtime_class, admit_storage_class, check_default_class, check_overhead, priority_class,
};
use super::service_accounts::{admit_service_account, furnish_namespace};
use super::signing_request::note_requester;
use super::validate::validate;
use crate::access;
use crate::admission::Phase;
use crate::review;
use crate::route::ResourceRequest;
use crate::state::{Reads, Writes};
use crate::write::Earlier;
use crate::write::{
    self, Written, check_namespace, check_stored_size, keep_reset, remove_empty, served_draft,
    served_text, stored_form,
};

/// Number of generated names tried before a collision is reported.
const GENERATE_NAME_TRIES: usize = 8;

/// An admitted object before its name and identity are fixed.
#[derive(Clone, Debug)]
struct Admitted {
    draft: Draft,
    empties: Empties,
    /// The name before the review, if there was one; empty if it is still to be generated.
    sent_name: Option<String>,
    /// True for a job that was sent with labels.
    is_labelled: bool,
}

/// The origin of a new object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    /// The body of a request.
    Body,
    /// An apply configuration, which has been decoded.
    Apply,
}

/// Creates an object.
pub(crate) async fn create(
    writes: &Writes,
    request: &ResourceRequest,
    new: (Draft, Origin),
    options: &WriteOptions,
) -> ApiResult<Written> {
    let admitted = admit(writes, request, new, options).await?;
    let metadata = admitted.draft.metadata();
    let prefix = metadata.text("generateName").to_owned();
    if !metadata.name().is_empty() || prefix.is_empty() {
        return create_named(writes, request, admitted, options).await;
    }
    let mut result = Err(ApiError::internal("no name was tried"));
    for _ in 0..GENERATE_NAME_TRIES {
        let mut admitted = admitted.clone();
        let name = writes.random.generate_name(&prefix);
        let metadata = admitted.draft.metadata_mut();
        metadata.insert("name".to_owned(), json!(name));
        result = create_named(writes, request, admitted, options).await;
        if !matches!(&result, Err(err) if err.reason == "AlreadyExists") {
            break;
        }
    }
    result
}

/// Sets the defaults and the managers of a new object, and admits it.
async fn admit(
    writes: &Writes,
    request: &ResourceRequest,
    (mut draft, origin): (Draft, Origin),
    options: &WriteOptions,
) -> ApiResult<Admitted> {
    let reads = &*writes.reads;
    let behaviour = reads.behaviour();
    let served = &request.kind;
    let kind = stored(served);
    check_definition(kind, &draft)?;
    let in_namespace = check_namespace(request, &draft);
    write::to_stored(behaviour, served, &mut draft)?;
    normalize::check_overwritten(kind, &draft, behaviour.version)?;
    keep_reset(&mut draft);
    let is_trackable = managed_fields::is_trackable(served, &draft.value);
    write::wipe(kind, &request.namespace, &mut draft);
    // Mutating policies and webhooks see the status that was sent.
    let revision = request.admission_revision;
    let is_mutated = reads.is_reviewed(Phase::Mutating, &served.plural, revision);
    if !is_mutated {
        write::drop_status(kind, &mut draft);
    }
    let is_labelled = defaults::is_labelled(&draft.value);
    write::set_defaults(reads, kind, &mut draft);
    let empties = Empties::of(&draft.value);
    match origin {
        Origin::Body => write::normalize(behaviour, kind, &mut draft)?,
        Origin::Apply => write::normalize_applied(behaviour, kind, &mut draft)?,
    }
    write::track(reads.clock(), request, options, None, &mut draft)?;
    if !is_trackable {
        draft.metadata_mut().remove("managedFields");
    }
    let plugins = |draft: &mut Draft| {
        check_namespace_is_open(reads, request, draft)?;
        admit_service_account(writes, kind, &request.namespace, draft)?;
        defaults::admit_create(kind, draft, &|name| priority_class(reads, name))?;
        admit_runtime_class(reads, kind, draft)?;
        check_default_class(reads, kind, draft)?;
        admit_storage_class(reads, kind, draft);
        Ok(())
    };
    plugins(&mut draft)?;
    in_namespace?;
    let sent_name = is_mutated.then(|| draft.metadata().name().to_owned());
    if review::mutate_write(&writes.access, request, None, &mut draft, options, &plugins).await? {
        check_namespace(request, &draft)?;
        write::set_namespace(kind, &request.namespace, &mut draft);
    }
    if is_mutated {
        write::drop_status(kind, &mut draft);
        write::set_defaults(reads, kind, &mut draft);
        // Validating webhooks see the unknown fields that mutating ones added to a custom resource.
        if kind.custom.is_none() {
            write::normalize(behaviour, kind, &mut draft)?;
        }
    }
    Ok(Admitted {
        draft,
        empties,
        sent_name,
        is_labelled,
    })
}

async fn create_named(
    writes: &Writes,
    request: &ResourceRequest,
    admitted: Admitted,
    options: &WriteOptions,
) -> ApiResult<Written> {
    let reads = &*writes.reads;
    let behaviour = reads.behaviour();
    let (served, kind) = (&request.kind, stored(&request.kind));
    let Admitted {
        mut draft,
        empties,
        sent_name,
        is_labelled,
    } = admitted;
    let version = draft.metadata_mut().remove("resourceVersion");
    write::prepare_create(writes, kind, &mut draft, is_labelled);
    note_requester(request, &mut draft);
    defaults::drop_disabled(kind, behaviour.gates, &mut draft, None);
    let (hooks, dry_run) = (&writes.admission, options.dry_run);
    if review_write(hooks, request, None, &mut draft, dry_run)? {
        write::set_defaults(reads, kind, &mut draft);
        write::normalize(behaviour, kind, &mut draft)?;
    }
    remove_empty(draft.metadata_mut());
    let mut warnings = defaults::prepare_created(kind, &mut draft);
    let name = draft.metadata().name().to_owned();
    let key = Key::new(kind, &request.namespace, &name);
    defaults::complete_addresses(kind, &mut draft, None)
        .map_err(|errors| ApiError::invalid(kind, &name, &errors))?;
    let allocated = allocate(writes, kind, &key, &mut draft, None, options.dry_run)?;
    let subject = Subject {
        kind,
        served,
        new: &draft,
        old: None,
        target: Target::Object,
        gates: behaviour.gates,
        version: behaviour.version,
    };
    access::check_escalation(&writes.access, request, &draft, None)?;
    let found = validate(writes, request, subject, (&empties, &name)).inspect_err(|_| {
        let earlier = warnings.iter().cloned();
        earlier.for_each(|text| request.remarks.warn(text));
    })?;
    check_overhead(reads, kind, &empties.restored(kind, &draft))?;
    normalize::drop_empty_lists(kind, &mut draft, behaviour.version);
    warnings.extend(found);
    warnings.extend(warnings::of_create(kind, &draft.value));
    if request.verb != Verb::Create {
        access::authorize_create_on_update(&writes.access, request)?;
    }
    let reviewed = sent_name.filter(|name| !name.is_empty());
    let reviewed = reviewed.as_deref().unwrap_or(&name);
    review::review_write(&writes.access, request, reviewed, (None, &draft), options).await?;
    write::fit_to_store(reads, request, &mut draft)?;
    let is_generated = !draft.metadata().text("generateName").is_empty();
    let written = |text| Written {
        text,
        created: true,
        warnings,
    };
    let exists = |object: Option<Arc<Object>>| {
        let error = if is_generated {
            ApiError::no_unique_name(kind, &name)
        } else {
            ApiError::already_exists(kind, &name)
        };
        if object.is_some_and(|object| object.deleting) {
            error.of_object_in_deletion()
        } else {
            error
        }
    };
    if options.dry_run {
        if let Some(object) = writes.store.get(&key) {
            return Err(exists(Some(object)));
        }
        stored_form(reads, kind, &mut draft).await?;
        // Nothing replaces the version that was sent.
        let version = version.filter(|version| *version != "");
        set_or_remove(draft.metadata_mut(), "resourceVersion", version);
        let text = served_draft(reads, served, draft, Earlier::Used).await;
        return text.map(written);
    }
    if names_version(version.as_ref()) {
        return Err(ApiError::internal(
            "resourceVersion should not be set on objects to be created",
        ));
    }
    check_stored_size(kind, &key, &draft)?;
    stored_form(reads, kind, &mut draft).await?;
    let stored = writes.store.put(kind, key.clone(), Expect::Absent, draft);
    drop(allocated);
    if &*kind.storage == "namespaces" && stored.is_ok() {
        furnish_namespace(writes, &name);
    }
    match stored {
        Ok(object) => {
            let text = served_text(reads, served, &object, Earlier::Used).await;
            text.map(written)
        }
        Err(_) => Err(exists(writes.store.get(&key))),
    }
}

/// Reports whether the new object was sent with a version.
fn names_version(version: Option<&Value>) -> bool {
    let number = version.and_then(Value::as_str).map(str::parse::<u64>);
    number.is_some_and(|number| number.is_ok_and(|number| number != 0))
}

/// Rejects creates in missing or terminating namespaces.
fn check_namespace_is_open(
    reads: &Reads,
    request: &ResourceRequest,
    draft: &Draft,
) -> ApiResult<()> {
    if !request.kind.namespaced {
        return Ok(());
    }
    let name = &request.namespace;
    let Some(namespaces) = kube_test_control_plane_api::kinds::by_resource("", "v1", "namespaces")
    else {
        return Ok(());
    };
    let key = Key::new(namespaces, "", name);
    let Some(namespace) = reads.store.get(&key) else {
        return Err(ApiError::not_found(namespaces, name));
    };
    if !namespace.deleting {
        return Ok(());
    }
    let why =
        format!("unable to create new content in namespace {name} because it is being terminated");
    let mut error = ApiError::forbidden(&request.kind, draft.metadata().shown_name(), &why);
    if let Some(details) = &mut error.details {
        details["causes"] = json!([{
            "reason": "NamespaceTerminating",
            "message": format!("namespace {name} is being terminated"),
            "field": "metadata.namespace",
        }]);
    }
    Err(error)
}

/// Reports whether a PUT of a missing object creates it.
pub(crate) fn creates_on_update(request: &ResourceRequest) -> bool {
    request.kind.has(Trait::CreateOnUpdate) && request.target == Target::Object
}

/// Rejects an object whose definition is being deleted.
fn check_definition(kind: &Kind, draft: &Draft) -> ApiResult<()> {
    if kind
        .custom
        .as_ref()
        .is_some_and(|custom| custom.terminating)
    {
        let why = "create not allowed while custom resource definition is terminating";
        return Err(ApiError::forbidden(
            kind,
            draft.metadata().shown_name(),
            why,
        ));
    }
    Ok(())
}
