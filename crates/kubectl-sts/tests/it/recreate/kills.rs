//! Recreations that lose the server at one of their requests.

use std::sync::{Arc, Mutex};

use kube::client::Body;
use kube_test_control_plane::audit::AuditEntry;
use serde_json::json;

use super::{CHANGE, RECORDS, all_uids, assert_owned, form, owning, records, settled};
use crate::stage::{SET, Stage};

/// The place where a command loses the server.
#[derive(Clone, Copy, Debug)]
struct Kill {
    /// Requests before.
    at: usize,
    /// True if the server receives the request and only the response is lost.
    is_made: bool,
}

/// The requests of a client: each with its method and path.
type Requests = Arc<Mutex<Vec<String>>>;

/// A client that reaches the server until then. Returns it and its requests.
fn dying(stage: &Stage, kill: Kill) -> (kube::Client, Requests) {
    let requests = Requests::default();
    let (seen, server) = (Arc::clone(&requests), stage.plane.client());
    let serve = move |request: http::Request<Body>| {
        let mut seen = seen.lock().expect("no test panics while it counts");
        let number = seen.len();
        seen.push(format!("{} {}", request.method(), request.uri()));
        drop(seen);
        let server = server.clone();
        async move {
            let is_reached = number < kill.at || number == kill.at && kill.is_made;
            if !is_reached {
                return Err(tower::BoxError::from("connection refused"));
            }
            let response = server.send(request).await?;
            if number == kill.at {
                return Err(tower::BoxError::from("connection reset"));
            }
            Ok(response)
        }
    };
    let client = kube::Client::new(tower::service_fn(serve), "default");
    (client, requests)
}

/// The requests of an undisturbed recreation.
async fn requests() -> Vec<String> {
    let stage = settled(&owning(2)).await;
    let never = Kill {
        at: usize::MAX,
        is_made: true,
    };
    let (client, requests) = dying(&stage, never);
    let text = stage.sts_as(client, CHANGE).await;
    assert!(text.ends_with("StatefulSet web is recreated\n"), "{text}");
    let requests = requests.lock().expect("no test panics while it counts");
    requests.clone()
}

/// The number of the request that stores the record: the first write.
fn first_write(requests: &[String]) -> usize {
    let record = format!("POST {RECORDS}");
    let found = requests.iter().position(|request| *request == record);
    found.unwrap_or_else(|| panic!("{requests:#?}"))
}

/// Kills a recreation, ends it with this flag, and checks that nothing was lost.
async fn killed(kill: Kill, flag: &str) {
    let stage = settled(&owning(2)).await;
    let before = all_uids(&stage).await;
    let mark = stage.plane.server().audit().mark();
    let (client, _) = dying(&stage, kill);
    let broken = stage.sts_as(client, CHANGE).await;
    let context = format!("{kill:?} {flag}: {broken}");
    let last = broken.lines().last().unwrap_or_default();
    assert!(last.starts_with("error: "), "{context}");
    let has_record = !records(&stage).await.is_empty();
    let is_gone = stage
        .plane
        .server()
        .store()
        .list("statefulsets", "default")
        .1
        .is_empty();
    if has_record || is_gone {
        let command = format!("kubectl sts recreate web {flag} -n default");
        assert!(last.contains(&command), "{context}");
    }
    assert_ended(&stage, &before, flag, &context).await;
    let writes = stage
        .plane
        .server()
        .audit()
        .since(mark, AuditEntry::is_change);
    let writes = writes.expect("a short log");
    let of_pods = writes.iter().find(|it| {
        let verb = it.verb.name();
        it.resource == "pods" && it.subresource.is_empty() && verb != "patch"
    });
    assert_eq!(of_pods.map(AuditEntry::summary), None, "{context}");
}

/// Ends an interrupted recreation with this flag, and checks that nothing was lost.
async fn assert_ended(stage: &Stage, before: &[Vec<(String, String)>], flag: &str, context: &str) {
    let has_record = !records(stage).await.is_empty();
    // The other side of an interruption may take its time.
    stage.pass(30).await;
    let ended = stage.sts(&format!("recreate web {flag}")).await;
    let context = format!("{context}{ended}");
    assert!(
        !ended.contains("error: ") && !ended.contains("fail "),
        "{context}"
    );
    let expected = match (has_record, flag) {
        (true, "--continue") => "StatefulSet web is recreated\n",
        (true, _) => "StatefulSet web has its old form\n",
        (false, _) => "no recreation of StatefulSet web is under way\n",
    };
    assert!(ended.ends_with(expected), "{context}");
    stage.pass(60).await;
    assert!(records(stage).await.is_empty(), "{context}");
    assert_eq!(all_uids(stage).await, before, "{context}");
    assert_owned(stage, &context).await;
    let (old, new) = ((json!("web"), json!("1Gi")), (json!("db"), json!("2Gi")));
    let found = form(stage).await;
    match (has_record, flag) {
        (true, "--continue") => assert_eq!(found, new, "{context}"),
        (true, _) => assert_eq!(found, old, "{context}"),
        (false, _) => assert!(found == old || found == new, "{context}"),
    }
}

