//! Tests of resends against a server that speaks HTTP/2 by itself, and of their limits.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use http::Method;
use http_body::Frame;
use http_body_util::StreamBody;
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioExecutor;
use tokio::time::Instant;
use tower::service_fn;

use super::*;
use crate::clock::{MonotonicClock as _, TokioClock};
use crate::config::{ClientOptions, layered};
use crate::error::{Error, NotProcessed};
use crate::fence::Fence;
use crate::resource::PODS;
use crate::rest::RestClient;
use crate::rest::retry::Resends;
use server::{Reaction, Server};

mod server;

/// Returns a client of the server with an open fence. It knows without TLS that the server speaks
/// HTTP/2.
fn client(server: &Server) -> (RestClient, Fence) {
    let clock = TokioClock::new();
    let fence = Fence::new(Arc::new(clock));
    fence.open_until(clock.elapsed() + Duration::from_secs(3600));
    let http: Client<_, Body> = Client::builder(TokioExecutor::new())
        .http2_only(true)
        .build_http();
    let authority = server.address.to_string();
    let service = service_fn(move |mut request: Request<Body>| {
        let path = request.uri().path().to_owned();
        *request.uri_mut() = format!("http://{authority}{path}").parse().unwrap();
        http.request(request)
    });
    let options = ClientOptions {
        qps: 0.0,
        fence: Some(fence.clone()),
        ..ClientOptions::default()
    };
    (layered(service, &options), fence)
}

/// Creates pods, one after the other if `in_turn`, and returns the error of each.
async fn create(client: &RestClient, names: &[&str], in_turn: bool) -> Vec<Option<Error>> {
    let create = |name: &str| {
        let body = format!("{{\"metadata\":{{\"name\":\"{name}\"}}}}");
        async move { client.create(&PODS, "ns", body).await.err() }
    };
    if !in_turn {
        return futures::future::join_all(names.iter().map(|name| create(name))).await;
    }
    let mut errors = Vec::new();
    for name in names {
        errors.push(create(name).await);
    }
    errors
}

/// Runs the server's script and creates pods. Returns the number of requests for each connection,
/// and the error of each creation.
async fn run(
    script: Vec<Vec<Reaction>>,
    names: &[&str],
    in_turn: bool,
) -> (Vec<usize>, Vec<Option<Error>>) {
    let server = Server::start(script).await;
    let (client, fence) = client(&server);
    let errors = create(&client, names, in_turn).await;
    let was_executed = errors.iter().all(Option::is_none);
    assert_eq!(fence.is_quiet_for(Duration::from_secs(1)), was_executed);
    (server.requests(), errors)
}

fn none_failed(errors: &[Option<Error>]) -> bool {
    errors.iter().all(Option::is_none)
}

#[tokio::test]
async fn write_behind_a_go_away_is_sent_on_a_new_connection() {
    let script = vec![vec![Reaction::GoAway { last: 0 }], vec![Reaction::Respond]];
    let (requests, errors) = run(script, &["a"], true).await;
    assert_eq!((requests, none_failed(&errors)), (vec![1, 1], true));
}

#[tokio::test]
async fn go_away_between_requests_spares_the_earlier_one() {
    let script = vec![
        vec![
            Reaction::Hold,
            Reaction::GoAway { last: 1 },
            Reaction::RespondTo(1),
        ],
        vec![Reaction::Respond],
    ];
    let (requests, errors) = run(script, &["a", "b"], false).await;
    assert_eq!((requests, none_failed(&errors)), (vec![2, 1], true));
}

#[tokio::test]
async fn request_after_a_go_away_is_sent_on_a_new_connection() {
    let script = vec![
        vec![Reaction::Respond, Reaction::GoAway { last: 1 }],
        vec![Reaction::Respond],
    ];
    let (requests, errors) = run(script, &["a", "b"], true).await;
    assert_eq!((requests, none_failed(&errors)), (vec![2, 1], true));
}

#[tokio::test]
async fn refused_stream_is_sent_again() {
    let script = vec![vec![Reaction::Refuse, Reaction::Respond]];
    let (requests, errors) = run(script, &["a"], true).await;
    assert_eq!((requests, none_failed(&errors)), (vec![2], true));
}

#[tokio::test]
async fn write_that_may_have_been_processed_is_not_sent_again() {
    let script = vec![
        vec![Reaction::GoAwayAndClose { last: 1 }],
        vec![Reaction::Respond],
    ];
    let (requests, errors) = run(script, &["a"], true).await;
    assert_eq!(requests, [1]);
    let error = errors[0].as_ref().unwrap();
    assert!(
        error.is_transport() && error.resend_after().is_none(),
        "{error}"
    );
}

