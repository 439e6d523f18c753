//! Blocking API client: requests, and watches that report into one channel.

use std::path::Path;
use std::sync::mpsc::Sender;

use futures::{StreamExt as _, pin_mut};
use http::Request;
use kube::Client;
use kube::config::{Config, KubeConfigOptions, Kubeconfig};
use kube::core::WatchEvent;
use serde_json::Value;
use tokio::runtime::Runtime;

/// Kinds of a StatefulSet and its dependents.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    Set,
    Revision,
    Claim,
    Pod,
}

impl Kind {
    pub(crate) const ALL: [Self; 4] = [Self::Set, Self::Revision, Self::Claim, Self::Pod];

    /// API path of the objects in the default namespace.
    fn path(self) -> &'static str {
        match self {
            Self::Set => "/apis/apps/v1/namespaces/default/statefulsets",
            Self::Revision => "/apis/apps/v1/namespaces/default/controllerrevisions",
            Self::Claim => "/api/v1/namespaces/default/persistentvolumeclaims",
            Self::Pod => "/api/v1/namespaces/default/pods",
        }
    }
}

/// Report of a watch.
#[derive(Debug)]
pub(crate) enum Change {
    /// A new or changed object.
    Is(Value),
    /// The last state of a deleted object.
    Was(Value),
}

/// A client with its own threads.
pub(crate) struct Api {
    runtime: Runtime,
    client: Client,
}

impl Api {
    /// Creates a client that never retries a request.
    pub(crate) fn connect(kubeconfig: &Path) -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .unwrap();
        let client = runtime.block_on(async {
            let kubeconfig = Kubeconfig::read_from(kubeconfig).unwrap();
            let options = KubeConfigOptions::default();
            let config = Config::from_custom_kubeconfig(kubeconfig, &options).await;
            let mut config = config.unwrap();
            config.default_retry = false;
            Client::try_from(config).unwrap()
        });
        Self { runtime, client }
    }

    /// Creates an object.
    pub(crate) fn create(&self, kind: Kind, object: &Value) -> Value {
        self.post(kind.path(), object)
    }

    /// Posts to a path.
    pub(crate) fn post(&self, path: &str, object: &Value) -> Value {
        let request = Request::post(path).header("content-type", "application/json");
        self.ask(request.body(object.to_string().into_bytes()).unwrap())
    }

    /// Deletes the object at a path.
    pub(crate) fn delete(&self, path: &str) {
        self.ask(Request::delete(path).body(Vec::new()).unwrap());
    }

    /// Reads a path as text.
    pub(crate) fn text(&self, path: &str) -> Result<String, kube::Error> {
        let request = Request::get(path).body(Vec::new()).unwrap();
        self.runtime.block_on(self.client.request_text(request))
    }

    /// Reads a path as JSON.
    pub(crate) fn get(&self, path: &str) -> Value {
        self.ask(Request::get(path).body(Vec::new()).unwrap())
    }

    /// Runs an async function with the client to its end.
    pub(crate) fn with_client<T>(&self, work: impl AsyncFnOnce(Client) -> T) -> T {
        self.runtime.block_on(work(self.client.clone()))
    }

    /// Applies a merge patch to an object.
    pub(crate) fn merge(&self, kind: Kind, name: &str, patch: &Value) -> Value {
        let request = Request::patch(format!("{}/{name}", kind.path()))
            .header("content-type", "application/merge-patch+json");
        self.ask(request.body(patch.to_string().into_bytes()).unwrap())
    }

    /// All objects of a kind, and the version of the list.
    pub(crate) fn list(&self, kind: Kind) -> (Vec<Value>, u64) {
        let mut list = self.ask(Request::get(kind.path()).body(Vec::new()).unwrap());
        let Value::Array(items) = list["items"].take() else {
            panic!("not a list: {list}");
        };
        (items, version(&list))
    }

    fn ask(&self, request: Request<Vec<u8>>) -> Value {
        let what = format!("{} {}", request.method(), request.uri());
        let answer = self.runtime.block_on(self.client.request(request));
        answer.unwrap_or_else(|error| panic!("{what}: {error}"))
    }

    /// Reports every change of a kind after a version, until the listener or the server is gone.
    pub(crate) fn watch(&self, kind: Kind, after: u64, listener: Sender<(Kind, Change)>) {
        let client = self.client.clone();
        self.runtime.spawn(follow(client, kind, after, listener));
    }
}

async fn follow(client: Client, kind: Kind, mut after: u64, listener: Sender<(Kind, Change)>) {
    // The server may close a watch at any time; the next one continues from its last version.
    loop {
        let path = format!("{}?watch=true&resourceVersion={after}", kind.path());
        let request = Request::get(path).body(Vec::new()).unwrap();
        let Ok(events) = client.request_events::<Value>(request).await else {
            return;
        };
        pin_mut!(events);
        while let Some(event) = events.next().await {
            let change = match event {
                Ok(WatchEvent::Added(object) | WatchEvent::Modified(object)) => Change::Is(object),
                Ok(WatchEvent::Deleted(object)) => Change::Was(object),
                Ok(WatchEvent::Bookmark(_)) => continue,
                // The listener times out and reports the missing change.
                Ok(WatchEvent::Error(_)) | Err(_) => return,
            };
            let (Change::Is(object) | Change::Was(object)) = &change;
            after = version(object);
            if listener.send((kind, change)).is_err() {
                return;
            }
        }
    }
}

/// Resource version of an object or a list.
pub(crate) fn version(object: &Value) -> u64 {
    let text = object["metadata"]["resourceVersion"].as_str();
    text.and_then(|text| text.parse().ok())
        .unwrap_or_else(|| panic!("no resource version: {object}"))
}
