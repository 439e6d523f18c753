//! Test namespaces, and their deletion from clusters that outlive the test.
//!
//! In such a cluster the actors see only these namespaces.

use http::Request;
use http::header::CONTENT_TYPE;
use kube::{Client, Config};
use kube_test_control_plane_actors::Namespaces;
use serde_json::{Value, json};
use tokio::time::timeout;

use super::error::ClusterError;
use super::request::RESPONSE_MAX;

/// Creates a namespace and returns its name.
pub(super) async fn create(client: &Client, prefix: &str) -> Result<String, ClusterError> {
    let namespace = json!({
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {"generateName": format!("{prefix}-")},
    });
    let failed = |source| ClusterError::Namespace {
        prefix: prefix.to_owned(),
        source,
    };
    let request = Request::post("/api/v1/namespaces")
        .header(CONTENT_TYPE, "application/json")
        .body(namespace.to_string().into_bytes())
        .map_err(|err| failed(kube::Error::HttpError(err)))?;
    let created: Value = client.request(request).await.map_err(failed)?;
    let name = created.pointer("/metadata/name").and_then(Value::as_str);
    Ok(name.unwrap_or_default().to_owned())
}

/// Deletes all of them without waiting for the end of their deletion.
pub(super) async fn delete(namespaces: &Namespaces, client: &Client) {
    let names = std::mem::take(&mut *namespaces.names());
    for name in names {
        let request = Request::delete(format!("/api/v1/namespaces/{name}")).body(Vec::new());
        let Ok(request) = request else {
            continue;
        };
        match timeout(RESPONSE_MAX, client.request_text(request)).await {
            Ok(Ok(_)) => {}
            Ok(Err(err)) => tracing::warn!(namespace = name, %err, "failed to delete namespace"),
            Err(_) => tracing::warn!(namespace = name, "timed out deleting namespace"),
        }
    }
}

/// As [`delete`], but blocking, on a separate runtime.
pub(super) fn delete_blocking(namespaces: &Namespaces, config: &Config) {
    if namespaces.names().is_empty() {
        return;
    }
    let config = config.clone();
    let work = || {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build();
        let Ok(runtime) = runtime else {
            return;
        };
        runtime.block_on(async {
            // A client was created from this configuration before, so this should succeed.
            if let Ok(client) = Client::try_from(config) {
                delete(namespaces, &client).await;
            }
        });
    };
    // A runtime can't be entered from inside another one, so use a separate thread. A panic there
    // only skips the deletion.
    std::thread::scope(|scope| {
        let _ = scope.spawn(work).join();
    });
}