#[tokio::test(start_paused = true)]
async fn resends_stop_with_the_fence_and_the_time_limit() {
    let run = |fence_closes_after: u64, response_timeout: u64| async move {
        let clock = TokioClock::new();
        let fence = Fence::new(Arc::new(clock));
        fence.open_until(clock.elapsed() + Duration::from_secs(fence_closes_after));
        let sent = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&sent);
        let service = service_fn(move |_: Request<Body>| {
            count.fetch_add(1, Ordering::Relaxed);
            async { Err::<Response<Body>, _>(BoxError::from(NotProcessed)) }
        });
        let options = ClientOptions {
            qps: 0.0,
            fence: Some(fence),
            response_timeout: Duration::from_secs(response_timeout),
            ..ClientOptions::default()
        };
        let client = layered(service, &options);
        let begun = Instant::now();
        let error = client
            .create(&PODS, "ns", "{}".to_owned())
            .await
            .unwrap_err();
        (
            sent.load(Ordering::Relaxed),
            begun.elapsed().as_secs(),
            error,
        )
    };
    let (sent, after, error) = run(3600, 90).await;
    assert_eq!((sent, after, error.is_transport()), (7, 31, true));
    let (sent, after, error) = run(2, 90).await;
    assert!(matches!(error, Error::NotLeading { .. }), "{error}");
    assert_eq!((sent, after), (3, 3));
    let (sent, after, error) = run(3600, 10).await;
    assert!(matches!(error, Error::Timeout { .. }), "{error}");
    assert_eq!((sent, after), (5, 10));
}

#[tokio::test(start_paused = true)]
async fn caller_of_an_immediate_write_sends_it_again() {
    let responses = [None, Some(429), Some(429), Some(200)];
    let sent = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&sent);
    let service = service_fn(move |_: Request<Body>| {
        let response = responses[count.fetch_add(1, Ordering::Relaxed)];
        async move {
            let Some(code) = response else {
                return Err(BoxError::from(NotProcessed));
            };
            let response = Response::builder().status(code).header("Retry-After", "3");
            Ok(response.body(Body::from(b"{}".to_vec()))?)
        }
    });
    let client = layered(service, &ClientOptions::default()).at_once();
    let begun = Instant::now();
    let mut resends = Resends::default();
    let mut attempts = 0;
    let result = loop {
        let result = client.delete(&PODS, "ns", "web-0", "{}".to_owned()).await;
        attempts += 1;
        assert_eq!(sent.load(Ordering::Relaxed), attempts);
        if !resends.allows(&result).await {
            break result;
        }
    };
    result.unwrap();
    assert_eq!((attempts, begun.elapsed().as_secs()), (4, 6));
}

#[tokio::test]
async fn other_failures_may_have_been_executed() {
    for (code, retry_after) in [(429, None), (503, Some("1")), (409, Some("1"))] {
        let service = service_fn(move |request: Request<Body>| async move {
            assert_eq!(request.method(), Method::DELETE);
            let mut response = Response::builder().status(code);
            if let Some(value) = retry_after {
                response = response.header("Retry-After", value);
            }
            response.body(Body::empty()).map_err(BoxError::from)
        });
        let client = layered(service, &ClientOptions::default()).at_once();
        let result = client.delete(&PODS, "ns", "web-0", "{}".to_owned()).await;
        assert!(!Resends::default().allows(&result).await, "{code}");
    }
}

#[tokio::test(start_paused = true)]
async fn resends_of_an_immediate_write_take_limited_time() {
    for (seconds, resends_max, waited) in [(600, 0, 0), (10, 3, 30), (1, 10, 10)] {
        let error = Error::api(429, "TooManyRequests", "later");
        let result = Err::<(), _>(error.with_retry_after(Some(Duration::from_secs(seconds))));
        let (mut resends, mut made) = (Resends::default(), 0);
        let begun = Instant::now();
        while resends.allows(&result).await {
            made += 1;
        }
        assert_eq!((made, begun.elapsed().as_secs()), (resends_max, waited));
    }
}

#[tokio::test]
async fn write_whose_response_ends_early_is_not_sent_again() {
    let service = service_fn(|_: Request<Body>| async {
        let broken = Err::<Frame<Bytes>, _>(BoxError::from(NotProcessed));
        let body = StreamBody::new(futures::stream::iter([broken]));
        Ok::<_, BoxError>(Response::new(body))
    });
    let client = layered(service, &ClientOptions::default()).at_once();
    let result = client.delete(&PODS, "ns", "web-0", "{}".to_owned()).await;
    assert!(!Resends::default().allows(&result).await, "{result:?}");
}
