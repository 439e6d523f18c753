//! Kubelet subresources of pods, services and nodes. Without a kubelet, connections fail.

use http::Method;
use kube_test_control_plane_api::kinds::{Subresource, Target, Verb};
use kube_test_control_plane_api::query::Query;
use kube_test_control_plane_api::status::{ApiError, ApiResult};
use serde_json::{Value, json};

use super::container::{container, existing, pod_address, ports, query_values};
use super::node::proxy_to_node;
use crate::access;
use crate::auth::attributes::Attributes;
use crate::containers::KubeletError;
use crate::incoming::Incoming;
use crate::reply::Reply;
use crate::review;
use crate::route::ResourceRequest;
use crate::state::{Access, Streams};
use crate::streams::{self, Channels, Handshake, Protocol};

/// Connects to a container or to ports of a pod, or rejects the connection with the error for
/// the first missing part.
pub(crate) async fn connect(
    streams: &Streams,
    request: &ResourceRequest,
    incoming: &Incoming,
) -> ApiResult<Reply> {
    let Target::Part(part) = request.target else {
        return Err(ApiError::method_not_allowed());
    };
    if part != Subresource::Proxy {
        authorize_connection(&streams.access, request, incoming)?;
    }
    let query = admit(streams, request, part, incoming).await?;
    if part == Subresource::Proxy {
        return proxy(streams, request, incoming).await;
    }
    let query_text = query.as_deref().unwrap_or(&incoming.query_text);
    let query = &Query::parse(query_text);
    let pod = existing(&streams.reads, request)?;
    let name = &request.name;
    let container = match part {
        Subresource::PortForward => String::new(),
        _ => container(&pod, name, query.get("container"))?,
    };
    let Some(address) = pod_address(&streams.reads, request, &pod)? else {
        let message = format!("pod {name} does not have a host assigned");
        return Err(ApiError::bad_request(message));
    };
    let Some(kubelets) = streams.kubelets() else {
        return Err(nothing_listens(&address.node));
    };
    let supported: &[Protocol] = match part {
        Subresource::PortForward => &[Protocol::V4, Protocol::Tunnel, Protocol::Unnamed],
        _ => &[Protocol::V5, Protocol::V4, Protocol::Unnamed],
    };
    let handshake = Handshake::of(incoming, supported)?;
    let found = kubelets.find(address).await;
    if handshake.protocol == Protocol::Tunnel {
        let pod = found.map_err(as_error)?;
        return Ok(handshake.accept(streams, |socket| streams::tunnel(socket, pod)));
    }
    if part == Subresource::PortForward {
        let ports = ports(query_text, "ports").map_err(as_error)?;
        let pod = found.map_err(as_error)?;
        let serve = |socket| streams::forward(socket, ports, pod);
        return Ok(handshake.accept(streams, serve));
    }
    let process = found.and_then(|pod| {
        if part == Subresource::Attach {
            return pod.attach(&container);
        }
        let command = query_values(query_text, "command");
        pod.exec(&container, command)
    });
    let channels = Channels::of(query, ["stdin", "stdout", "stderr"]);
    let process = channels.clone().and(process);
    // Only the translation for version 5 accepts the connection before it asks the kubelet.
    let process = match (process, handshake.protocol) {
        (Err(error), Protocol::V4 | Protocol::Unnamed) => return Err(as_error(error)),
        (process, _) => process,
    };
    let channels = channels.unwrap_or_default();
    let protocol = handshake.protocol;
    let serve = move |socket| streams::converse(socket, protocol, channels, process);
    Ok(handshake.accept(streams, serve))
}

/// Reviews the connection. Returns its query if a webhook or policy changed its options.
async fn admit(
    streams: &Streams,
    request: &ResourceRequest,
    part: Subresource,
    incoming: &Incoming,
) -> ApiResult<Option<String>> {
    if !streams.reads.has_reviews() {
        return Ok(None);
    }
    let sent = options(request, part, incoming);
    let admitted = review::review_connection(&streams.access, request, sent.clone()).await?;
    Ok((admitted != sent).then(|| query_of(&admitted)))
}

/// Returns the query with these options.
fn query_of(options: &Value) -> String {
    let mut query = form_urlencoded::Serializer::new(String::new());
    for (name, value) in options.as_object().into_iter().flatten() {
        match value {
            Value::Array(values) => {
                for value in values {
                    query.append_pair(name, &shown(value));
                }
            }
            value => drop(query.append_pair(name, &shown(value))),
        }
    }
    query.finish()
}

