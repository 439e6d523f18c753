//! The secrets, config maps and service accounts that a pod needs before its containers start.
//!
//! Upstream: `makeEnvironmentVariables` of the kubelet, and its volume plugins

use std::sync::Arc;

use kube_test_control_plane_api::members::{list, list_at, text, text_at};
use kube_test_control_plane_api::object::{Key, Object};
use serde_json::Value;

use super::container::{Container, ContainerState};
use super::run::{Now, PodRun};
use crate::client::ActorClient;

/// The reason of a container that lacks an object.
const CONFIG_ERROR: &str = "CreateContainerConfigError";

/// The volume with the token of a pod's service account.
const TOKENS: &str = "kube-api-access";

/// A reason why a volume can't be mounted, or a container can't be created.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Missing {
    /// The object that doesn't exist, or lacks a key.
    pub(super) object: Key,
    pub(super) message: String,
}

/// A kind of objects with keys.
#[derive(Clone, Copy, Debug)]
enum Source {
    ConfigMap,
    Secret,
}

/// Looks up the objects of a namespace.
#[derive(Clone, Copy)]
struct Objects<'a> {
    client: &'a ActorClient,
    namespace: &'a str,
}

impl Source {
    fn storage(self) -> &'static str {
        match self {
            Self::ConfigMap => "configmaps",
            Self::Secret => "secrets",
        }
    }

    /// Returns the name of the kind in errors about a whole object.
    fn resource(self) -> &'static str {
        match self {
            Self::ConfigMap => "configmap",
            Self::Secret => "secret",
        }
    }

    fn kind(self) -> &'static str {
        match self {
            Self::ConfigMap => "ConfigMap",
            Self::Secret => "Secret",
        }
    }

    /// Returns the name of a key in errors about volumes.
    fn key(self) -> &'static str {
        match self {
            Self::ConfigMap => "config key",
            Self::Secret => "secret key",
        }
    }
}

impl Objects<'_> {
    fn get(self, storage: &str, name: &str) -> (Key, Option<Arc<Object>>) {
        let key = Key::of(storage, self.namespace, name);
        let object = self.client.get(&key);
        (key, object)
    }

    /// Returns an object's data, or `None` if it is missing and optional. `named` is the reference.
    fn data(self, source: Source, named: &Value, name: &str) -> Result<Option<Data>, Missing> {
        let (key, object) = self.get(source.storage(), name);
        match object {
            Some(object) => Ok(Some(Data {
                key,
                object: object.value(),
            })),
            None if is_optional(named) => Ok(None),
            None => Err(Missing {
                object: key,
                message: format!("{} {name:?} not found", source.resource()),
            }),
        }
    }

    /// Checks that the keys of a volume's source exist.
    fn items(self, source: Source, of: &Value, name: &str) -> Result<(), Missing> {
        let Some(data) = self.data(source, of, name)? else {
            return Ok(());
        };
        let mut keys = list_at(of, "/items").map(|item| text(item, "key"));
        match keys.find(|key| !data.has(key, &["data", "binaryData"])) {
            Some(key) if !is_optional(of) => Err(Missing {
                object: data.key,
                message: format!("references non-existent {}: {key}", source.key()),
            }),
            _ => Ok(()),
        }
    }

    /// Checks the sources of a projected volume.
    fn projected(self, volume: &Value, account: &str) -> Result<(), Missing> {
        let errors: Vec<Missing> = list_at(volume, "/sources")
            .filter_map(|source| {
                let checked = if let Some(of) = source.get("secret") {
                    self.items(Source::Secret, of, text(of, "name"))
                } else if let Some(of) = source.get("configMap") {
                    self.items(Source::ConfigMap, of, text(of, "name"))
                } else if source.get("serviceAccountToken").is_some() {
                    self.account(account)
                } else {
                    Ok(())
                };
                checked.err()
            })
            .collect();
        let messages: Vec<&str> = errors.iter().map(|error| &*error.message).collect();
        let message = match messages.as_slice() {
            [one] => (*one).to_owned(),
            many => format!("[{}]", many.join(", ")),
        };
        match errors.into_iter().next() {
            // The pod looks for the others once this one exists.
            Some(Missing { object, .. }) => Err(Missing { object, message }),
            None => Ok(()),
        }
    }

    fn account(self, name: &str) -> Result<(), Missing> {
        match self.get("serviceaccounts", name) {
            (_, Some(_)) => Ok(()),
            (object, None) => Err(Missing {
                object,
                message: format!("failed to fetch token: serviceaccounts {name:?} not found"),
            }),
        }
    }

    fn variable(self, source: Source, reference: &Value) -> Result<(), Missing> {
        let (name, key) = (text(reference, "name"), text(reference, "key"));
        let Some(data) = self.data(source, reference, name)? else {
            return Ok(());
        };
        if data.has(key, &["data"]) || is_optional(reference) {
            return Ok(());
        }
        Err(Missing {
            object: data.key,
            message: format!(
                "couldn't find key {key} in {} {}/{name}",
                source.kind(),
                self.namespace
            ),
        })
    }
}

