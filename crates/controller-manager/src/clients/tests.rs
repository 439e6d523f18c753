//! The clients behind the fence, and their rates.

use statefulset_client::clock::{SystemClock, TokioClock};
use statefulset_client::error::Error;
use statefulset_client::resource::PODS;
use statefulset_client::rest::metrics::NoopClientMetrics;

use super::*;
use crate::flags::{Invocation, parse};

/// The port that nobody serves.
const NOWHERE: &str = "https://127.0.0.1:1";

fn options(arguments: &[&str]) -> Options {
    match parse(arguments.iter()).unwrap() {
        Invocation::Run(flags) => Options::resolve(*flags).unwrap(),
        other => panic!("{arguments:?}: {other:?}"),
    }
}

/// Calls with clients of a server that is not there.
fn with_clients<T>(options: &Options, call: impl FnOnce(&Clients<'_>) -> T) -> T {
    let config = Config::new(NOWHERE.parse().unwrap());
    let metrics = Arc::new(NoopClientMetrics);
    let clients = Clients::new(&config, options, metrics, Arc::default());
    call(&clients)
}

#[tokio::test]
async fn a_closed_fence_stops_every_write_of_the_controller() {
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    for flag in ["false", "true"] {
        let flag = format!("--use-service-account-credentials={flag}");
        let fence = Fence::new(Arc::new(TokioClock::new()));
        let client = with_clients(&options(&[&flag]), |clients| {
            clients.controller(Some(&fence), &clock).unwrap()
        });
        // With the flag the request for a token is the first write.
        let error = client.create(&PODS, "ns", "{}".to_owned()).await;
        let error = error.unwrap_err();
        assert!(matches!(error, Error::NotLeading { .. }), "{flag}: {error}");
    }
}

#[test]
fn every_client_has_the_rate_of_the_flags_its_name_and_what_all_share() {
    let options = options(&["--kube-api-qps=3", "--kube-api-burst=4"]);
    with_clients(&options, |clients| {
        let client = clients.options_of("part");
        assert_eq!((client.qps, client.burst), (3.0, 4));
        assert_eq!(client.user_agent, user_agent("part"));
        assert!(Arc::ptr_eq(&client.metrics, &clients.metrics));
        assert!(Arc::ptr_eq(&client.api_health, &clients.api_health));
    });
}
