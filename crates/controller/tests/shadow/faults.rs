//! Rollouts under faults, without false differences.

use std::time::Duration;

use kube_test_control_plane::faults::{
    FaultAction, FaultError, FaultRule, RequestMatcher, Schedule, WatchAction, WatchRule,
};
use serde_json::json;
use statefulset_controller::metrics::Verdict;

use crate::stage::{SHADOW, Stage, web};

/// Rollouts of each test, unless `SHADOW_ROLLOUTS` says more.
const ROLLOUTS: u64 = 2;
/// The leading controller's user.
const LEADER: &str = "system:serviceaccount:kube-system:statefulset-controller";

/// A small generator, so that every rollout is known by its number.
struct Draw(u64);

impl Draw {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit
    }
}

/// Fails and loses requests of the leader, and delays the watches of the shadow.
fn inject_faults(stage: &Stage) {
    let faults = stage.plane.server().faults();
    let writes = || RequestMatcher::writes().user(LEADER);
    let refused = FaultAction::respond(FaultError::ServiceUnavailable);
    faults.add(FaultRule::new(writes(), refused).when(Schedule::always().probability(0.1)));
    let lost = FaultAction::CommitThenDrop;
    faults.add(FaultRule::new(writes(), lost).when(Schedule::always().probability(0.1)));
    for (resource, milliseconds) in [("pods", 300), ("statefulsets", 700)] {
        let watches = RequestMatcher::any().user(SHADOW).resource(resource);
        let delay = WatchAction::Delay(Duration::from_millis(milliseconds).into());
        faults.add_watch_rule(WatchRule::new(watches, delay));
    }
}

async fn rollouts_are_explained(seed: u64, policy: &str) {
    let more = std::env::var("SHADOW_ROLLOUTS").ok();
    let rollouts = more.map_or(ROLLOUTS, |more| more.parse().unwrap());
    let stage = Stage::start().await;
    let mut set = web(3);
    set["spec"]["podManagementPolicy"] = json!(policy);
    set["spec"]["persistentVolumeClaimRetentionPolicy"] = json!({"whenScaled": "Delete"});
    stage.create(&set).await;
    inject_faults(&stage);
    stage.pass(30).await;
    let mut draw = Draw(seed);
    for _ in 0..rollouts {
        let container = json!({"name": "app", "image": format!("app:{}", draw.below(4))});
        stage
            .change(&json!({
                "replicas": 1 + draw.below(4),
                "template": {"spec": {"containers": [container]}},
            }))
            .await;
        stage.pass(draw.below(20)).await;
        if draw.below(2) == 0 {
            let watches = RequestMatcher::any().user(SHADOW);
            let faults = stage.plane.server().faults();
            faults.apply_to_open_watches(watches, WatchAction::Cut);
        }
        if draw.below(2) == 0 {
            stage.delete_pod("web-0").await;
        }
        stage.pass(30).await;
    }
    stage.plane.server().faults().clear();
    stage.pass(400).await;
    let report = stage.summary();
    assert_eq!(stage.count(Verdict::Different), 0, "{report}");
    assert!(stage.count(Verdict::Equal) > 4 * rollouts, "{report}");
    stage.assert_no_write();
}

#[tokio::test(start_paused = true)]
async fn ordered_rollouts_under_faults_are_explained() {
    rollouts_are_explained(1, "OrderedReady").await;
}

#[tokio::test(start_paused = true)]
async fn parallel_rollouts_under_faults_are_explained() {
    rollouts_are_explained(2, "Parallel").await;
}
