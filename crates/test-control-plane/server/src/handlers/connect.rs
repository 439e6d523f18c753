//! Kubelet subresources of pods, services and nodes. There is no kubelet, so logs are empty and
//! connections fail.

use bytes::Bytes;
use http::StatusCode;
use kube_test_control_plane_api::kinds;
use kube_test_control_plane_api::kinds::{Subresource, Target};
use kube_test_control_plane_api::object::{Draft, Key};
use kube_test_control_plane_api::query::Query;
use kube_test_control_plane_api::status::{ApiError, ApiResult};
use serde_json::Value;

use crate::reply::{self, Reply};
use crate::route::ResourceRequest;
use crate::server::ApiServer;

impl ApiServer {
    /// Returns the logs of a container, which are empty for simulated containers.
    pub(crate) fn pod_log(&self, request: &ResourceRequest, query: &Query) -> ApiResult<Reply> {
        let pod = self.existing(request)?;
        check_container(&pod, &request.name, query.get("container"))?;
        if let Some(node) = pod.text("/spec/nodeName").filter(|node| !node.is_empty()) {
            self.check_node(request, node)?;
        }
        Ok(reply::text(StatusCode::OK, Bytes::new()))
    }

    /// Rejects a connection with the error for the first missing part.
    pub(crate) fn connect(&self, request: &ResourceRequest, query: &Query) -> ApiError {
        // A service or pod may be given with scheme and port: `https:web:443`.
        let mut request = request.clone();
        if request.target == Target::Part(Subresource::Proxy) {
            let parts: Vec<&str> = request.name.split(':').collect();
            request.name = match parts.as_slice() {
                [_, name, _] | [name, ..] => (*name).to_owned(),
                [] => String::new(),
            };
        }
        let object = match self.existing(&request) {
            Ok(object) => object,
            Err(err) => return err,
        };
        let name = &request.name;
        match &*request.kind.storage {
            "services" => ApiError {
                details: Some(serde_json::json!({})),
                ..ApiError::new(
                    503,
                    "ServiceUnavailable",
                    format!("no endpoints available for service {name:?}"),
                )
            },
            "nodes" => nothing_listens(name),
            _ => {
                if request.target != Target::Part(Subresource::Proxy)
                    && request.target != Target::Part(Subresource::PortForward)
                    && let Err(err) = check_container(&object, name, query.get("container"))
                {
                    return err;
                }
                match object.text("/spec/nodeName").unwrap_or_default() {
                    "" => {
                        ApiError::bad_request(format!("pod {name} does not have a host assigned"))
                    }
                    node => {
                        let missing = self.check_node(&request, node).err();
                        missing.unwrap_or_else(|| nothing_listens(node))
                    }
                }
            }
        }
    }

    fn existing(&self, request: &ResourceRequest) -> ApiResult<Draft> {
        let object = self.store().get(&Self::key(request));
        let object = object.ok_or_else(|| ApiError::not_found(&request.kind, &request.name))?;
        Ok(object.draft())
    }

    /// Checks that the node of a pod exists. The reference reports a missing node as a missing pod.
    fn check_node(&self, request: &ResourceRequest, name: &str) -> ApiResult<()> {
        let Some(nodes) = kinds::by_resource("", "v1", "nodes") else {
            return Ok(());
        };
        match self.store().get(&Key::new(nodes, "", name)) {
            Some(_) => Ok(()),
            None => Err(ApiError::not_found(&request.kind, name)),
        }
    }
}

fn nothing_listens(node: &str) -> ApiError {
    ApiError::internal(format!(
        "error dialing backend: no kubelet listens on node {node}"
    ))
}

/// Checks that the pod has the container, or exactly one if none is given.
fn check_container(pod: &Draft, name: &str, wanted: Option<&str>) -> ApiResult<()> {
    let names = |list: &str| -> Vec<&str> {
        let list = pod.value.pointer(&format!("/spec/{list}"));
        let list = list.and_then(Value::as_array).into_iter().flatten();
        list.filter_map(|container| container.get("name")?.as_str())
            .collect()
    };
    let containers = names("containers");
    let init = names("initContainers");
    let ephemeral = names("ephemeralContainers");
    let Some(wanted) = wanted else {
        if containers.len() == 1 {
            return Ok(());
        }
        let mut message = format!(
            "a container name must be specified for pod {name}, choose one of: [{}]",
            containers.join(" ")
        );
        if !init.is_empty() {
            let init = init.join(" ");
            message = format!("{message} or one of the init containers: [{init}]");
        }
        return Err(ApiError::bad_request(message));
    };
    if [containers, init, ephemeral].concat().contains(&wanted) {
        return Ok(());
    }
    Err(ApiError::bad_request(format!(
        "container {wanted} is not valid for pod {name}"
    )))
}
