//! A control plane with the fence, and its users.

use http::{Method, Request};
use kube_test_control_plane::TestControlPlane;
use kube_test_control_plane::auth::Identity;
use serde_json::{Value, json};
use statefulset_fence::names::{FENCE_MESSAGE, MIRROR_MESSAGE};
use statefulset_fence::{FencePolicies, FenceSettings};

/// A namespace with the label.
pub(crate) const SERVED: &str = "served";
/// A namespace without it.
pub(crate) const OTHER: &str = "other";

/// The policy that denied a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Denied {
    ByFence,
    ByMirror,
}

/// A user's access to the control plane.
pub(crate) struct User(kube::Client);

impl User {
    /// A user with all permissions, so that only policies deny its requests.
    pub(crate) fn new(plane: &TestControlPlane, name: &str) -> Self {
        let identity = Identity {
            groups: vec!["system:masters".to_owned()],
            ..Identity::user(name)
        };
        Self(plane.client_as(identity))
    }

    /// Sends a request, and returns the response's object or the server's error.
    pub(crate) async fn ask(
        &self,
        method: Method,
        path: &str,
        body: &Value,
    ) -> Result<Value, kube::Error> {
        let content = match method {
            Method::PATCH => "application/merge-patch+json",
            _ => "application/json",
        };
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header("Content-Type", content)
            .body(serde_json::to_vec(body).unwrap());
        let text = self.0.request_text(request.unwrap()).await?;
        Ok(serde_json::from_str(&text).unwrap())
    }

    /// Sends a request without an effect, and returns the policy that denied it.
    pub(crate) async fn dry_run(&self, method: Method, path: &str, body: &Value) -> Option<Denied> {
        let path = format!("{path}?dryRun=All");
        match self.ask(method.clone(), &path, body).await {
            Ok(_) => None,
            Err(kube::Error::Api(status)) => {
                assert_eq!(status.code, 403, "{method} {path}: {}", status.message);
                assert_eq!(status.reason, "Forbidden", "{method} {path}");
                if status.message.ends_with(FENCE_MESSAGE) {
                    return Some(Denied::ByFence);
                }
                let mirror = status.message.ends_with(MIRROR_MESSAGE);
                assert!(mirror, "{method} {path}: {}", status.message);
                Some(Denied::ByMirror)
            }
            Err(error) => panic!("{method} {path}: {error}"),
        }
    }
}

/// Creates namespaces and the fence. The label of `kube-system` has no effect.
pub(crate) async fn install(plane: &TestControlPlane, settings: &FenceSettings) {
    let admin = User::new(plane, "admin");
    let (key, value) = (settings.selector.key(), settings.selector.value());
    for (name, value) in [(SERVED, value), (OTHER, "other")] {
        let labels = json!({key: value});
        let namespace = json!({"metadata": {"name": name, "labels": labels}});
        let created = admin.ask(Method::POST, "/api/v1/namespaces", &namespace);
        created.await.unwrap();
    }
    let labels = json!({"metadata": {"labels": {key: value}}});
    let path = "/api/v1/namespaces/kube-system";
    admin.ask(Method::PATCH, path, &labels).await.unwrap();
    for object in FencePolicies::new(settings).unwrap().objects() {
        let plural = match object["kind"].as_str().unwrap() {
            "ValidatingAdmissionPolicy" => "validatingadmissionpolicies",
            _ => "validatingadmissionpolicybindings",
        };
        let path = format!("/apis/admissionregistration.k8s.io/v1/{plural}");
        let created = admin.ask(Method::POST, &path, object).await.unwrap();
        // The rendered objects contain the server's defaults.
        assert_eq!(created["spec"], object["spec"]);
    }
}