/// Kills a restoration of the new set, ends it with this flag, and checks that nothing was lost.
async fn killed_again(created: usize, kill: Kill, flag: &str) {
    let stage = settled(&owning(2)).await;
    let before = all_uids(&stage).await;
    let created = Kill {
        at: created,
        is_made: true,
    };
    stage.sts_as(dying(&stage, created).0, CHANGE).await;
    let broken = stage
        .sts_as(dying(&stage, kill).0, "recreate web --restore")
        .await;
    let context = format!("{kill:?} {flag}: {broken}");
    assert!(broken.contains("error: "), "{context}");
    assert_ended(&stage, &before, flag, &context).await;
}

/// Kills a recreation at each request from the first write on: before the server receives it, and
/// after it.
async fn killed_everywhere(flag: &str) {
    let requests = requests().await;
    let writes: Vec<&str> = requests[first_write(&requests)..]
        .iter()
        .filter(|request| !request.starts_with("GET"))
        .filter_map(|request| request.split([' ', '?']).next())
        .collect();
    assert_eq!(writes, ["POST", "DELETE", "POST", "DELETE"]);
    for (at, request) in requests.iter().enumerate().skip(first_write(&requests)) {
        killed(Kill { at, is_made: false }, flag).await;
        if !request.starts_with("GET") {
            killed(Kill { at, is_made: true }, flag).await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn recreation_killed_before_its_first_write_changes_nothing() {
    let requests = requests().await;
    let stage = settled(&owning(2)).await;
    let (before, set) = (all_uids(&stage).await, stage.get(SET).await);
    for (at, request) in requests.iter().enumerate().take(first_write(&requests)) {
        for is_made in [false, true] {
            let (client, _) = dying(&stage, Kill { at, is_made });
            let broken = stage.sts_as(client, CHANGE).await;
            let context = format!("{at}, {request}: {broken}");
            let is_interrupted = broken.contains("error: ");
            assert!(
                is_interrupted || broken.contains("incomplete: "),
                "{context}"
            );
            assert_eq!(stage.get(SET).await, set, "{context}");
            assert!(records(&stage).await.is_empty(), "{context}");
        }
    }
    assert_eq!(all_uids(&stage).await, before);
    let ended = stage.sts("recreate web --continue").await;
    assert_eq!(ended, "no recreation of StatefulSet web is under way\n");
}

#[tokio::test(start_paused = true)]
async fn continued_recreation_loses_nothing_wherever_it_was_killed() {
    killed_everywhere("--continue").await;
}

#[tokio::test(start_paused = true)]
async fn restored_set_loses_nothing_wherever_the_recreation_was_killed() {
    killed_everywhere("--restore").await;
}

#[tokio::test(start_paused = true)]
async fn killed_restoration_loses_nothing() {
    let created = requests().await;
    let created = created
        .iter()
        .rposition(|request| request.starts_with("POST"));
    let created = created.expect("the set is created");
    let stage = settled(&owning(2)).await;
    let kill = |at| Kill { at, is_made: true };
    stage.sts_as(dying(&stage, kill(created)).0, CHANGE).await;
    let (client, restoring) = dying(&stage, kill(usize::MAX));
    stage.sts_as(client, "recreate web --restore").await;
    let restoring = restoring
        .lock()
        .expect("no test panics while it counts")
        .clone();
    let writes = restoring.iter().enumerate();
    let writes: Vec<(usize, &String)> = writes.filter(|(_, it)| !it.starts_with("GET")).collect();
    assert_eq!(writes.len(), 3, "delete, create, forget: {restoring:#?}");
    for (at, _) in writes {
        for is_made in [false, true] {
            for flag in ["--continue", "--restore"] {
                killed_again(created, Kill { at, is_made }, flag).await;
            }
        }
    }
}
