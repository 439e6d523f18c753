//! The parameters of a policy's binding.
//!
//! Upstream: `CollectParams`, `ensureParamsForPolicyLocked`

use std::collections::BTreeSet;
use std::sync::Arc;

use kube_test_control_plane_api::kinds::{self, Kind};
use kube_test_control_plane_api::object::{Key, Object};
use serde_json::{Value, json};

use crate::admission::policy_index::ParamReference;
use crate::admission::stored;
use crate::state::Reads;
use crate::write::conversion;
use crate::write::served_value;

/// Returns the row of a kind of parameters.
///
/// # Errors
///
/// The server has no such kind; the text is upstream's.
pub(super) fn param_kind(
    reads: &Reads,
    (version, kind): &(String, String),
) -> Result<Arc<Kind>, String> {
    let custom = || reads.custom_kinds().by_kind(version, kind).map(Arc::clone);
    let found = kinds::by_kind(version, kind)
        .map(Arc::clone)
        .or_else(custom);
    found.ok_or_else(|| {
        let (group, version) = version.split_once('/').unwrap_or(("", version));
        format!("failed to find resource referenced by paramKind: '{group}/{version}, Kind={kind}'")
    })
}

/// Converts the parameters of all policies at a revision by the webhooks of their definitions, where
/// these have any.
pub(in crate::review) async fn prepare(reads: &Reads, at: Option<u64>) {
    let custom = reads.custom_kinds();
    if !custom.rows().any(|row| conversion::has_webhook(row)) {
        return;
    }
    let index = reads.policies.index(&reads.store, at);
    let mutating = index
        .mutating
        .iter()
        .map(|it| it.policy.param_kind.as_ref());
    let validating = index
        .validating
        .iter()
        .map(|it| it.policy.param_kind.as_ref());
    let kinds: BTreeSet<&(String, String)> = mutating.chain(validating).flatten().collect();
    for kind in kinds {
        if let Ok(row) = param_kind(reads, kind) {
            let objects = stored::objects(&reads.store, (&row.storage, ""), at);
            conversion::prepare(reads, &row, &objects).await;
        }
    }
}

/// Returns the parameters of a binding at a revision for a request in a namespace; a null one if it
/// has none.
///
/// # Errors
///
/// Upstream can't be used, or nothing matches and the binding requires something.
pub(super) fn collect(
    reads: &Reads,
    kind: Option<&Arc<Kind>>,
    reference: Option<&ParamReference>,
    (namespace, at): (&str, Option<u64>),
) -> Result<Vec<Value>, String> {
    let Some((kind, reference)) = kind.zip(reference) else {
        return Ok(vec![Value::Null]);
    };
    let namespace = match (kind.namespaced, reference.namespace.as_str()) {
        (true, "") if namespace.is_empty() => {
            return Err(
                "cannot use namespaced paramRef in policy binding that matches cluster-scoped \
                 resources"
                    .to_owned(),
            );
        }
        (true, "") => namespace,
        (true, own) => own,
        (false, "") => "",
        (false, _) => {
            let text = "paramRef.namespace must not be provided for a cluster-scoped `paramKind`";
            return Err(text.to_owned());
        }
    };
    let all = || stored::objects(&reads.store, (&kind.storage, namespace), at);
    let objects: Vec<Arc<Object>> = match &reference.selector {
        None => {
            let key = Key::new(kind, namespace, &reference.name);
            let found = match at {
                None => reads.store.get(&key),
                Some(_) => all().into_iter().find(|object| object.key == key),
            };
            found.into_iter().collect()
        }
        Some(selector) => {
            let selector = selector.as_ref().map_err(String::clone)?;
            let mut objects = all();
            objects.retain(|object| selector.matches(&object.labels));
            objects
        }
    };
    if objects.is_empty() && reference.is_required {
        let text = "no params found for policy binding with `Deny` parameterNotFoundAction";
        return Err(text.to_owned());
    }
    let objects = objects.iter();
    objects.map(|object| value(reads, kind, object)).collect()
}

/// Returns an object in the version of its row.
fn value(reads: &Reads, kind: &Arc<Kind>, object: &Object) -> Result<Value, String> {
    let draft = conversion::known(reads, kind, object).map_err(|error| error.message)?;
    let mut value = served_value(kind, &draft).into_owned();
    value["apiVersion"] = json!(kind.api_version());
    Ok(value)
}
