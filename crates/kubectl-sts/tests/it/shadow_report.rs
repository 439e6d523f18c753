//! The report of a shadow, from its pod and from a file.

use http::{Request, Response};
use kube::client::Body;
use serde_json::{Value, json};
use tower::{BoxError, service_fn};

use crate::stage::Stage;

fn report(different: u64) -> Value {
    let difference = json!({
        "at": "2026-03-01T11:00:00Z", "namespace": "default", "set": "web",
        "write": "delete pods web-0", "isMissing": false,
        "decided": [], "waiting": "pod web-2 is not ready",
    });
    let differences = if different > 0 {
        vec![difference]
    } else {
        Vec::new()
    };
    let counts =
        json!({"equal": 41, "late": 1, "refused": 0, "foreign": 2, "different": different});
    report_of(3, &counts, &differences)
}

/// A report after a week.
pub(crate) fn report_of(sets: usize, counts: &Value, differences: &[Value]) -> Value {
    json!({
        "kind": "ShadowReport", "since": "2026-02-22T12:00:00Z", "now": "2026-03-01T12:00:00Z",
        "sets": sets, "differences": differences, "decisions": counts,
    })
}

/// An API server with a shadow, which reports this.
pub(crate) fn cluster(namespace: &str, report: Value) -> kube::Client {
    let pods_path = format!("/api/v1/namespaces/{namespace}/pods");
    let answer = move |request: Request<Body>| {
        let pod = |name: &str, arguments: Value| {
            json!({
                "metadata": {"name": name}, "status": {"phase": "Running"},
                "spec": {"containers": [{"args": arguments}]},
            })
        };
        let pods = json!({"items": [
            pod("leader", json!(["--v=2"])),
            pod("shadow-1", json!(["--v=2", "--shadow", "--secure-port=10300"])),
        ]});
        let path = request.uri().path();
        let proxy = format!("{pods_path}/https:shadow-1:10300/proxy/shadow");
        let text = match path {
            _ if path == pods_path => pods.to_string(),
            _ if path == proxy => report.to_string(),
            _ => json!({"items": []}).to_string(),
        };
        async move { Ok::<_, BoxError>(Response::new(Body::from(text.into_bytes()))) }
    };
    kube::Client::new(service_fn(answer), "default")
}

#[tokio::test(start_paused = true)]
async fn report_of_the_running_shadow_is_shown() {
    let stage = Stage::without_controller().await;
    let user = cluster("sts", report(0));
    let text = stage.sts_as(user, "shadow-report -n sts").await;
    let wanted = "3 sets, compared for 7d\n\
                  VERDICT    WRITES\n\
                  equal      41\n\
                  late       1\n\
                  refused    0\n\
                  foreign    2\n\
                  different  0\n\
                  no decision differs\n";
    assert_eq!(text, wanted);
    let user = cluster("sts", report(0));
    let text = stage.sts_as(user, "shadow-report -n db").await;
    let start = "error: no running pod in namespace db has the flag --shadow";
    assert!(text.starts_with(start), "{text}");
}

#[tokio::test(start_paused = true)]
async fn differences_have_their_own_exit_code() {
    let stage = Stage::without_controller().await;
    let folder = std::path::Path::new(env!("CARGO_TARGET_TMPDIR"));
    let path = folder.join(format!("shadow-report-{}.json", std::process::id()));
    std::fs::write(&path, report(1).to_string()).expect("the report is written");
    let question = format!("shadow-report -f {}", path.display());
    let text = stage.sts(&question).await;
    let end = "default/web at 2026-03-01T11:00:00Z: the other controller sent: delete pods web-0\n  \
               shadow    no write\n  \
               waiting   pod web-2 is not ready\n\
               1 decision differs\nexit code 2\n";
    assert!(text.ends_with(end), "{text}");
    std::fs::remove_file(&path).expect("the report exists");
}
