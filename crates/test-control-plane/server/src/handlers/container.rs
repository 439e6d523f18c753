//! The pod, container and ports that a request names.

use kube_test_control_plane_api::kinds;
use kube_test_control_plane_api::object::{Draft, Key};
use kube_test_control_plane_api::status::{ApiError, ApiResult};
use serde_json::Value;

use crate::containers::{KubeletError, PodAddress};
use crate::route::ResourceRequest;
use crate::state::Reads;

/// Returns the object of a request.
pub(super) fn existing(reads: &Reads, request: &ResourceRequest) -> ApiResult<Draft> {
    let object = reads.store.get(&request.key());
    let object = object.ok_or_else(|| ApiError::not_found(&request.kind, &request.name))?;
    Ok(object.draft())
}

/// Returns the address of a pod; `None` if it has no node. Upstream reports a missing node
/// as a missing pod.
pub(super) fn pod_address(
    reads: &Reads,
    request: &ResourceRequest,
    pod: &Draft,
) -> ApiResult<Option<PodAddress>> {
    let node = pod.text("/spec/nodeName").unwrap_or_default();
    if node.is_empty() {
        return Ok(None);
    }
    if let Some(nodes) = kinds::by_resource("", "v1", "nodes")
        && reads.store.get(&Key::new(nodes, "", node)).is_none()
    {
        return Err(ApiError::not_found(&request.kind, node));
    }
    Ok(Some(PodAddress {
        node: node.to_owned(),
        namespace: request.namespace.clone(),
        name: request.name.clone(),
        uid: pod.text("/metadata/uid").unwrap_or_default().to_owned(),
    }))
}

/// Returns all values of a parameter, in their order.
pub(super) fn query_values(query: &str, wanted: &str) -> Vec<String> {
    let pairs = form_urlencoded::parse(query.as_bytes());
    let values = pairs.filter(|(name, _)| name == wanted);
    values.map(|(_, value)| value.into_owned()).collect()
}

/// Limit of forwarded ports: each needs two of the channels.
const PORTS_MAX: usize = 127;

/// Reads the ports to forward.
///
/// Upstream: `BuildV4Options`
pub(super) fn ports(query: &str, parameter: &str) -> Result<Vec<u16>, KubeletError> {
    let refused = |message: String| KubeletError::new(400, message);
    let texts = query_values(query, parameter);
    let texts: Vec<&str> = texts.iter().flat_map(|text| text.split(',')).collect();
    if texts.iter().all(|text| text.is_empty()) {
        return Err(refused("query parameter \"port\" is required".to_owned()));
    }
    if texts.len() > PORTS_MAX {
        return Err(refused(format!(
            "at most {PORTS_MAX} ports may be specified"
        )));
    }
    let parse = |text: &&str| match text.parse() {
        Ok(0) => Err(refused(format!("port {text:?} must be > 0"))),
        Ok(port) => Ok(port),
        Err(_) => Err(refused(format!("unable to parse {text:?} as a port"))),
    };
    texts.iter().map(parse).collect()
}

/// Returns the container that a request means: the given one, or else the only one.
///
/// # Errors
///
/// 400 if the pod doesn't have it, or has several.
///
/// Upstream: `validateContainer`
pub(super) fn container(pod: &Draft, name: &str, wanted: Option<&str>) -> ApiResult<String> {
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
        if let [container] = containers.as_slice() {
            return Ok((*container).to_owned());
        }
        let all = [init, containers, ephemeral].concat().join(" ");
        let message =
            format!("a container name must be specified for pod {name}, choose one of: [{all}]");
        return Err(ApiError::bad_request(message));
    };
    if [init, containers, ephemeral].concat().contains(&wanted) {
        return Ok(wanted.to_owned());
    }
    Err(ApiError::bad_request(format!(
        "container {wanted} is not valid for pod {name}"
    )))
}
