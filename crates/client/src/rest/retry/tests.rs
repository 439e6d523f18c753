//! Tests of retries, under paused time.

use std::sync::Mutex;

use tokio::time::Instant;
use tower::service_fn;

use super::*;
use crate::rest::metrics::NoopClientMetrics;

/// One response of a script.
#[derive(Clone, Copy)]
enum Answer {
    Code(u16, Option<&'static str>),
    Reset,
    Refused,
}

use Answer::{Code, Refused, Reset};

/// Sends one request against a script, whose last response repeats. Returns the number of attempts,
/// the final code, and the elapsed seconds.
async fn run(method: Method, script: &'static [Answer]) -> (usize, Option<u16>, u64) {
    let sent = Arc::new(Mutex::new(Vec::new()));
    let log = Arc::clone(&sent);
    let inner = service_fn(move |request: Request<Body>| {
        let log = Arc::clone(&log);
        async move {
            let body = request.into_body().collect().await?.to_bytes();
            let mut log = log.lock().unwrap();
            let answer = script[log.len().min(script.len() - 1)];
            log.push(body);
            match answer {
                Code(code, retry_after) => {
                    let mut response = Response::builder().status(code);
                    if let Some(value) = retry_after {
                        response = response.header("Retry-After", value);
                    }
                    Ok(response.body(Body::empty())?)
                }
                Reset => Err(BoxError::from(std::io::Error::from(
                    ErrorKind::ConnectionReset,
                ))),
                Refused => Err(BoxError::from(std::io::Error::from(
                    ErrorKind::ConnectionRefused,
                ))),
            }
        }
    });
    let service = RetryLayer::new(Arc::new(NoopClientMetrics)).layer(inner);
    let start = Instant::now();
    let request = Request::builder()
        .method(method)
        .uri("/")
        .body(Body::from(b"body".to_vec()));
    let result: Result<Response<Body>, _> = service.oneshot(request.unwrap()).await;
    let bodies = sent.lock().unwrap();
    assert!(
        bodies.iter().all(|body| body == "body"),
        "every attempt has the body"
    );
    let code = result.ok().map(|response| response.status().as_u16());
    (bodies.len(), code, start.elapsed().as_secs())
}

#[tokio::test(start_paused = true)]
async fn retry_after_is_honored() {
    for method in [
        Method::GET,
        Method::POST,
        Method::PUT,
        Method::PATCH,
        Method::DELETE,
    ] {
        let script = &[Code(429, Some("3")), Code(500, Some("2")), Code(200, None)];
        assert_eq!(run(method, script).await, (3, Some(200), 5));
    }
}

#[tokio::test(start_paused = true)]
async fn response_without_retry_after_is_final() {
    for script in [
        &[Code(503, None)],
        &[Code(429, Some("Wed, 21 Oct 2026 07:28:00 GMT"))],
        &[Code(500, Some("1.5"))],
        &[Code(409, Some("1"))],
        &[Code(404, Some("1"))],
    ] {
        let (sent, code, seconds) = run(Method::GET, script).await;
        assert_eq!((sent, seconds), (1, 0));
        assert!(code.is_some());
    }
}

#[tokio::test(start_paused = true)]
async fn retries_end_after_ten() {
    assert_eq!(
        run(Method::POST, &[Code(503, Some("1"))]).await,
        (11, Some(503), 10)
    );
}

#[tokio::test(start_paused = true)]
async fn only_get_is_retried_after_lost_connection() {
    assert_eq!(
        run(Method::GET, &[Reset, Code(200, None)]).await,
        (2, Some(200), 1)
    );
    for method in [Method::POST, Method::PUT, Method::PATCH, Method::DELETE] {
        assert_eq!(run(method, &[Reset]).await, (1, None, 0));
    }
    assert_eq!(run(Method::GET, &[Refused]).await, (1, None, 0));
}

#[tokio::test]
async fn connection_closed_before_response_is_lost() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let server = async {
        loop {
            let (socket, _) = listener.accept().await.unwrap();
            socket.readable().await.unwrap();
        }
    };
    let uri = format!("http://{address}").parse().unwrap();
    let client = kube::Client::try_from(kube::Config::new(uri)).unwrap();
    let request = client.send(Request::builder().uri("/").body(Body::empty()).unwrap());
    let err = tokio::select! {
        result = request => result.unwrap_err(),
        () = server => unreachable!("the server runs forever"),
    };
    assert!(lost_connection(&err), "{err:?}");
}

#[test]
fn connection_closed_by_server_is_lost() {
    let refused = h2::Error::from(h2::Reason::REFUSED_STREAM);
    assert!(lost_connection(&std::io::Error::other(refused)));
    let broken = h2::Error::from(h2::Reason::PROTOCOL_ERROR);
    assert!(!lost_connection(&broken));
}
