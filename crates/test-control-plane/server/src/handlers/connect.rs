//! Kubelet subresources of pods, services and nodes. Without a kubelet, connections fail.

use http::Method;
use kube_test_control_plane_api::kinds;
use kube_test_control_plane_api::kinds::{Subresource, Target, Verb};
use kube_test_control_plane_api::object::{Draft, Key};
use kube_test_control_plane_api::status::{ApiError, ApiResult};
use serde_json::Value;

use crate::auth::attributes::Attributes;
use crate::containers::{KubeletError, PodAddress};
use crate::incoming::Incoming;
use crate::reply::Reply;
use crate::route::ResourceRequest;
use crate::server::ApiServer;
use crate::streams::{self, Channels, Handshake, Protocol};

impl ApiServer {
    /// Connects to a container or to ports of a pod, or rejects the connection with the error for
    /// the first missing part.
    pub(crate) async fn connect(
        &self,
        request: &ResourceRequest,
        incoming: &Incoming,
    ) -> ApiResult<Reply> {
        let Target::Part(part) = request.target else {
            return Err(ApiError::method_not_allowed());
        };
        if part == Subresource::Proxy {
            return self.proxy(request, incoming).await;
        }
        self.authorize_connection(request, incoming)?;
        let query = &incoming.query;
        let pod = self.existing(request)?;
        let name = &request.name;
        let container = match part {
            Subresource::PortForward => String::new(),
            _ => container(&pod, name, query.get("container"))?,
        };
        let Some(address) = self.pod_address(request, &pod)? else {
            let message = format!("pod {name} does not have a host assigned");
            return Err(ApiError::bad_request(message));
        };
        let Some(kubelets) = self.kubelets() else {
            return Err(nothing_listens(&address.node));
        };
        let supported: &[Protocol] = match part {
            Subresource::PortForward => &[Protocol::V4, Protocol::Tunnel],
            _ => &[Protocol::V5, Protocol::V4],
        };
        let handshake = Handshake::of(incoming, supported)?;
        let found = kubelets.find(address).await;
        if handshake.protocol == Protocol::Tunnel {
            let pod = found.map_err(as_error)?;
            return Ok(handshake.accept(self, |socket| streams::tunnel(socket, pod)));
        }
        if part == Subresource::PortForward {
            let ports = ports(incoming, "ports").map_err(as_error)?;
            let pod = found.map_err(as_error)?;
            let serve = |socket| streams::forward(socket, ports, pod);
            return Ok(handshake.accept(self, serve));
        }
        let process = found.and_then(|pod| {
            if part == Subresource::Attach {
                return pod.attach(&container);
            }
            let command = query_values(&incoming.query_text, "command");
            pod.exec(&container, command)
        });
        let channels = Channels::of(query, ["stdin", "stdout", "stderr"]);
        let process = channels.clone().and(process);
        // Only the translation for version 5 accepts the connection before it asks the kubelet.
        let process = match (process, handshake.protocol) {
            (Err(error), Protocol::V4) => return Err(as_error(error)),
            (process, _) => process,
        };
        let channels = channels.unwrap_or_default();
        let protocol = handshake.protocol;
        let serve = move |socket| streams::converse(socket, protocol, channels, process);
        Ok(handshake.accept(self, serve))
    }

    /// Requires the permission to create the connection, also of a WebSocket, whose verb is `get`.
    fn authorize_connection(
        &self,
        request: &ResourceRequest,
        incoming: &Incoming,
    ) -> ApiResult<()> {
        let Some(user) = request.user.as_ref().filter(|_| request.verb == Verb::Get) else {
            return Ok(());
        };
        let attributes = Attributes::of(&Method::POST, &incoming.path, &incoming.query);
        self.authorize(user, &attributes)
    }

    /// Answers a request through a proxy to a node, or rejects one to a pod or a service.
    async fn proxy(&self, request: &ResourceRequest, incoming: &Incoming) -> ApiResult<Reply> {
        // A service or pod may be given with scheme and port: `https:web:443`.
        let mut request = request.clone();
        let parts: Vec<&str> = request.name.split(':').collect();
        request.name = match parts.as_slice() {
            [_, name, _] | [name, ..] => (*name).to_owned(),
            [] => String::new(),
        };
        let object = match self.existing(&request) {
            Ok(object) => object,
            Err(err) => return Err(err),
        };
        let name = &request.name;
        if &*request.kind.storage == "nodes" && self.kubelets().is_some() {
            return self.proxy_to_node(name, incoming).await;
        }
        Err(match &*request.kind.storage {
            "services" => ApiError {
                details: Some(serde_json::json!({})),
                ..ApiError::new(
                    503,
                    "ServiceUnavailable",
                    format!("no endpoints available for service {name:?}"),
                )
            },
            "nodes" => nothing_listens(name),
            _ => match self.pod_address(&request, &object) {
                Ok(None) => {
                    ApiError::bad_request(format!("pod {name} does not have a host assigned"))
                }
                Ok(Some(address)) => nothing_listens(&address.node),
                Err(err) => err,
            },
        })
    }

    /// Returns the object of a request.
    pub(super) fn existing(&self, request: &ResourceRequest) -> ApiResult<Draft> {
        let object = self.store().get(&Self::key(request));
        let object = object.ok_or_else(|| ApiError::not_found(&request.kind, &request.name))?;
        Ok(object.draft())
    }

    /// Returns the address of a pod; `None` if it has no node. The reference reports a missing node
    /// as a missing pod.
    pub(super) fn pod_address(
        &self,
        request: &ResourceRequest,
        pod: &Draft,
    ) -> ApiResult<Option<PodAddress>> {
        let node = pod.text("/spec/nodeName").unwrap_or_default();
        if node.is_empty() {
            return Ok(None);
        }
        if let Some(nodes) = kinds::by_resource("", "v1", "nodes")
            && self.store().get(&Key::new(nodes, "", node)).is_none()
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
}

fn nothing_listens(node: &str) -> ApiError {
    ApiError::internal(format!(
        "error dialing backend: no kubelet listens on node {node}"
    ))
}

/// Returns the answer for the error of a kubelet.
fn as_error(error: KubeletError) -> ApiError {
    match error.code {
        400 => ApiError::bad_request(error.message),
        404 => ApiError::new(404, "NotFound", error.message),
        502 => ApiError::internal(format!("error dialing backend: {}", error.message)),
        _ => ApiError::internal(error.message),
    }
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
pub(super) fn ports(incoming: &Incoming, parameter: &str) -> Result<Vec<u16>, KubeletError> {
    let refused = |message: String| KubeletError::new(400, message);
    let texts = query_values(&incoming.query_text, parameter);
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
