//! Installation of the default roles and bindings.

use kube_test_control_plane_api::object::Key;
use kube_test_control_plane_store::store::Expect;
use serde_json::{Value, json};

use crate::auth::rbac::bootstrap_policy;
use crate::state::{Writes, now_text};

/// Stores the missing default roles and bindings.
pub(crate) fn install_bootstrap_policy(writes: &Writes) {
    for (kind, mut draft) in bootstrap_policy::objects() {
        let key = Key::new(kind, draft.metadata().namespace(), draft.metadata().name());
        let (uid, now) = (writes.random.new_uid(), now_text(writes.reads.clock()));
        let metadata = draft.metadata_mut();
        metadata.insert("uid".to_owned(), json!(uid));
        let managers = metadata
            .get_mut("managedFields")
            .and_then(Value::as_array_mut);
        for entry in managers.into_iter().flatten() {
            entry["time"] = json!(now);
        }
        metadata.insert("creationTimestamp".to_owned(), json!(now));
        // An existing object with this name stays.
        let _ = writes.store.put(kind, key, Expect::Absent, draft);
    }
}
