//! Pods and claims, with in-memory objects or with a fake API that records requests.

use statefulset_client::fake::{CallError, Verb as ApiVerb};
use statefulset_client::resource::{PERSISTENT_VOLUME_CLAIMS, PODS};
use statefulset_controller_util::testing::Call;
use statefulset_controller_util::testing::builders::{self, Builder, owner_reference};

use super::*;
use crate::stateful_set_utils::{NewPod, Ordinal};
use crate::tests::world::{ApiWorld, CLAIMS, World, existing};

mod create;
mod delete;
mod large_pods;
mod not_executed;
mod object_manager;
mod retain;
mod stale_owners;
mod update;

/// A set of two replicas with one claim template.
fn web() -> Builder<StatefulSet> {
    builders::set("web").replicas(2).claim_template("data")
}

fn new_pod(set: &StatefulSet, ordinal: i32) -> NewPod {
    NewPod::new(set, "web-1", Ordinal::from(ordinal))
}

fn set_owner() -> Value {
    owner_reference(("apps/v1", "StatefulSet"), "web", "web-uid", Some(true))
}

fn foreign_owner() -> Value {
    owner_reference(("example.com/v1", "Backup"), "b", "b-uid", Some(true))
}

fn is_already_exists(error: &Error) -> bool {
    matches!(error, Error::Api(error) if error.is_already_exists())
}

fn already_exists() -> ApiError {
    ApiError::api(409, "AlreadyExists", "taken")
}

/// Names of a claim's owners.
fn owners(json: &Value) -> Vec<String> {
    let references = json["metadata"]["ownerReferences"].as_array();
    let name = |reference: &Value| reference["name"].as_str().unwrap().to_owned();
    references.into_iter().flatten().map(name).collect()
}
