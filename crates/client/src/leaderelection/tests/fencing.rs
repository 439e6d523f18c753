//! Tests of the fence: no write starts after the deadline.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use super::super::{Ended, Lost};
use super::support::{Candidate, Fault, Server, SleepyClock, never};
use crate::clock::MonotonicClock as _;
use crate::config::{ClientOptions, layered};
use crate::error::Error;
use crate::fake::CapturedLog;
use crate::fence::Fence;
use crate::resource::PODS;
use crate::rest::RestClient;

/// Returns a fenced client of an API server that accepts every request.
fn fenced(fence: Fence, options: ClientOptions) -> RestClient {
    Server::new().client(ClientOptions {
        fence: Some(fence),
        ..options
    })
}

async fn write(client: &RestClient) -> Result<String, Error> {
    client.delete(&PODS, "ns", "web-0", "{}".to_owned()).await
}

async fn read(client: &RestClient) -> Result<String, Error> {
    client.get(&PODS, "ns", "web-0").await
}

fn is_refused(result: &Result<String, Error>) -> bool {
    matches!(result, Err(Error::NotLeading { .. }))
}

#[tokio::test(start_paused = true)]
async fn writes_pass_until_renew_deadline() {
    let server = Server::new();
    server.fail(&[Fault::Refuse(500)]);
    let candidate = Candidate::new(&server, "a");
    let client = fenced(candidate.elector.fence(), ClientOptions::default());
    let watch = async {
        sleep(Duration::from_secs(1)).await;
        assert!(is_refused(&write(&client).await));
        // Leads from 2 s on, and renews for the last time at 4 s.
        sleep(Duration::from_secs(4)).await;
        server.fail_always(Fault::Hang);
        sleep(Duration::from_millis(8_999)).await;
        assert!(write(&client).await.is_ok());
        sleep(Duration::from_millis(1)).await;
        assert!(is_refused(&write(&client).await));
        assert!(matches!(read(&client).await, Err(Error::Api(_))));
    };
    let cancelled = CancellationToken::new();
    let (ended, ()) = tokio::join!(candidate.elector.run(&cancelled, never()), watch);
    // The attempts began at 6 s; the fence closed earlier.
    let within = Duration::from_secs(10);
    assert_eq!(ended, Ended::Lost(Lost::NotRenewed { within }));
    assert!(is_refused(&write(&client).await));
}

#[tokio::test(start_paused = true)]
async fn deadline_counts_from_start_of_request() {
    // The renewal at 0 s times out after 5 s, and a retry succeeds.
    let server = Server::new();
    server.fail(&[Fault::Nothing, Fault::Nothing, Fault::Hang]);
    let candidate = Candidate::new(&server, "a");
    let fence = candidate.elector.fence();
    let watch = async {
        sleep(Duration::from_millis(5_500)).await;
        server.fail_always(Fault::Hang);
        sleep(Duration::from_millis(9_400)).await;
        assert!(fence.check().is_ok());
        sleep(Duration::from_millis(200)).await;
        // 10 s after the successful PUT, which began at 5 s.
        assert!(fence.check().is_err());
    };
    tokio::join!(candidate.run_for(60.0), watch);
}

#[tokio::test(start_paused = true)]
async fn suspended_process_sends_nothing_after_it_resumes() {
    let server = Server::new();
    let candidate = Candidate::new(&server, "a");
    let client = fenced(candidate.elector.fence(), ClientOptions::default());
    let machine = Arc::clone(&candidate.machine);
    let watch = async {
        sleep(Duration::from_millis(2_500)).await;
        assert!(write(&client).await.is_ok());
        machine.sleep(Duration::from_secs(3600));
        // No timer of this process has fired yet.
        assert!(is_refused(&write(&client).await));
        sleep(Duration::from_secs(2)).await;
        // No rival has taken the lease.
        assert!(write(&client).await.is_ok());
    };
    tokio::join!(candidate.run_for(6.0), watch);
}

#[tokio::test(start_paused = true)]
async fn delayed_write_is_checked_again() {
    let clock = Arc::new(SleepyClock::default());
    let fence = Fence::new(Arc::<SleepyClock>::clone(&clock));
    fence.open_until(clock.elapsed() + Duration::from_secs(10));
    // Waits for the rate limit.
    let slow = tower::service_fn(|_| async {
        Ok::<_, tower::BoxError>(http::Response::new(kube::client::Body::empty()))
    });
    let options = ClientOptions {
        qps: 0.05,
        burst: 1,
        fence: Some(fence.clone()),
        ..ClientOptions::default()
    };
    let client = layered(slow, &options);
    assert!(write(&client).await.is_ok());
    assert!(is_refused(&write(&client).await));
    // Waits for a busy server.
    let busy = tower::service_fn(|_| async {
        let busy = http::Response::builder()
            .status(429)
            .header("retry-after", "15");
        Ok::<_, tower::BoxError>(busy.body(kube::client::Body::empty())?)
    });
    fence.open_until(clock.elapsed() + Duration::from_secs(10));
    let options = ClientOptions {
        fence: Some(fence),
        ..ClientOptions::default()
    };
    assert!(is_refused(&write(&layered(busy, &options)).await));
}

