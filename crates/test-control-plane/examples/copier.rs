//! A tiny controller and its tests.
//!
//! Every config map with the label `copy-to: NAME` gets a copy with that name and the same data,
//! which is deleted with its source. The upper half of this file is the controller, which doesn't
//! know the test control plane. The lower half tests that it settles, recovers from failed
//! requests, lost responses and broken watches, and has a sufficient role.
//!
//! ```sh
//! cargo test -p kube-test-control-plane --example copier   # the tests
//! cargo run -p kube-test-control-plane --example copier    # the controller, on your cluster
//! ```

use std::time::Duration;

use futures::TryStreamExt;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{ListParams, Patch, PatchParams, WatchEvent, WatchParams};
use kube::{Api, Client, Resource, ResourceExt};

/// The label of config maps to copy.
const COPY_TO: &str = "copy-to";
/// Delay after a failure.
const RETRY: Duration = Duration::from_secs(1);

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), kube::Error> {
    let client = Client::try_default().await?;
    match run(client).await {}
}

/// Copies config maps forever.
async fn run(client: Client) -> std::convert::Infallible {
    let maps: Api<ConfigMap> = Api::default_namespaced(client);
    loop {
        if let Err(error) = follow(&maps).await {
            tracing::warn!(%error, "beginning again");
            tokio::time::sleep(RETRY).await;
        }
    }
}

/// Copies the existing config maps, then changed ones, until a failure or the end of the watch.
async fn follow(maps: &Api<ConfigMap>) -> Result<(), kube::Error> {
    let list = maps.list(&ListParams::default().labels(COPY_TO)).await?;
    for source in &list {
        reconcile(maps, source).await?;
    }
    let version = list.metadata.resource_version.unwrap_or_default();
    let parameters = WatchParams::default().labels(COPY_TO);
    let events = maps.watch(&parameters, &version).await?;
    let mut events = std::pin::pin!(events);
    while let Some(event) = events.try_next().await? {
        match event {
            WatchEvent::Added(source) | WatchEvent::Modified(source) => {
                reconcile(maps, &source).await?;
            }
            // The garbage collector deletes the copy, which has an owner reference.
            WatchEvent::Deleted(_) | WatchEvent::Bookmark(_) => {}
            WatchEvent::Error(_) => break,
        }
    }
    Ok(())
}