/// Returns a value as a query has it.
fn shown(value: &Value) -> String {
    value
        .as_str()
        .map_or_else(|| value.to_string(), str::to_owned)
}

/// Requires the permission to create the connection, also of a WebSocket, whose verb is `get`.
fn authorize_connection(
    access: &Access,
    request: &ResourceRequest,
    incoming: &Incoming,
) -> ApiResult<()> {
    let Some(user) = request.user.as_ref().filter(|_| request.verb == Verb::Get) else {
        return Ok(());
    };
    let attributes = Attributes::of(&Method::POST, &incoming.path, &incoming.query);
    access::authorize(access, user, &attributes)
}

/// Responds to a request through a proxy to a node, or rejects one to a pod or a service.
async fn proxy(
    streams: &Streams,
    request: &ResourceRequest,
    incoming: &Incoming,
) -> ApiResult<Reply> {
    // A service or pod may be given with scheme and port: `https:web:443`.
    let mut request = request.clone();
    let parts: Vec<&str> = request.name.split(':').collect();
    request.name = match parts.as_slice() {
        [_, name, _] | [name, ..] => (*name).to_owned(),
        [] => String::new(),
    };
    let object = match existing(&streams.reads, &request) {
        Ok(object) => object,
        Err(err) => return Err(err),
    };
    let name = &request.name;
    if &*request.kind.storage == "nodes" && streams.kubelets().is_some() {
        return proxy_to_node(streams, name, incoming).await;
    }
    Err(match &*request.kind.storage {
        "services" => ApiError {
            details: Some(json!({})),
            ..ApiError::new(
                503,
                "ServiceUnavailable",
                format!("no endpoints available for service {name:?}"),
            )
        },
        "nodes" => nothing_listens(name),
        _ => match pod_address(&streams.reads, &request, &object) {
            Ok(None) => ApiError::bad_request(format!("pod {name} does not have a host assigned")),
            Ok(Some(address)) => nothing_listens(&address.node),
            Err(err) => err,
        },
    })
}

fn nothing_listens(node: &str) -> ApiError {
    ApiError::internal(format!(
        "error dialing backend: no kubelet listens on node {node}"
    ))
}

/// Returns the response for the error of a kubelet.
fn as_error(error: KubeletError) -> ApiError {
    match error.code {
        400 => ApiError::bad_request(error.message),
        404 => ApiError::new(404, "NotFound", error.message),
        502 => ApiError::internal(format!("error dialing backend: {}", error.message)),
        _ => ApiError::internal(error.message),
    }
}

/// Returns the options of a connection, which stand for its object at admission.
fn options(request: &ResourceRequest, part: Subresource, incoming: &Incoming) -> Value {
    let of = &*request.kind.kind;
    let (kind, members): (String, &[&str]) = match part {
        Subresource::Exec => (
            "PodExecOptions".to_owned(),
            &["stdin", "stdout", "stderr", "tty"],
        ),
        Subresource::Attach => (
            "PodAttachOptions".to_owned(),
            &["stdin", "stdout", "stderr", "tty"],
        ),
        Subresource::PortForward => ("PodPortForwardOptions".to_owned(), &[]),
        _ => (format!("{of}ProxyOptions"), &[]),
    };
    let mut options = json!({"kind": kind, "apiVersion": "v1"});
    let query = &incoming.query;
    for name in members.iter().filter(|name| query.flag(name)) {
        options[*name] = json!(true);
    }
    if let Some(container) = query.get("container").filter(|it| !it.is_empty()) {
        options["container"] = json!(container);
    }
    let values = |name| query_values(&incoming.query_text, name);
    let command = values("command");
    if part == Subresource::Exec {
        options["command"] = json!(command);
    }
    if part == Subresource::PortForward {
        let ports: Vec<i64> = values("ports")
            .iter()
            .filter_map(|it| it.parse().ok())
            .collect();
        if !ports.is_empty() {
            options["ports"] = json!(ports);
        }
    }
    if part == Subresource::Proxy {
        let base = request.kind.object_path(&request.namespace, &request.name);
        let path = incoming.path.strip_prefix(&format!("{base}/proxy"));
        if let Some(path) = path.filter(|path| !path.is_empty()) {
            options["path"] = json!(path);
        }
    }
    options
}
