//! Non-resource endpoints, and the responses to unknown paths and methods.

use http::Method;
use kube_test_control_plane::{ApiServer, EmulatedVersion, TestControlPlane};
use serde_json::{Value, json};

use crate::support::{Answer, exchange, get_as};

const JSON: &str = "application/json";
const AGGREGATED: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
const BETA: &str = "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList";

async fn started() -> TestControlPlane {
    TestControlPlane::builder().start().await
}

async fn get(server: &ApiServer, path: &str) -> Answer {
    get_as(server, path, JSON).await
}

#[tokio::test]
async fn resources_are_listed_with_their_verbs() {
    let plane = started().await;
    let list = get(plane.server(), "/apis/apps/v1").await.json();
    let find = |name: &str| {
        let resources = list["resources"].as_array().unwrap();
        resources
            .iter()
            .find(|r| r["name"] == name)
            .unwrap()
            .clone()
    };
    assert_eq!(
        find("statefulsets"),
        json!({
            "name": "statefulsets", "singularName": "statefulset", "namespaced": true,
            "kind": "StatefulSet", "shortNames": ["sts"], "categories": ["all"],
            "verbs": ["create", "delete", "deletecollection", "get", "list", "patch", "update",
                      "watch"],
            "storageVersionHash": "H+vl74LkKdo=",
        })
    );
    assert_eq!(
        find("statefulsets/scale"),
        json!({
            "name": "statefulsets/scale", "singularName": "", "namespaced": true,
            "group": "autoscaling", "version": "v1", "kind": "Scale",
            "verbs": ["get", "patch", "update"],
        })
    );
    let group = json!({"groupVersion": "apps/v1", "version": "v1"});
    assert_eq!(
        get(plane.server(), "/apis/apps").await.json(),
        json!({
            "kind": "APIGroup", "apiVersion": "v1", "name": "apps",
            "versions": [group], "preferredVersion": group,
        })
    );
    plane.stop().await;
}

#[tokio::test]
async fn discovery_returns_the_requested_host() {
    let plane = started().await;
    let headers = [("Host", "127.0.0.1:6443")];
    let answer = exchange(plane.server(), Method::GET, "/api", &headers, "").await;
    let addresses = &answer.json()["serverAddressByClientCIDRs"];
    assert_eq!(
        *addresses,
        json!([{"clientCIDR": "0.0.0.0/0", "serverAddress": "127.0.0.1:6443"}])
    );
    plane.stop().await;
}

#[tokio::test]
async fn aggregated_discovery_is_negotiated() {
    let plane = started().await;
    let server = plane.server();
    let kubectl = format!("{AGGREGATED},{BETA},{JSON}");
    for path in ["/api", "/apis"] {
        let answer = get_as(server, path, &kubectl).await;
        assert_eq!(answer.header("content-type"), AGGREGATED);
        assert_eq!(answer.header("vary"), "Accept");
        assert_eq!(answer.header("cache-control"), "public");
        assert_eq!(answer.json()["kind"], "APIGroupDiscoveryList");
        let headers = [
            ("Accept", &*kubectl),
            ("If-None-Match", answer.header("etag")),
        ];
        let again = exchange(server, Method::GET, path, &headers, "").await;
        assert_eq!((again.code, again.bytes.len()), (304, 0));
        let older = get_as(server, path, &format!("{BETA},{JSON};q=0.9")).await;
        assert_eq!(older.header("content-type"), JSON);
        assert_ne!(older.json()["kind"], "APIGroupDiscoveryList");
        assert_eq!(get_as(server, path, BETA).await.code, 406);
        assert_eq!(get_as(server, path, "text/html").await.code, 406);
    }
    let all = get_as(server, "/apis", AGGREGATED).await.json();
    let groups = all["items"].as_array().unwrap();
    let apps = groups.iter().find(|it| it["metadata"]["name"] == "apps");
    let apps = apps.unwrap();
    assert_eq!(apps["versions"][0]["freshness"], "Current");
    let resources = apps["versions"][0]["resources"].as_array().unwrap();
    let sets = resources.iter().find(|r| r["resource"] == "statefulsets");
    let sets = sets.unwrap();
    let own = json!({"group": "", "version": "", "kind": "StatefulSet"});
    assert_eq!(sets["responseKind"], own);
    assert_eq!(sets["scope"], "Namespaced");
    assert_eq!(
        sets["subresources"][0]["responseKind"],
        json!({"group": "autoscaling", "version": "v1", "kind": "Scale"})
    );
    plane.stop().await;
}

