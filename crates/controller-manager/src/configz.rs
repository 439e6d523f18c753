//! The `/configz` page: the configuration in use.

use std::time::Duration;

use kube_apimachinery::go_duration;
use serde_json::{Value, json};

use crate::options::Options;

/// API group of the configuration. Upstream: `ConfigzName`.
const GROUP: &str = "kubecontrollermanager.config.k8s.io";

/// The parts of kube-controller-manager's configuration that apply to this program.
///
/// Upstream: `KubeControllerManagerConfiguration`.
pub(crate) fn configz(options: &Options) -> Value {
    let duration = |duration: Duration| json!(go_duration::format(duration));
    let optional = |given: Option<Duration>| duration(given.unwrap_or_default());
    let election = &options.leader_election;
    let config = json!({
        "kind": "KubeControllerManagerConfiguration",
        "apiVersion": format!("{GROUP}/v1alpha1"),
        "Generic": {
            "MinResyncPeriod": optional(options.resync_period),
            "ClientConnection": {
                "contentType": options.media_type.name(),
                "qps": options.qps,
                "burst": options.burst,
            },
            "ControllerStartInterval": duration(options.start_interval),
            "ControllerShutdownTimeout": optional(options.shutdown_timeout),
            "LeaderElection": {
                "leaderElect": election.leader_elect,
                "leaseDuration": duration(election.leader_elect_lease_duration),
                "renewDeadline": duration(election.leader_elect_renew_deadline),
                "retryPeriod": duration(election.leader_elect_retry_period),
                "resourceLock": election.leader_elect_resource_lock,
                "resourceName": election.leader_elect_resource_name,
                "resourceNamespace": election.leader_elect_resource_namespace,
            },
            "Debugging": {
                "enableProfiling": options.debugging.profiling,
                "enableContentionProfiling": options.debugging.contention_profiling,
            },
        },
        "KubeCloudShared": {
            "UseServiceAccountCredentials": options.use_service_account_credentials,
        },
        "StatefulSetController": {
            "ConcurrentStatefulSetSyncs": options.concurrent_syncs.get(),
        },
    });
    json!({GROUP: config})
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flags::{Invocation, parse};

    #[test]
    fn configz_shows_the_flags() {
        let arguments = [
            "--leader-elect=false",
            "--concurrent-statefulset-syncs=7",
            "--kube-api-qps=2.5",
            "--kube-api-content-type=application/json",
            "--use-service-account-credentials",
        ];
        let Invocation::Run(flags) = parse(arguments.iter()).unwrap() else {
            panic!("these are flags to run with");
        };
        let options = Options::resolve(*flags).unwrap();
        let expected = json!({GROUP: {
            "kind": "KubeControllerManagerConfiguration",
            "apiVersion": "kubecontrollermanager.config.k8s.io/v1alpha1",
            "Generic": {
                "MinResyncPeriod": "12h0m0s",
                "ClientConnection": {"contentType": "application/json", "qps": 2.5, "burst": 30},
                "ControllerStartInterval": "0s",
                "ControllerShutdownTimeout": "10s",
                "LeaderElection": {
                    "leaderElect": false,
                    "leaseDuration": "15s",
                    "renewDeadline": "10s",
                    "retryPeriod": "2s",
                    "resourceLock": "leases",
                    "resourceName": "kube-controller-manager",
                    "resourceNamespace": "kube-system",
                },
                "Debugging": {"enableProfiling": true, "enableContentionProfiling": false},
            },
            "KubeCloudShared": {"UseServiceAccountCredentials": true},
            "StatefulSetController": {"ConcurrentStatefulSetSyncs": 7},
        }});
        assert_eq!(configz(&options), expected);
    }
}
