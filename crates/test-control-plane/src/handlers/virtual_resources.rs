//! Resources that are answered to and never stored.

use serde_json::{Value, json};

use crate::decode;
use crate::incoming::Incoming;
use crate::kinds::{self, Subresource};
use crate::reply::Reply;
use crate::route::{ResourceRequest, Target};
use crate::server::ApiServer;
use crate::status::{ApiError, ApiResult};

impl ApiServer {
    /// Answers a POST of a kind with [`Trait::Virtual`](crate::kinds::Trait::Virtual), and that of
    /// the subresource `token`.
    pub(crate) fn post_virtual(
        &self,
        request: &ResourceRequest,
        incoming: &Incoming,
    ) -> ApiResult<Reply> {
        match request.kind.kind {
            "Binding" => self.post_binding(request, incoming),
            _ => Err(ApiError::method_not_allowed()),
        }
    }

    /// The older form of binding a pod: the body names the pod.
    fn post_binding(&self, request: &ResourceRequest, incoming: &Incoming) -> ApiResult<Reply> {
        let body = decode::value(incoming.format()?, &incoming.body)?;
        let name = body.pointer("/metadata/name").and_then(Value::as_str);
        let pods = kinds::by_resource("", "v1", "pods").ok_or_else(ApiError::no_such_resource)?;
        let request = ResourceRequest {
            kind: pods,
            target: Target::of(Subresource::Binding),
            name: name.unwrap_or_default().to_owned(),
            ..request.clone()
        };
        self.bind(&request, &body)
    }

    /// The components of the control plane, of which none can be asked.
    pub(crate) fn component_statuses() -> Value {
        json!({
            "kind": "ComponentStatusList",
            "apiVersion": "v1",
            "metadata": {},
            "items": [],
        })
    }
}
