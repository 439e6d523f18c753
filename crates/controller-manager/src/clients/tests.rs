//! Tests of the clients: fence, rates, formats and user agents.

use statefulset_client::clock::{SystemClock, TokioClock};
use statefulset_client::error::Error;
use statefulset_client::resource::PODS;
use statefulset_client::rest::MediaType;
use statefulset_client::rest::metrics::NoopClientMetrics;

use super::*;
use crate::flags::{Invocation, parse};

/// An address where no server listens.
const NOWHERE: &str = "https://127.0.0.1:1";

fn options(arguments: &[&str]) -> Options {
    match parse(arguments.iter()).unwrap() {
        Invocation::Run(flags) => Options::resolve(*flags).unwrap(),
        other => panic!("{arguments:?}: {other:?}"),
    }
}

/// Calls with clients of an unreachable server.
fn with_clients<T>(options: &Options, call: impl FnOnce(&Clients<'_>) -> T) -> T {
    let config = Config::new(NOWHERE.parse().unwrap());
    let metrics = Arc::new(NoopClientMetrics);
    let clients = Clients::new(&config, options, metrics, Arc::default());
    call(&clients)
}

#[tokio::test]
async fn closed_fence_stops_every_controller_write() {
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    for flag in ["false", "true"] {
        let flag = format!("--use-service-account-credentials={flag}");
        let fence = Fence::new(Arc::new(TokioClock::new()));
        let client = with_clients(&options(&[&flag]), |clients| {
            clients.controller(Some(&fence), &clock).unwrap()
        });
        // With the flag, the token request is the first write.
        let error = client.create(&PODS, "ns", "{}".to_owned()).await;
        let error = error.unwrap_err();
        assert!(matches!(error, Error::NotLeading { .. }), "{flag}: {error}");
    }
}

#[test]
fn clients_take_rate_format_and_user_agent_from_the_flags() {
    let json = "--kube-api-content-type=application/json";
    let options = options(&["--kube-api-qps=3", "--kube-api-burst=4", json]);
    with_clients(&options, |clients| {
        let client = clients.options_of("part");
        assert_eq!((client.qps, client.burst), (3.0, 4));
        assert_eq!(client.media_type, MediaType::Json);
        assert_eq!(client.user_agent, user_agent("part"));
        assert!(Arc::ptr_eq(&client.metrics, &clients.metrics));
        assert!(Arc::ptr_eq(&client.api_health, &clients.api_health));
    });
}