/// Creates or updates the copy. Writes nothing if it is up to date.
async fn reconcile(maps: &Api<ConfigMap>, source: &ConfigMap) -> Result<(), kube::Error> {
    let Some(name) = source.labels().get(COPY_TO) else {
        return Ok(());
    };
    if let Some(copy) = maps.get_opt(name).await?
        && copy.data == source.data
    {
        return Ok(());
    }
    let mut copy = ConfigMap {
        data: source.data.clone(),
        ..ConfigMap::default()
    };
    copy.metadata.name = Some(name.clone());
    copy.metadata.owner_references = source.controller_owner_ref(&()).map(|owner| vec![owner]);
    let parameters = PatchParams::apply("copier").force();
    maps.patch(name, &parameters, &Patch::Apply(&copy)).await?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use kube::api::{DeleteParams, PostParams};
    use kube_test_control_plane::TestControlPlane;
    use kube_test_control_plane::audit::Settle;
    use kube_test_control_plane::auth::Identity;
    use kube_test_control_plane::faults::{FaultPlan, RequestMatcher};
    use kube_test_control_plane::route::Verb;
    use serde_json::json;
    use tokio::task::JoinSet;

    use super::*;

    /// Time without changes after which the controller is idle. In paused time it passes
    /// immediately.
    const QUIET: Duration = Duration::from_secs(60);

    /// A control plane, the controller in it with a separate role, and a client with all permissions.
    struct Fixture {
        plane: TestControlPlane,
        maps: Api<ConfigMap>,
        _controller: JoinSet<()>,
    }

    impl Fixture {
        async fn start() -> Self {
            let plane = TestControlPlane::builder()
                .garbage_collector()
                .start()
                .await;
            let client = plane.client();
            let role = json!({
                "metadata": {"name": "copier"},
                "rules": [{
                    "apiGroups": [""],
                    "resources": ["configmaps"],
                    "verbs": ["get", "list", "watch", "create", "patch"],
                }],
            });
            let binding = json!({
                "metadata": {"name": "copier"},
                "roleRef": {
                    "apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "copier",
                },
                "subjects": [{
                    "kind": "ServiceAccount", "name": "copier", "namespace": "default",
                }],
            });
            for (resource, object) in [("roles", role), ("rolebindings", binding)] {
                let path =
                    format!("/apis/rbac.authorization.k8s.io/v1/namespaces/default/{resource}");
                let request = http::Request::post(path).header("content-type", "application/json");
                let request = request.body(object.to_string().into_bytes()).unwrap();
                client.request_text(request).await.unwrap();
            }
            let copier = plane.client_as(Identity::service_account("default", "copier"));
            let mut controller = JoinSet::new();
            controller.spawn(async { match run(copier).await {} });
            Self {
                maps: Api::default_namespaced(client),
                plane,
                _controller: controller,
            }
        }

        /// Matches requests of the controller.
        fn copier() -> RequestMatcher {
            RequestMatcher::any().user("system:serviceaccount:default:copier")
        }

        async fn write(&self, name: &str, value: &str) {
            let source = json!({
                "apiVersion": "v1",
                "kind": "ConfigMap",
                "metadata": {"name": name, "labels": {COPY_TO: format!("{name}-copy")}},
                "data": {"key": value},
            });
            let parameters = PatchParams::apply("test").force();
            let patch = Patch::Apply(&source);
            self.maps.patch(name, &parameters, &patch).await.unwrap();
        }

        async fn settle(&self) {
            let audit = self.plane.server().audit();
            audit.settle(&Settle::quiet_for(QUIET)).await.unwrap();
        }

        async fn copied(&self, name: &str) -> Option<BTreeMap<String, String>> {
            let copy = self.maps.get_opt(&format!("{name}-copy")).await.unwrap();
            copy.and_then(|copy| copy.data)
        }

        /// Asserts that nothing is written from now on.
        async fn expect_rest(&self) {
            let audit = self.plane.server().audit();
            let mark = audit.mark();
            tokio::time::sleep(Duration::from_secs(3600)).await;
            audit.expect_no_writes(mark, &Self::copier()).unwrap();
        }
    }

    fn data(value: &str) -> BTreeMap<String, String> {
        BTreeMap::from([("key".to_owned(), value.to_owned())])
    }

    #[tokio::test(start_paused = true)]
    async fn copy_is_created_once() {
        let fixture = Fixture::start().await;
        fixture.write("a", "1").await;
        fixture.settle().await;
        assert_eq!(fixture.copied("a").await, Some(data("1")));
        fixture.expect_rest().await;
        fixture.plane.stop().await;
    }

    #[tokio::test(start_paused = true)]
    async fn copy_is_deleted_with_its_source() {
        let fixture = Fixture::start().await;
        fixture.write("a", "1").await;
        fixture.settle().await;
        let parameters = DeleteParams::default();
        fixture.maps.delete("a", &parameters).await.unwrap();
        fixture.settle().await;
        assert_eq!(fixture.copied("a").await, None);
        fixture.plane.stop().await;
    }

    #[tokio::test(start_paused = true)]
    async fn controller_recovers_from_faults() {
        let fixture = Fixture::start().await;
        let plan = r#"{
          "seed": 7,
          "requests": [
            {"name": "overload",
             "match": {"user": "system:serviceaccount:default:copier"},
             "when": {"probability": 0.3, "until": "5m"},
             "action": {"respond": {"tooManyRequests": {"retryAfterSeconds": 1}}}},
            {"name": "lost answer",
             "match": {"user": "system:serviceaccount:default:copier", "verbs": ["patch"]},
             "when": {"every": 2, "until": "5m"},
             "action": "commitThenDrop"}
          ],
          "watches": [
            {"match": {"user": "system:serviceaccount:default:copier"},
             "moment": {"afterEvents": {"min": 1, "max": 3}}, "action": "cut"}
          ]
        }"#;
        let plan = FaultPlan::from_json(plan).unwrap();
        let rules = fixture.plane.server().faults().load(&plan);
        for round in 0..20 {
            for name in ["a", "b", "c"] {
                fixture.write(name, &round.to_string()).await;
            }
            tokio::time::sleep(Duration::from_secs(10)).await;
        }
        // Once all faults are over, it settles in the right state.
        tokio::time::sleep(Duration::from_secs(300)).await;
        fixture.settle().await;
        for name in ["a", "b", "c"] {
            assert_eq!(fixture.copied(name).await, Some(data("19")));
        }
        fixture.expect_rest().await;
        for rule in rules {
            assert!(fixture.plane.server().faults().hits(rule) > 0);
        }
        fixture.plane.stop().await;
    }

    #[tokio::test(start_paused = true)]
    async fn controller_role_is_minimal() {
        let fixture = Fixture::start().await;
        let audit = fixture.plane.server().audit();
        let mark = audit.mark();
        fixture.write("a", "1").await;
        fixture.settle().await;
        let maps = RequestMatcher::any().resource("configmaps");
        let verbs = [Verb::Get, Verb::List, Verb::Watch, Verb::Patch];
        audit
            .expect_only(mark, &Fixture::copier(), &[maps.verbs(&verbs)])
            .unwrap();

        // The controller ignores config maps without the label.
        let mark = audit.mark();
        let other: ConfigMap =
            serde_json::from_value(json!({"metadata": {"name": "other"}})).unwrap();
        let parameters = PostParams::default();
        fixture.maps.create(&parameters, &other).await.unwrap();
        fixture.settle().await;
        audit.expect_at_most(mark, 0, &Fixture::copier()).unwrap();
        fixture.plane.stop().await;
    }
}