/// An existing object with keys.
struct Data {
    key: Key,
    object: Value,
}

impl Data {
    fn has(&self, key: &str, members: &[&str]) -> bool {
        let mut members = members.iter();
        members.any(|member| self.object[member].get(key).is_some())
    }
}

fn is_optional(reference: &Value) -> bool {
    reference.get("optional") == Some(&Value::Bool(true))
}

/// Returns the volumes of a pod that can't be mounted.
pub(super) fn missing_volumes(client: &ActorClient, pod: &Value, namespace: &str) -> Vec<Missing> {
    let objects = Objects { client, namespace };
    let account = text_at(pod, "/spec/serviceAccountName");
    let automatic = needs_token(pod, account).then(|| objects.account(account).err());
    let automatic = automatic
        .flatten()
        .map(|missing| unmounted(TOKENS, missing));
    let volumes = list_at(pod, "/spec/volumes").filter_map(|volume| {
        let mounted = if let Some(of) = volume.get("secret") {
            objects.items(Source::Secret, of, text(of, "secretName"))
        } else if let Some(of) = volume.get("configMap") {
            objects.items(Source::ConfigMap, of, text(of, "name"))
        } else if let Some(of) = volume.get("projected") {
            objects.projected(of, account)
        } else {
            Ok(())
        };
        Some(unmounted(text(volume, "name"), mounted.err()?))
    });
    volumes.chain(automatic).collect()
}

/// Reports whether a pod gets a token although none of its volumes says so. Unlike in a cluster,
/// namespaces lack the account `default` until a test creates it, so its pods need none.
fn needs_token(pod: &Value, account: &str) -> bool {
    let sources = list_at(pod, "/spec/volumes").flat_map(|it| list_at(it, "/projected/sources"));
    let has_volume = sources
        .map(|it| it.get("serviceAccountToken"))
        .any(|it| it.is_some());
    let wants = pod.pointer("/spec/automountServiceAccountToken") != Some(&Value::Bool(false));
    !matches!(account, "" | "default") && wants && !has_volume
}

fn unmounted(volume: &str, missing: Missing) -> Missing {
    let Missing { object, message } = missing;
    let message = format!("MountVolume.SetUp failed for volume {volume:?} : {message}");
    Missing { object, message }
}

/// Checks the environment of a container, in the order in which the kubelet makes it.
fn environment(client: &ActorClient, container: &Value, namespace: &str) -> Result<(), Missing> {
    let objects = Objects { client, namespace };
    for source in list(container, "envFrom") {
        if let Some(of) = source.get("configMapRef") {
            objects.data(Source::ConfigMap, of, text(of, "name"))?;
        } else if let Some(of) = source.get("secretRef") {
            objects.data(Source::Secret, of, text(of, "name"))?;
        }
    }
    for variable in list(container, "env") {
        let source = &variable["valueFrom"];
        if let Some(of) = source.get("configMapKeyRef") {
            objects.variable(Source::ConfigMap, of)?;
        } else if let Some(of) = source.get("secretKeyRef") {
            objects.variable(Source::Secret, of)?;
        }
    }
    Ok(())
}

/// Reports whether a container waits for an object.
pub(super) fn lacks_object(container: &Container) -> bool {
    matches!(container.state, ContainerState::Waiting { reason, .. } if reason == CONFIG_ERROR)
}

/// Makes the pod wait for its volumes.
pub(super) fn wait_for_volumes(run: &mut PodRun, missing: Vec<Missing>) {
    for Missing { object, message } in missing {
        run.awaited.insert(object);
        if run.failed_mounts.insert(message.clone()) {
            run.tell(true, "FailedMount", message, None);
        }
    }
}

/// Reports whether a container can't be created because an object is missing; the container
/// then waits.
pub(super) fn config_fails(run: &mut PodRun, i: usize, now: Now<'_>) -> bool {
    let Some(client) = now.references else {
        return false;
    };
    let container = &run.containers[i];
    let Err(missing) = environment(client, &container.spec, &run.key.namespace) else {
        return false;
    };
    let Missing { object, message } = missing;
    run.awaited.insert(object);
    let state = ContainerState::Waiting {
        reason: CONFIG_ERROR,
        message: Some(message.clone()),
    };
    if container.state != state {
        run.tell_pulled(i);
        run.tell(true, "Failed", format!("Error: {message}"), Some(i));
        run.containers[i].state = state;
    }
    true
}
