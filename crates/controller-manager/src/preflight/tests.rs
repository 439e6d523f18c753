//! What is found before anything runs, and how it is told.

use std::sync::Mutex;

use tokio::time::Instant;

use super::*;
use crate::error_line::error_line;
use crate::scripted::{client, failure};

fn server() -> Uri {
    Uri::from_static("https://api.test:6443/")
}

async fn waited(client: &RestClient) -> (Duration, Result<(), String>) {
    let start = Instant::now();
    let result = wait_for_api_server(client, &server()).await;
    (start.elapsed(), result.map_err(|error| error_line(&error)))
}

#[tokio::test(start_paused = true)]
async fn a_healthy_server_is_not_waited_for() {
    let client = client(|path| {
        assert_eq!(path, "/healthz");
        Ok((200, "ok".to_owned()))
    });
    assert_eq!(waited(&client).await, (Duration::ZERO, Ok(())));
}

#[tokio::test(start_paused = true)]
async fn a_server_that_comes_up_is_waited_for() {
    let looks = Mutex::new(0);
    let client = client(move |_| {
        let mut looks = looks.lock().unwrap();
        *looks += 1;
        match *looks {
            1 => Err("connection refused"),
            2 => Ok(failure(500, "InternalError", "etcd failed")),
            _ => Ok((200, "ok".to_owned())),
        }
    });
    assert_eq!(waited(&client).await, (2 * POLL_INTERVAL, Ok(())));
}

#[tokio::test(start_paused = true)]
async fn a_server_that_stays_down_is_given_up_on() {
    let (after, result) = waited(&client(|_| Err("connection refused"))).await;
    let expected =
        "cannot reach the API server at https://api.test:6443/: GET /healthz: connection refused";
    assert_eq!((after, result.unwrap_err().as_str()), (WAIT_MAX, expected));

    let (after, result) = waited(&client(|_| Ok(failure(500, "InternalError", "no etcd")))).await;
    let expected = "the API server at https://api.test:6443/ is not healthy: no etcd";
    assert_eq!((after, result.unwrap_err().as_str()), (WAIT_MAX, expected));
}

#[tokio::test(start_paused = true)]
async fn credentials_that_are_refused_are_told_at_once() {
    let client = client(|_| Ok(failure(401, "Unauthorized", "Unauthorized")));
    let (after, result) = waited(&client).await;
    let expected = "the API server at https://api.test:6443/ does not accept the credentials: \
                    Unauthorized; check the token or client certificate";
    assert_eq!(
        (after, result.unwrap_err().as_str()),
        (Duration::ZERO, expected)
    );
}

#[tokio::test(start_paused = true)]
async fn a_server_that_hides_its_health_counts_as_healthy() {
    let client = client(|_| Ok(failure(403, "Forbidden", "no")));
    assert_eq!(waited(&client).await, (Duration::ZERO, Ok(())));
}

#[tokio::test(start_paused = true)]
async fn missing_rights_are_told_with_what_to_grant() {
    let client = client(|path| match path {
        "/api/v1/pods" | "/apis/apps/v1/controllerrevisions" => {
            let plural = path.rsplit('/').next().unwrap();
            let message = format!("{plural} is forbidden: User \"jane\" cannot list it");
            Ok(failure(403, "Forbidden", &message))
        }
        _ => Ok((200, "{}".to_owned())),
    });
    assert_eq!(
        error_line(&check_rights(&client, "jobs").await.unwrap_err()),
        "not allowed to list pods, controllerrevisions.apps in all namespaces: pods is forbidden: \
         User \"jane\" cannot list it; bind the ClusterRole jobs, or one with the same rules, to \
         this user"
    );
}

#[tokio::test(start_paused = true)]
async fn a_resource_that_cannot_be_listed_is_named() {
    let client = client(|path| match path {
        "/apis/apps/v1/statefulsets" => Ok(failure(404, "NotFound", "the server knows no such")),
        _ => Ok((200, "{}".to_owned())),
    });
    let error = check_rights(&client, "jobs").await.unwrap_err();
    assert_eq!(
        error_line(&error),
        "list statefulsets.apps: the server knows no such"
    );
}
