//! The HTTP server of the kubelets: one port for all nodes, and the proxy to a single one.
//!
//! Upstream: `pkg/kubelet/server`

use std::sync::Arc;

use bytes::Bytes;
use futures::StreamExt;
use http::{Method, Request, StatusCode};
use kube_test_control_plane_api::kinds;
use kube_test_control_plane_api::object::Key;
use kube_test_control_plane_api::status::{ApiError, ApiResult};
use kube_test_control_plane_store::clock::Clock;
use serde_json::json;

use super::container::{ports, query_values};
use super::logs::log_options;
use crate::access;
use crate::auth::attributes::{Attributes, Resource};
use crate::auth::identity::{ANONYMOUS, Identity};
use crate::containers::{KubeletError, Kubelets, NodePod, PodAddress};
use crate::incoming::Incoming;
use crate::reply::{self, BoxError, Reply};
use crate::state::{Access, Reads, Streams};
use crate::streams::{self, Channels, Handshake, Protocol};

/// The parameters of the streams at a kubelet.
const STREAMS: [&str; 3] = ["input", "output", "error"];

/// A request to which a kubelet responds.
#[derive(Clone, Debug, PartialEq, Eq)]
enum KubeletRequest<'a> {
    /// Its health.
    Health,
    /// Its pods.
    Pods,
    /// A log, a process or ports of a pod.
    Pod {
        endpoint: PodEndpoint<'a>,
        pod: PodRef<'a>,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PodEndpoint<'a> {
    Log(&'a str),
    Exec(&'a str),
    Attach(&'a str),
    PortForward,
}

/// A pod in a path; the uid is optional.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct PodRef<'a> {
    namespace: &'a str,
    name: &'a str,
    uid: &'a str,
}

impl<'a> KubeletRequest<'a> {
    /// Splits a path; `None` for an unknown one.
    fn of(path: &'a str) -> Option<Self> {
        let segments: Vec<&str> = path.trim_matches('/').split('/').collect();
        let pod_ref = |namespace, name, uid| PodRef {
            namespace,
            name,
            uid,
        };
        let (endpoint, pod) = match segments.as_slice() {
            ["healthz"] | ["healthz", "ping" | "log" | "syncloop"] => return Some(Self::Health),
            ["pods"] => return Some(Self::Pods),
            ["containerLogs", space, name, it] => (PodEndpoint::Log(it), pod_ref(space, name, "")),
            ["exec", space, name, it] => (PodEndpoint::Exec(it), pod_ref(space, name, "")),
            ["exec", space, name, uid, it] => (PodEndpoint::Exec(it), pod_ref(space, name, uid)),
            ["attach", space, name, it] => (PodEndpoint::Attach(it), pod_ref(space, name, "")),
            ["attach", space, name, uid, it] => {
                (PodEndpoint::Attach(it), pod_ref(space, name, uid))
            }
            ["portForward", space, name] => (PodEndpoint::PortForward, pod_ref(space, name, "")),
            ["portForward", space, name, uid] => {
                (PodEndpoint::PortForward, pod_ref(space, name, uid))
            }
            _ => return None,
        };
        Some(Self::Pod { endpoint, pod })
    }

    /// Returns the subresources of `nodes`; permission for any one of them suffices.
    ///
    /// Upstream: `NodeRequestAttributesGetter`
    fn subresources(&self) -> &'static [&'static str] {
        match self {
            Self::Health => &["healthz", "proxy"],
            Self::Pods => &["pods", "proxy"],
            Self::Pod { .. } => &["proxy"],
        }
    }
}

/// Responds to a request to the port of the kubelets.
pub(crate) async fn serve_nodes<B>(streams: &Streams, request: Request<B>) -> Reply
where
    B: http_body::Body<Data = Bytes> + Send,
    B::Error: Into<BoxError>,
{
    let incoming = Incoming::receive(request, &streams.access.admin).await;
    let answered = Box::pin(answer_for_nodes(streams, &incoming)).await;
    answered.unwrap_or_else(|error| as_text(&error))
}

async fn answer_for_nodes(streams: &Streams, incoming: &Incoming) -> Result<Reply, KubeletError> {
    let user = access::authenticate(&streams.access, &incoming.headers, &incoming.sender);
    let user = user.ok().filter(|user| user.name != ANONYMOUS);
    let user = user.ok_or_else(|| KubeletError::new(401, "Unauthorized"))?;
    let request = KubeletRequest::of(&incoming.path).ok_or_else(unknown)?;
    let address = match &request {
        KubeletRequest::Pod { pod, .. } => address_of(&streams.reads, *pod),
        KubeletRequest::Health | KubeletRequest::Pods => None,
    };
    let node = address.as_ref().map_or("", |address| &*address.node);
    authorize_for_node(&streams.access, &user, &incoming.method, &request, node)?;
    answer_kubelet_request(streams, incoming, &request, address, "").await
}

/// Responds to a request through the proxy to a node; its sender may use the proxy.
pub(super) async fn proxy_to_node(
    streams: &Streams,
    node: &str,
    incoming: &Incoming,
) -> ApiResult<Reply> {
    let (_, path) = incoming.path.split_once("/proxy").unwrap_or_default();
    let ping = PodAddress {
        node: node.to_owned(),
        namespace: String::new(),
        name: String::new(),
        uid: String::new(),
    };
    let kubelets = streams.kubelets().ok_or_else(ApiError::no_such_resource)?;
    if let Err(error) = kubelets.find(ping).await
        && error.code == 502
    {
        let message = format!("error trying to reach service: {}", error.message);
        return Err(ApiError::new(503, "ServiceUnavailable", message));
    }
    let answered = async {
        let request = KubeletRequest::of(path).ok_or_else(unknown)?;
        let address = match &request {
            KubeletRequest::Pod { pod, .. } => {
                address_of(&streams.reads, *pod).filter(|it| it.node == node)
            }
            KubeletRequest::Health | KubeletRequest::Pods => None,
        };
        answer_kubelet_request(streams, incoming, &request, address, node).await
    };
    Ok(answered.await.unwrap_or_else(|error| as_text(&error)))
}

/// Requires permission for one of the subresources.
fn authorize_for_node(
    access: &Access,
    user: &Identity,
    method: &Method,
    request: &KubeletRequest<'_>,
    node: &str,
) -> Result<(), KubeletError> {
    let verb = match method.as_str() {
        "POST" => "create",
        "PUT" => "update",
        "PATCH" => "patch",
        "DELETE" => "delete",
        _ => "get",
    };
    let is_allowed = |subresource: &&str| {
        let attributes = Attributes::resource(
            verb,
            Resource {
                plural: "nodes".into(),
                subresource: (*subresource).into(),
                name: node.into(),
                ..Resource::default()
            },
        );
        access::authorize(access, user, &attributes).is_ok()
    };
    let subresources = request.subresources();
    if subresources.iter().any(is_allowed) {
        return Ok(());
    }
    let message = format!(
        "Forbidden (user={}, verb={verb}, resource=nodes, subresource(s)=[{}])",
        user.name,
        subresources.join(" ")
    );
    Err(KubeletError::new(403, message))
}

/// Returns the address of a pod on a node.
fn address_of(reads: &Reads, pod_ref: PodRef<'_>) -> Option<PodAddress> {
    let pods = kinds::by_resource("", "v1", "pods")?;
    let key = Key::new(pods, pod_ref.namespace, pod_ref.name);
    let pod = reads.store.get(&key)?.draft();
    let uid = pod.text("/metadata/uid").unwrap_or_default();
    let node = pod.text("/spec/nodeName").unwrap_or_default();
    let is_meant = !node.is_empty() && (pod_ref.uid.is_empty() || pod_ref.uid == uid);
    is_meant.then(|| PodAddress {
        node: node.to_owned(),
        namespace: pod_ref.namespace.to_owned(),
        name: pod_ref.name.to_owned(),
        uid: uid.to_owned(),
    })
}

/// Responds for a node, or for all nodes.
async fn answer_kubelet_request(
    streams: &Streams,
    incoming: &Incoming,
    request: &KubeletRequest<'_>,
    address: Option<PodAddress>,
    node: &str,
) -> Result<Reply, KubeletError> {
    let (endpoint, pod_ref) = match request {
        KubeletRequest::Health => return Ok(reply::plain(StatusCode::OK, "ok")),
        KubeletRequest::Pods => return Ok(pods_of(&streams.reads, node)),
        KubeletRequest::Pod { endpoint, pod } => (*endpoint, *pod),
    };
    let missing = || match endpoint {
        PodEndpoint::Log(_) => {
            KubeletError::new(404, format!("pod {:?} not found\n", pod_ref.name))
        }
        _ => KubeletError::new(404, "pod does not exist"),
    };
    let address = address.ok_or_else(missing)?;
    let kubelets: &Arc<dyn Kubelets> = streams.kubelets().ok_or_else(missing)?;
    let pod = kubelets.find(address).await?;
    match endpoint {
        PodEndpoint::Log(container) => {
            node_log(streams.reads.clock(), incoming, pod_ref, container, pod).await
        }
        _ => connect_at_node(streams, incoming, endpoint, pod),
    }
}

async fn node_log(
    clock: &dyn Clock,
    incoming: &Incoming,
    pod_ref: PodRef<'_>,
    container: &str,
    pod: Arc<dyn NodePod>,
) -> Result<Reply, KubeletError> {
    let options = log_options(clock, pod_ref.name, &incoming.query);
    let options = options.map_err(|err| as_kubelet_error(&err))?;
    let pieces = pod.log(container, &options)?;
    if options.follow {
        return Ok(reply::streamed_text(pieces));
    }
    let pieces: Vec<_> = pieces.collect().await;
    Ok(reply::text(StatusCode::OK, pieces.concat()))
}

fn connect_at_node(
    streams: &Streams,
    incoming: &Incoming,
    endpoint: PodEndpoint<'_>,
    pod: Arc<dyn NodePod>,
) -> Result<Reply, KubeletError> {
    let supported: &[Protocol] = match endpoint {
        PodEndpoint::PortForward => &[Protocol::V4, Protocol::Unnamed],
        _ => &[Protocol::V5, Protocol::V4, Protocol::Unnamed],
    };
    let process = match endpoint {
        PodEndpoint::Exec(container) => {
            let command = query_values(&incoming.query_text, "command");
            pod.exec(container, command)?
        }
        PodEndpoint::Attach(container) => pod.attach(container)?,
        PodEndpoint::PortForward | PodEndpoint::Log(_) => {
            let ports = ports(&incoming.query_text, "port")?;
            let handshake = handshake(incoming, supported)?;
            return Ok(handshake.accept(streams, |socket| streams::forward(socket, ports, pod)));
        }
    };
    let channels = Channels::of(&incoming.query, STREAMS)?;
    let handshake = handshake(incoming, supported)?;
    let protocol = handshake.protocol;
    Ok(handshake.accept(streams, move |socket| {
        streams::converse(socket, protocol, channels, Ok(process))
    }))
}

/// Returns the pods of a node; those of all nodes without a name.
fn pods_of(reads: &Reads, node: &str) -> Reply {
    let (_, pods) = reads.store.list("pods", "");
    let items = pods.iter().filter_map(|pod| {
        let pod = pod.value();
        let at = pod.pointer("/spec/nodeName")?.as_str()?;
        let is_meant = !at.is_empty() && (node.is_empty() || node == at);
        is_meant.then_some(pod)
    });
    let list = json!({
        "kind": "PodList",
        "apiVersion": "v1",
        "metadata": {},
        "items": items.collect::<Vec<_>>(),
    });
    reply::json_value(StatusCode::OK, &list)
}

fn handshake(incoming: &Incoming, supported: &[Protocol]) -> Result<Handshake, KubeletError> {
    Handshake::of(incoming, supported).map_err(|err| as_kubelet_error(&err))
}

fn as_kubelet_error(error: &ApiError) -> KubeletError {
    KubeletError::new(error.code, error.message.clone())
}

fn unknown() -> KubeletError {
    KubeletError::new(404, "404 page not found\n")
}

/// Returns the response for an error.
fn as_text(error: &KubeletError) -> Reply {
    let code = StatusCode::from_u16(error.code);
    let code = code.unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    reply::plain(code, error.message.clone())
}
