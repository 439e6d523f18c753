//! A control plane with the fence, and its users.

use http::{HeaderValue, Method, Request};
use kube::client::Body;
use kube_test_control_plane::TestControlPlane;
use kube_test_control_plane::auth::Identity;
use serde_json::{Value, json};
use statefulset_fence::names::{FENCE_MESSAGE, MIRROR_MESSAGE};
use statefulset_fence::{FencePolicies, FenceSettings};
use tower::service_fn;

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
        let identity = Identity::user(name).group("system:masters");
        Self(plane.client_as(identity))
    }

    /// Same as [`Self::new`], with this user agent.
    pub(crate) fn with_agent(plane: &TestControlPlane, name: &str, agent: &'static str) -> Self {
        let Self(client) = Self::new(plane, name);
        let service = service_fn(move |mut request: Request<Body>| {
            let client = client.clone();
            let agent = HeaderValue::from_static(agent);
            request.headers_mut().insert("User-Agent", agent);
            async move { client.send(request).await }
        });
        Self(kube::Client::new(service, "default"))
    }

    pub(crate) fn client(&self) -> kube::Client {
        self.0.clone()
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
    install_policies(plane, settings, &["mirror", "fence"]).await;
}

/// Creates the policies with these names, and their bindings, unless they exist.
pub(crate) async fn install_policies(
    plane: &TestControlPlane,
    settings: &FenceSettings,
    policies: &[&str],
) {
    let admin = User::new(plane, "admin");
    for object in FencePolicies::new(settings).unwrap().objects() {
        let name = object["metadata"]["name"].as_str().unwrap();
        if !policies.iter().any(|policy| name.ends_with(policy)) {
            continue;
        }
        let plural = match object["kind"].as_str().unwrap() {
            "ValidatingAdmissionPolicy" => "validatingadmissionpolicies",
            _ => "validatingadmissionpolicybindings",
        };
        let path = format!("/apis/admissionregistration.k8s.io/v1/{plural}");
        let created = match admin.ask(Method::POST, &path, object).await {
            Err(kube::Error::Api(status)) if status.reason == "AlreadyExists" => continue,
            created => created.unwrap(),
        };
        // The rendered objects contain the server's defaults.
        assert_eq!(created["spec"], object["spec"]);
    }
}
