//! Tests of the fake API through a real client.

use serde_json::json;

use super::*;
use crate::resource::{CONTROLLER_REVISIONS, PODS, STATEFUL_SETS};
use crate::rest::PatchType;

fn pod(name: &str) -> String {
    json!({"metadata": {"namespace": "ns", "name": name, "uid": name}}).to_string()
}

#[tokio::test]
async fn objects_are_created_read_replaced_and_deleted() {
    let fake = FakeClientset::new();
    let client = fake.rest_client();
    client
        .create(&PODS, "ns", r#"{"metadata":{"name":"web-0"}}"#.to_owned())
        .await
        .unwrap();
    let text = client.get(&PODS, "ns", "web-0").await.unwrap();
    assert_eq!(text, r#"{"metadata":{"name":"web-0","namespace":"ns"}}"#);

    client
        .replace_status(
            &PODS,
            "ns",
            "web-0",
            r#"{"metadata":{"name":"web-0","namespace":"ns"},"status":1}"#.to_owned(),
        )
        .await
        .unwrap();
    assert_eq!(fake.object(&PODS, "ns", "web-0").unwrap()["status"], 1);

    client
        .delete(&PODS, "ns", "web-0", "{}".to_owned())
        .await
        .unwrap();
    assert!(fake.objects(&PODS).is_empty());

    let seen: Vec<_> = fake
        .actions()
        .iter()
        .map(|action| {
            format!(
                "{} {}/{} {}",
                action.verb, action.resource, action.subresource, action.name
            )
        })
        .collect();
    assert_eq!(
        seen,
        [
            "create pods/ web-0",
            "get pods/ web-0",
            "update pods/status web-0",
            "delete pods/ web-0"
        ]
    );
    fake.clear_actions();
    assert!(fake.actions().is_empty());
}

#[tokio::test]
async fn name_errors_include_group() {
    let fake = FakeClientset::new();
    let client = fake.rest_client();
    let err = client.get(&STATEFUL_SETS, "ns", "web").await.unwrap_err();
    assert!(err.is_not_found());
    assert_eq!(err.to_string(), "statefulsets.apps \"web\" not found");
    for err in [
        client
            .replace(&PODS, "ns", "x", pod("x"))
            .await
            .unwrap_err(),
        client
            .patch(&PODS, "ns", "x", PatchType::Strategic, "{}".to_owned())
            .await
            .unwrap_err(),
        client
            .delete(&PODS, "ns", "x", String::new())
            .await
            .unwrap_err(),
    ] {
        assert_eq!(err.to_string(), "pods \"x\" not found");
    }
    fake.load(&PODS, pod("x"));
    let err = client.create(&PODS, "ns", pod("x")).await.unwrap_err();
    assert!(err.is_already_exists());
    assert_eq!(err.to_string(), "pods \"x\" already exists");
}

#[tokio::test]
async fn strategic_patch_merges_owners_by_uid_and_sorts_keys() {
    let fake = FakeClientset::new();
    let client = fake.rest_client();
    let data = r#"{"b": 1.0, "a": "\u003c"}"#;
    fake.load(&CONTROLLER_REVISIONS, format!(r#"{{"metadata":{{"namespace":"ns","name":"r","ownerReferences":[{{"uid":"1","name":"x"}}]}},"data":{data}}}"#));
    let patch = async |body: Value| {
        client
            .patch(
                &CONTROLLER_REVISIONS,
                "ns",
                "r",
                PatchType::Strategic,
                body.to_string(),
            )
            .await
            .unwrap()
    };
    let text = patch(json!({"metadata": {"uid": "u", "ownerReferences": [{"uid": "2", "name": "y"}, {"uid": "1", "controller": true}]}})).await;
    assert!(text.contains(r#""data":{"a":"\u003c","b":1}"#), "{text}");
    let owners =
        fake.object(&CONTROLLER_REVISIONS, "ns", "r").unwrap()["metadata"]["ownerReferences"]
            .take();
    assert_eq!(
        owners,
        json!([{"uid": "1", "name": "x", "controller": true}, {"uid": "2", "name": "y"}])
    );
    patch(json!({"metadata": {"ownerReferences": [{"$patch": "delete", "uid": "1"}, {"$patch": "delete", "uid": "2"}]}})).await;
    let metadata = fake.object(&CONTROLLER_REVISIONS, "ns", "r").unwrap()["metadata"].take();
    assert_eq!(
        metadata,
        json!({"namespace": "ns", "name": "r", "uid": "u"})
    );
    let action = fake.actions().pop().unwrap();
    assert_eq!(
        (action.patch_type, action.verb),
        (Some(PatchType::Strategic), Verb::Patch)
    );
}

#[tokio::test]
async fn faults_fail_matching_calls_and_count_down() {
    let fake = FakeClientset::new();
    let client = fake.rest_client();
    fake.load(&PODS, pod("web-0"));
    fake.fail(CallFault::new(Verb::Update, "pods", 1, CallError::Conflict));
    fake.fail(CallFault::new(
        Verb::Get,
        "pods",
        9,
        CallError::InternalError,
    ));
    assert!(client.get(&PODS, "ns", "web-0").await.is_ok());
    let err = client
        .replace(&PODS, "ns", "web-0", pod("web-0"))
        .await
        .unwrap_err();
    assert!(err.is_conflict());
    assert_eq!(
        err.to_string(),
        "Operation cannot be fulfilled on pods \"web-0\": object has been modified"
    );
    assert!(
        client
            .replace(&PODS, "ns", "web-0", pod("web-0"))
            .await
            .is_ok()
    );
}

#[tokio::test]
async fn fault_messages_equal_reference() {
    let fake = FakeClientset::new();
    let client = fake.rest_client();
    for (error, text) in [
        (CallError::InternalError, "Internal error occurred: boom"),
        (
            CallError::Forbidden,
            "pods \"web-0\" is forbidden: exceeded quota",
        ),
        (CallError::Invalid, "X \"web-0\" is invalid"),
        (
            CallError::Timeout,
            "The op operation against pods could not be completed at this time, please try again.",
        ),
        (CallError::AlreadyExists, "pods \"web-0\" already exists"),
        (CallError::NotFound, "pods \"web-0\" not found"),
    ] {
        fake.fail(CallFault::new(Verb::Create, "pods", 1, error));
        let err = client.create(&PODS, "ns", pod("web-0")).await.unwrap_err();
        assert_eq!(err.to_string(), text);
    }
    fake.fail(CallFault::new(Verb::Update, "statefulsets", 1, CallError::NotFound).on("status"));
    let err = client
        .replace_status(&STATEFUL_SETS, "ns", "web", pod("web"))
        .await
        .unwrap_err();
    assert_eq!(err.to_string(), "statefulsets \"web\" not found");
    let rule: CallFault = serde_json::from_str(
        r#"{"verb":"delete","resource":"pods","times":100,"error":"InternalError"}"#,
    )
    .unwrap();
    assert_eq!(
        rule,
        CallFault::new(Verb::Delete, "pods", 100, CallError::InternalError)
    );
}

#[tokio::test]
async fn reaction_replaces_tracker() {
    let fake = FakeClientset::new();
    let client = fake.rest_client();
    fake.react(Verb::Create, "pods", |action| {
        (action.name == "lost").then(|| Err(Error::InvalidRequest("connection lost".to_owned())))
    });
    fake.react(None, "*", |action| {
        (action.verb == Verb::Get).then(|| Ok("{}".to_owned()))
    });
    assert!(
        client
            .create(&PODS, "ns", pod("lost"))
            .await
            .unwrap_err()
            .is_transport()
    );
    assert!(client.create(&PODS, "ns", pod("kept")).await.is_ok());
    assert_eq!(client.get(&PODS, "ns", "any").await.unwrap(), "{}");
    assert!(
        client
            .get_path("/version")
            .await
            .unwrap_err()
            .is_transport()
    );
}