/// Checks that both forms of discovery are equal and that a request of each verb is routed.
#[tokio::test]
async fn listed_resources_are_served() {
    let plane = started().await;
    let server = plane.server();
    let mut versions = vec!["/api/v1".to_owned()];
    let groups = get(server, "/apis").await.json();
    for group in groups["groups"].as_array().unwrap() {
        let version = group["preferredVersion"]["groupVersion"].as_str().unwrap();
        versions.push(format!("/apis/{version}"));
    }
    assert!(versions.len() > 5);
    for version in versions {
        let list = get(server, &version).await.json();
        for resource in list["resources"].as_array().unwrap() {
            let name = resource["name"].as_str().unwrap();
            let verbs = resource["verbs"].as_array().unwrap();
            if name.contains('/') || !verbs.contains(&json!("list")) {
                continue;
            }
            let answer = get(server, &format!("{version}/{name}")).await;
            assert_eq!(answer.code, 200, "{name}");
            assert!(answer.json()["items"].is_array(), "{name}");
        }
    }
    plane.stop().await;
}

#[tokio::test]
async fn probes_answer_as_a_whole_and_per_check() {
    let plane = started().await;
    let server = plane.server();
    for probe in ["healthz", "livez", "readyz"] {
        let answer = get(server, &format!("/{probe}")).await;
        assert_eq!((answer.code, answer.text().as_str()), (200, "ok"));
        assert_eq!(answer.header("content-type"), "text/plain; charset=utf-8");
        assert_eq!(answer.header("x-content-type-options"), "nosniff");
        assert_eq!(get(server, &format!("/{probe}/ping")).await.text(), "ok");
        assert_eq!(get(server, &format!("/{probe}/nothing")).await.code, 404);
        let verbose = get(server, &format!("/{probe}?verbose")).await.text();
        assert!(verbose.starts_with("[+]ping ok\n"), "{verbose}");
        let last = format!("{probe} check passed\n");
        assert!(verbose.ends_with(&last), "{verbose}");
    }
    server.stop();
    let answer = get(server, "/readyz").await;
    assert_eq!(answer.code, 500);
    assert!(answer.text().contains("[-]shutdown failed"));
    assert_eq!(get(server, "/livez").await.code, 200);
    plane.stop().await;
}

#[tokio::test]
async fn version_is_the_references() {
    let plane = started().await;
    let version = get(plane.server(), "/version").await.json();
    assert_eq!(version["gitVersion"], "v1.36.2");
    assert_eq!(version["emulationMinor"], "36");
    assert_eq!(version["minCompatibilityMinor"], "35");
    let metrics = get(plane.server(), "/metrics").await.text();
    assert!(metrics.contains("apiserver_storage_objects{resource=\"namespaces\"} 4\n"));
    plane.stop().await;
}

#[tokio::test]
async fn version_is_the_emulated_one() {
    let builder = TestControlPlane::builder().emulated_version(EmulatedVersion::V1_37);
    let plane = builder.start().await;
    let version = get(plane.server(), "/version").await.json();
    assert_eq!(version["gitVersion"], "v1.37.0");
    assert_eq!(version["minor"], "37");
    let metrics = get(plane.server(), "/metrics").await.text();
    assert!(metrics.contains("{git_version=\"v1.37.0\",major=\"1\",minor=\"37\"} 1\n"));
    plane.stop().await;
}

#[tokio::test]
async fn root_lists_the_paths() {
    let plane = started().await;
    let server = plane.server();
    let root = get(server, "/").await.json();
    let paths = root["paths"].as_array().unwrap();
    assert!(paths.len() > 20);
    for path in paths {
        assert_eq!(
            get(server, path.as_str().unwrap()).await.code,
            200,
            "{path}"
        );
    }
    plane.stop().await;
}

