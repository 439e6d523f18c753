//! Upstream's test of releasing the lease, since 1.37.
//!
//! Upstream: `tools/leaderelection/leaderelection_test.go`.

use std::time::Duration;

use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use super::super::{Ended, LeaderElectionConfig};
use super::support::{Candidate, Fault, Server};

#[tokio::test(start_paused = true)]
async fn test_release_retries_on_conflict() {
    let config = LeaderElectionConfig {
        release_on_cancel: true,
        ..LeaderElectionConfig::default()
    };
    let server = Server::new();
    let candidate = Candidate::with(&server, "a", config, "2026-01-02T03:04:05Z");
    let work = async {
        sleep(Duration::from_secs(1)).await;
        server.log();
        server.fail(&[Fault::Nothing, Fault::Refuse(409)]);
    };
    let ended = candidate.elector.run(&CancellationToken::new(), work).await;
    assert_eq!(ended, Ended::Finished(()));
    assert_eq!(
        server.log(),
        ["1 GET 200", "1 PUT  409", "3 GET 200", "3 PUT  200"]
    );
    assert_eq!(server.spec("holderIdentity"), "");
}

#[test]
fn every_row_has_a_test() {
    tidy::upstream::parity::assert_rows("CLI");
}
