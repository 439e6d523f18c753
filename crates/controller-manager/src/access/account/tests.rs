//! Tests of the service account checks and of their log lines.

use std::sync::{Arc, Mutex};

use statefulset_client::fake::CapturedLog;
use tracing::Level;

use super::*;
use crate::scripted::{asked_client, failure};

const ACCOUNT: &str = "/api/v1/namespaces/kube-system/serviceaccounts/statefulset-controller";

fn account() -> ServiceAccountName {
    ServiceAccountName::new("kube-system", "statefulset-controller")
}

/// Runs the checks on a server that responds with this code for the account and denies these
/// permissions, each `verb resource/subresource`, to every user. Returns the reviews.
async fn checked(code: u16, denies: &'static [&'static str]) -> (Result<(), Obstacle>, Vec<Value>) {
    let reviews = Arc::new(Mutex::new(Vec::new()));
    let log = Arc::clone(&reviews);
    let client = asked_client(move |path, body| {
        if path == ACCOUNT {
            return match code {
                200 => Ok((200, "{}".to_owned())),
                404 => Ok(failure(404, "NotFound", "not found")),
                403 => Ok(failure(403, "Forbidden", "no")),
                _ => Ok(failure(code, "InternalError", "etcd failed")),
            };
        }
        let review: Value = serde_json::from_str(body).unwrap();
        let text = |member: &str| {
            let attributes = &review["spec"]["resourceAttributes"];
            attributes[member].as_str().unwrap().to_owned()
        };
        let (verb, resource) = (text("verb"), text("resource"));
        let right = format!("{verb} {resource}/{}", text("subresource"));
        log.lock().unwrap().push(review);
        let allowed = !denies.contains(&right.as_str());
        Ok((201, json!({"status": {"allowed": allowed}}).to_string()))
    });
    let result = check_tokens(&client, &account()).await;
    if result.is_ok() {
        warn_of_missing_rights(&client, &account()).await;
    }
    let reviews = std::mem::take(&mut *reviews.lock().unwrap());
    (result, reviews)
}

#[tokio::test(start_paused = true)]
async fn token_permissions_pass_the_check() {
    let log = CapturedLog::at(Level::INFO);
    let (result, reviews) =
        checked(200, &["create serviceaccounts/", "get serviceaccounts/"]).await;
    assert_eq!(result, Ok(()));
    assert_eq!(log.take(), [""; 0]);
    assert_eq!(
        reviews[0],
        json!({
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SelfSubjectAccessReview",
            "spec": {"resourceAttributes": {
                "namespace": "kube-system", "name": "statefulset-controller", "verb": "create",
                "group": "", "version": "v1", "resource": "serviceaccounts", "subresource": "token",
            }},
        })
    );
    assert_eq!(
        reviews[4],
        json!({
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SubjectAccessReview",
            "spec": {
                "user": "system:serviceaccount:kube-system:statefulset-controller",
                "groups": [
                    "system:serviceaccounts", "system:serviceaccounts:kube-system",
                    "system:authenticated",
                ],
                "resourceAttributes": {
                    "verb": "update", "group": "apps", "version": "v1",
                    "resource": "statefulsets", "subresource": "status",
                },
            },
        })
    );
    assert_eq!(reviews.len(), 5);
}

#[tokio::test(start_paused = true)]
async fn missing_token_permissions_are_reported() {
    for (code, missing) in [
        (200, "create serviceaccounts/token"),
        (403, "get serviceaccounts, create serviceaccounts/token"),
        (404, "create serviceaccounts, create serviceaccounts/token"),
    ] {
        let all = &[
            "get serviceaccounts/",
            "create serviceaccounts/",
            "create serviceaccounts/token",
        ];
        let (result, _) = checked(code, all).await;
        let Err(Obstacle::Rights {
            missing: found,
            advice,
            ..
        }) = result
        else {
            panic!("{result:?}");
        };
        assert_eq!(
            found,
            format!("{missing} in the namespace \"kube-system\""),
            "{code}"
        );
        assert!(
            advice.contains("ClusterRole system:kube-controller-manager"),
            "{advice}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn missing_account_passes_the_check() {
    assert_eq!(checked(404, &[]).await.0, Ok(()));
}

#[tokio::test(start_paused = true)]
async fn server_failure_is_an_obstacle() {
    let failed = Obstacle::Request(
        "cannot get the service account kube-system/statefulset-controller: etcd failed, trying again"
            .to_owned(),
    );
    for code in [400, 500] {
        assert_eq!(checked(code, &[]).await.0.as_ref(), Err(&failed), "{code}");
    }
}

#[tokio::test(start_paused = true)]
async fn missing_account_permissions_are_logged() {
    let log = CapturedLog::at(Level::INFO);
    let (result, _) = checked(200, &["create pods/", "update statefulsets/status"]).await;
    assert_eq!(result, Ok(()));
    assert_eq!(
        log.take(),
        [
            "WARN the service account lacks permissions; bind the ClusterRole \
             system:controller:statefulset-controller to it \
             account=kube-system/statefulset-controller \
             missing=create pods, update statefulsets.apps/status"
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn failed_access_reviews_count_as_allowed() {
    let log = CapturedLog::at(Level::INFO);
    let client = asked_client(|path, _| match path {
        ACCOUNT => Ok((200, "{}".to_owned())),
        _ => Ok(failure(403, "Forbidden", "no")),
    });
    check_tokens(&client, &account()).await.unwrap();
    warn_of_missing_rights(&client, &account()).await;
    assert_eq!(log.take(), [""; 0]);
}