#[tokio::test]
async fn unknown_paths_get_text_or_a_status() {
    let plane = started().await;
    let text = [
        "/nope",
        "/apis/nope",
        "/apis/nope/v1",
        "/openapi/v1",
        "//api/v1",
        "/v1/pods",
    ];
    for path in text {
        let answer = get(plane.server(), path).await;
        assert_eq!(answer.code, 404, "{path}");
        assert_eq!(answer.text(), "404 page not found\n", "{path}");
    }
    for path in [
        "/api/v1/foo",
        "/api/v2",
        "/apis/apps/v2",
        "/apis/apps/v1beta1/statefulsets",
        "/api/v1//namespaces",
        "/api/v1/namespaces/a/pods/b/c/d",
        "/api/v1/namespaces/a/nodes",
    ] {
        let answer = get(plane.server(), path).await;
        assert_eq!(answer.code, 404, "{path}");
        let status = answer.json();
        assert_eq!(status["details"], json!({}), "{path}");
        assert_eq!(
            status["message"], "the server could not find the requested resource",
            "{path}"
        );
    }
    plane.stop().await;
}

#[tokio::test]
async fn unsupported_methods_are_rejected() {
    let plane = started().await;
    let sets = "/apis/apps/v1/namespaces/default/statefulsets";
    for (method, path) in [
        (Method::PUT, sets.to_owned()),
        (Method::PATCH, sets.to_owned()),
        (Method::POST, "/apis/apps/v1/statefulsets".to_owned()),
        (Method::DELETE, "/apis/apps/v1/statefulsets".to_owned()),
        (Method::POST, format!("{sets}/web")),
        (Method::POST, format!("{sets}/web/status")),
        (Method::DELETE, format!("{sets}/web/status")),
        (Method::OPTIONS, format!("{sets}/web")),
        (Method::POST, "/apis/apps/v1".to_owned()),
    ] {
        let answer = exchange(plane.server(), method.clone(), &path, &[], "{}").await;
        let status = answer.json();
        assert_eq!(
            (answer.code, &status["reason"]),
            (405, &json!("MethodNotAllowed")),
            "{path}"
        );
        assert_eq!(status["details"], json!({}));
    }
    let path = format!("{sets}/web");
    let answer = exchange(plane.server(), Method::HEAD, &path, &[], "").await;
    assert_eq!((answer.code, answer.bytes.len()), (405, 0));
    let answer = exchange(plane.server(), Method::HEAD, "/healthz", &[], "").await;
    assert_eq!((answer.code, answer.bytes.len()), (200, 0));
    assert_eq!(answer.header("content-length"), "2");
    plane.stop().await;
}

#[tokio::test]
async fn escaped_paths_and_trailing_slashes_are_accepted() {
    let plane = started().await;
    let server = plane.server();
    assert_eq!(
        get(server, "/api/v1/namespaces/").await.json()["kind"],
        "NamespaceList"
    );
    assert_eq!(get(server, "/api/v1/namespaces/de%66ault").await.code, 200);
    let status = get(server, "/api/v1/namespaces/a%3Ab").await.json();
    assert_eq!(status["message"], "namespaces \"a:b\" not found");
    plane.stop().await;
}

#[tokio::test(start_paused = true)]
async fn legacy_watch_paths_are_accepted() {
    let plane = started().await;
    let server = plane.server();
    for (path, names) in [
        ("/api/v1/watch/namespaces", 4),
        ("/api/v1/watch/namespaces/default", 1),
        ("/api/v1/watch/namespaces/default/pods", 0),
    ] {
        let answer = get(server, &format!("{path}?timeoutSeconds=1")).await;
        assert_eq!(answer.code, 200);
        let text = answer.text();
        let events = text.lines().map(|line| serde_json::from_str(line).unwrap());
        let added = events
            .filter(|event: &Value| event["type"] == "ADDED")
            .count();
        assert_eq!(added, names, "{path}");
    }
    let path = "/api/v1/watch/namespaces/default";
    let answer = exchange(server, Method::DELETE, path, &[], "").await;
    assert_eq!(answer.code, 405);
    assert_eq!(
        get(server, "/api/v1/watch/namespaces/default/pods/x/status")
            .await
            .code,
        404
    );
    plane.stop().await;
}
