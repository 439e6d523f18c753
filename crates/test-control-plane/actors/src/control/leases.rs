//! A test's controls over leases.

use kube_apimachinery::time::format_micros;
use kube_test_control_plane_api::members::object_mut;
use kube_test_control_plane_api::object::Key;
use serde_json::{Value, json};

use super::{ActionError, change};
use crate::client::ActorClient;
use crate::server::ActorServer;

/// A test's controls over leader election leases.
#[derive(Debug)]
pub struct Leases {
    client: ActorClient,
}

impl Leases {
    /// Controls the leases of a server. For the crates of the control plane.
    #[doc(hidden)]
    pub fn new(server: &ActorServer) -> Self {
        let client = ActorClient::new(server, "test");
        Self { client }
    }

    /// Takes a lease from its holder, like a candidate that believes it expired. The holder notices
    /// at its next renewal.
    ///
    /// # Errors
    ///
    /// The lease does not exist.
    pub async fn steal(
        &self,
        namespace: &str,
        name: &str,
        holder: &str,
    ) -> Result<(), ActionError> {
        let key = Key::of("leases", namespace, name);
        let now = format_micros(self.client.server.now());
        let set = |lease: &mut Value| {
            let spec = object_mut(lease, "spec");
            let transitions = spec.get("leaseTransitions").and_then(Value::as_i64);
            let transitions = transitions.unwrap_or(0).saturating_add(1);
            spec.insert("leaseTransitions".to_owned(), json!(transitions));
            spec.insert("holderIdentity".to_owned(), json!(holder));
            spec.insert("acquireTime".to_owned(), json!(now));
            spec.insert("renewTime".to_owned(), json!(now));
        };
        let action = format!("stealing lease {namespace}/{name}");
        // An update of a missing lease would create it.
        if self.client.get(&key).is_none() {
            return Err(ActionError {
                action,
                code: 404,
                message: format!("leases.coordination.k8s.io {name:?} not found"),
            });
        }
        change(&self.client, action, &key, set).await
    }
}
