//! What a test does to leases.

use kube_apimachinery::time::format_micros;
use kube_test_control_plane_api::object::{Key, object_mut};
use serde_json::{Value, json};

use super::{ActionError, change};
use crate::client::ActorClient;
use crate::server::ActorServer;

/// Acts on the leases by which leaders are elected.
#[derive(Debug)]
pub struct Leases {
    client: ActorClient,
}

impl Leases {
    /// Acts on the leases of a server.
    pub fn new(server: &ActorServer) -> Self {
        let client = ActorClient::new(server, "test");
        Self { client }
    }

    /// Takes a lease from its holder, as another candidate would that believes it to be over: the
    /// holder learns of it when it next renews the lease.
    ///
    /// # Errors
    ///
    /// There is no such lease.
    pub async fn steal(
        &self,
        namespace: &str,
        name: &str,
        holder: &str,
    ) -> Result<(), ActionError> {
        let key = Key {
            storage: "leases",
            namespace: namespace.into(),
            name: name.into(),
        };
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
        // An update of a lease that isn't there would create it.
        if self.client.get(&key).is_none() {
            return Err(ActionError {
                action,
                code: 404,
                message: "there is no such lease".to_owned(),
            });
        }
        change(&self.client, action, &key, set).await
    }
}
