//! Service accounts of pods and namespaces.

use kube_test_control_plane_api::defaults;
use kube_test_control_plane_api::kinds::{self, Kind};
use kube_test_control_plane_api::object::{Draft, Key};
use kube_test_control_plane_api::status::{ApiError, ApiResult};
use kube_test_control_plane_store::store::Expect;
use serde_json::{Value, json};

use crate::state::{Reads, Writes};
use crate::write;

/// The annotation of the certificates of each namespace.
const DESCRIPTION: &str = "Contains a CA bundle that can be used to verify the kube-apiserver when \
                           using internal endpoints such as the internal service IP or \
                           kubernetes.default.svc. No other usage is guaranteed across distributions \
                           of Kubernetes clusters.";

/// Completes a new pod by its service account.
///
/// # Errors
///
/// The account is missing.
pub(crate) fn admit_service_account(
    writes: &Writes,
    kind: &Kind,
    namespace: &str,
    draft: &mut Draft,
) -> ApiResult<()> {
    let is_admitted = writes.service_accounts.is_some() && &*kind.storage == "pods";
    if !is_admitted || defaults::is_mirror(&draft.value) {
        return Ok(());
    }
    let name = defaults::choose_account(&mut draft.value);
    let account = account(&writes.reads, namespace, &name).ok_or_else(|| {
        let why = format!(
            "error looking up service account {namespace}/{name}: serviceaccount {name:?} not found"
        );
        ApiError::forbidden(kind, draft.metadata().name(), &why)
    })?;
    let new_name = |prefix: &str| writes.random.generate_name(prefix);
    defaults::use_account(&mut draft.value, &account, new_name);
    Ok(())
}

fn account(reads: &Reads, namespace: &str, name: &str) -> Option<Value> {
    let key = Key::new(kinds::by_storage("serviceaccounts")?, namespace, name);
    Some(reads.store.get(&key)?.value())
}

/// Adds the default account to a new namespace, and the certificates of the server.
///
/// Upstream: `ServiceAccountsController`, `rootcacertpublisher.Publisher`
pub(crate) fn furnish_namespace(writes: &Writes, name: &str) {
    let Some(root_ca) = &writes.service_accounts else {
        return;
    };
    let certificates = json!({
        "kind": "ConfigMap",
        "apiVersion": "v1",
        "metadata": {
            "name": "kube-root-ca.crt",
            "annotations": {"kubernetes.io/description": DESCRIPTION},
        },
        "data": {"ca.crt": root_ca.get().map(String::as_str).unwrap_or_default()},
    });
    let account = json!({
        "kind": "ServiceAccount",
        "apiVersion": "v1",
        "metadata": {"name": "default"},
    });
    for (resource, object) in [("serviceaccounts", account), ("configmaps", certificates)] {
        let Some(kind) = kinds::by_storage(resource) else {
            continue;
        };
        let mut draft = Draft::from_value(kind, object);
        write::set_namespace(kind, name, &mut draft);
        write::set_defaults(&writes.reads, kind, &mut draft);
        write::prepare_create(writes, kind, &mut draft, false);
        let key = Key::new(kind, name, draft.metadata().name());
        // The name may be that of an object of an earlier namespace.
        let _exists = writes.store.put(kind, key, Expect::Absent, draft);
    }
}