#[tokio::test(start_paused = true)]
async fn blocked_write_returns_not_leading() {
    let fence = Fence::new(Arc::new(SleepyClock::default()));
    let error = write(&fenced(fence, ClientOptions::default()))
        .await
        .unwrap_err();
    assert_eq!(
        error.to_string(),
        "DELETE /api/v1/namespaces/ns/pods/web-0: not sent: this process no longer holds the lease"
    );
    assert!(!error.is_transport());
}

#[tokio::test(start_paused = true)]
async fn dropping_election_closes_fence() {
    let server = Server::new();
    let candidate = Candidate::new(&server, "a");
    let fence = candidate.elector.fence();
    candidate.run_for(1.0).await;
    assert!(fence.check().is_err());
}

#[tokio::test(start_paused = true)]
async fn connection_cut_by_fence_is_not_a_server_fault() {
    let log = CapturedLog::at(tracing::Level::INFO);
    let clock = Arc::new(SleepyClock::default());
    let fence = Fence::new(Arc::<SleepyClock>::clone(&clock));
    let open = || fence.open_until(clock.elapsed() + Duration::from_secs(10));
    let cut = tower::service_fn(|_: http::Request<kube::client::Body>| async {
        sleep(Duration::from_secs(5)).await;
        // The error that HTTP/2 makes of the closed fence.
        let error = std::io::Error::other("not sent: this process no longer holds the lease");
        Err::<http::Response<kube::client::Body>, _>(tower::BoxError::from(error))
    });
    let options = ClientOptions {
        fence: Some(fence.clone()),
        ..ClientOptions::default()
    };
    let client = layered(cut, &options);
    open();
    let pause = async {
        sleep(Duration::from_secs(1)).await;
        clock.sleep(Duration::from_secs(60));
    };
    let (written, ()) = tokio::join!(write(&client), pause);
    // The server may have applied it.
    assert!(written.unwrap_err().is_transport());
    assert!(read(&client).await.unwrap_err().is_transport());
    assert_eq!(log.take(), [""; 0]);
    open();
    assert!(write(&client).await.unwrap_err().is_transport());
    let lines = log.take();
    assert_eq!(lines.len(), 1);
    assert!(
        lines[0].starts_with("WARN API server unreachable"),
        "{lines:?}"
    );
}

/// Returns a client of a server that responds to every write with this code after a second, or
/// never if there is no code.
fn answering(fence: &Fence, code: Option<u16>) -> RestClient {
    let service = tower::service_fn(move |_: http::Request<kube::client::Body>| async move {
        sleep(Duration::from_secs(1)).await;
        let Some(code) = code else {
            return std::future::pending().await;
        };
        let response = http::Response::builder().status(code);
        Ok::<_, tower::BoxError>(response.body(kube::client::Body::from(b"{}".to_vec()))?)
    });
    let options = ClientOptions {
        fence: Some(fence.clone()),
        ..ClientOptions::default()
    };
    layered(service, &options)
}

#[tokio::test(start_paused = true)]
async fn fence_is_quiet_after_every_response() {
    let clock = Arc::new(SleepyClock::default());
    let fence = Fence::new(Arc::<SleepyClock>::clone(&clock));
    fence.open_until(Duration::from_secs(3600));
    let lease = Duration::from_secs(15);
    assert!(fence.is_quiet_for(lease));
    let client = answering(&fence, Some(200));
    let look = async {
        sleep(Duration::from_millis(500)).await;
        fence.is_quiet_for(lease)
    };
    let (written, quiet_meanwhile) = tokio::join!(write(&client), look);
    assert!(written.is_ok() && !quiet_meanwhile);
    assert!(fence.is_quiet_for(lease));
    // Reads don't count.
    let silent = answering(&fence, None);
    let given_up = tokio::time::timeout(Duration::from_secs(2), read(&silent)).await;
    assert!(given_up.is_err() && fence.is_quiet_for(lease));
}

#[tokio::test(start_paused = true)]
async fn unanswered_write_delays_quiet() {
    for code in [None, Some(500), Some(504)] {
        let clock = Arc::new(SleepyClock::default());
        let fence = Fence::new(Arc::<SleepyClock>::clone(&clock));
        fence.open_until(Duration::from_secs(3600));
        let lease = Duration::from_secs(15);
        let client = answering(&fence, code);
        // The dropped request counts as one without a response.
        let ended = tokio::time::timeout(Duration::from_secs(2), write(&client)).await;
        assert!(ended.is_err() == code.is_none());
        assert!(!fence.is_quiet_for(lease), "{code:?}");
        clock.sleep(lease);
        assert!(fence.is_quiet_for(lease), "{code:?}");
    }
}
