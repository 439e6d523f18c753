//! Pods with the service account that they use.
//!
//! Upstream: the admission plugin `ServiceAccount`

use serde_json::{Value, json};

use crate::members::{list, text};

/// The account of pods that name none.
const DEFAULT: &str = "default";

/// The prefix of the name of the volume with the token.
const VOLUME_PREFIX: &str = "kube-api-access-";

/// The path at which containers mount it.
const MOUNT_PATH: &str = "/var/run/secrets/kubernetes.io/serviceaccount";

/// The life of a token in seconds: one hour, and 7 seconds by which the kubelet knows it.
const TOKEN_SECONDS: i64 = 3607;

/// The annotation of pods that mirror those of a node.
const MIRROR: &str = "kubernetes.io/config.mirror";

/// Returns true for a pod that mirrors one of a node.
pub fn is_mirror(pod: &Value) -> bool {
    pod["metadata"]["annotations"].get(MIRROR).is_some()
}

/// Sets the account of a pod that names none, and returns its name.
pub fn choose_account(pod: &mut Value) -> String {
    let name = text(&pod["spec"], "serviceAccountName");
    let name = if name.is_empty() { DEFAULT } else { name }.to_owned();
    if let Some(spec) = pod.get_mut("spec").and_then(Value::as_object_mut) {
        for member in ["serviceAccountName", "serviceAccount"] {
            spec.insert(member.to_owned(), json!(name));
        }
    }
    name
}

/// Adds the token of the account to a pod, and the account's secrets for images. `new_name` returns a
/// name with a prefix.
pub fn use_account(pod: &mut Value, account: &Value, new_name: impl Fn(&str) -> String) {
    let Some(spec) = pod.get_mut("spec") else {
        return;
    };
    let wants = |holder: &Value| holder["automountServiceAccountToken"].as_bool();
    let (own, of_account) = (wants(spec), wants(account));
    if own.or(of_account).unwrap_or(true) {
        mount_token(spec, new_name);
    }
    let secrets = account
        .get("imagePullSecrets")
        .filter(|_| list(spec, "imagePullSecrets").next().is_none());
    if let Some(secrets) = secrets.cloned() {
        spec["imagePullSecrets"] = secrets;
    }
}

/// Upstream: `mountServiceAccountToken`.
fn mount_token(spec: &mut Value, new_name: impl Fn(&str) -> String) {
    let mut volumes = list(spec, "volumes").map(|volume| text(volume, "name"));
    let known = volumes
        .find(|name| name.starts_with(VOLUME_PREFIX))
        .map(str::to_owned);
    let name = known.clone().unwrap_or_else(|| new_name(VOLUME_PREFIX));
    let mut is_needed = false;
    for member in ["initContainers", "containers"] {
        let containers = spec.get_mut(member).and_then(Value::as_array_mut);
        for container in containers.into_iter().flatten() {
            let mut mounts = list(container, "volumeMounts");
            if !container.is_object() || mounts.any(|mount| text(mount, "mountPath") == MOUNT_PATH)
            {
                continue;
            }
            push(
                container,
                "volumeMounts",
                json!({"name": name, "readOnly": true, "mountPath": MOUNT_PATH}),
            );
            is_needed = true;
        }
    }
    if known.is_none() && is_needed {
        push(spec, "volumes", token_volume(&name));
    }
}

fn push(holder: &mut Value, member: &str, element: Value) {
    match holder.get_mut(member).and_then(Value::as_array_mut) {
        Some(elements) => elements.push(element),
        None => holder[member] = json!([element]),
    }
}

/// Upstream: `TokenVolumeSource`.
fn token_volume(name: &str) -> Value {
    json!({
        "name": name,
        "projected": {
            "sources": [
                {"serviceAccountToken": {"expirationSeconds": TOKEN_SECONDS, "path": "token"}},
                {"configMap": {
                    "name": "kube-root-ca.crt",
                    "items": [{"key": "ca.crt", "path": "ca.crt"}],
                }},
                {"downwardAPI": {"items": [{
                    "path": "namespace",
                    "fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.namespace"},
                }]}},
            ],
            "defaultMode": 420,
        },
    })
}
