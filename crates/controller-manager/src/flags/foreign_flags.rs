//! Flags of kube-controller-manager that this program doesn't have, with the reason for each.

/// Flags by the controller they belong to. A trailing `*` matches any suffix.
const OF_CONTROLLERS: [(&str, &[&str]); 28] = [
    (
        "certificatesigningrequest-signing-controller",
        &["cluster-signing-*"],
    ),
    ("cronjob-controller", &["concurrent-cron-job-syncs"]),
    ("daemonset-controller", &["concurrent-daemonset-syncs"]),
    (
        "deployment-controller",
        &[
            "concurrent-deployment-syncs",
            "deployment-controller-sync-period",
        ],
    ),
    (
        "device-taint-eviction-controller",
        &["concurrent-device-taint-eviction-syncs"],
    ),
    (
        "endpoints-controller",
        &["concurrent-endpoint-syncs", "endpoint-updates-batch-period"],
    ),
    (
        "endpointslice-controller",
        &[
            "concurrent-service-endpoint-syncs",
            "endpointslice-updates-batch-period",
            "max-endpoints-per-slice",
        ],
    ),
    ("endpointslice-mirroring-controller", &["mirroring-*"]),
    (
        "ephemeral-volume-controller",
        &["concurrent-ephemeralvolume-syncs"],
    ),
    (
        "garbage-collector-controller",
        &["concurrent-gc-syncs", "enable-garbage-collector"],
    ),
    (
        "horizontal-pod-autoscaler-controller",
        &[
            "concurrent-horizontal-pod-autoscaler-syncs",
            "horizontal-pod-autoscaler-*",
        ],
    ),
    ("job-controller", &["concurrent-job-syncs"]),
    (
        "legacy-serviceaccount-token-cleaner-controller",
        &["legacy-service-account-token-clean-up-period"],
    ),
    (
        "namespace-controller",
        &["concurrent-namespace-syncs", "namespace-sync-period"],
    ),
    (
        "node-ipam-controller",
        &[
            "allocate-node-cidrs",
            "cidr-allocator-type",
            "cluster-cidr",
            "node-cidr-mask-size",
            "node-cidr-mask-size-ipv4",
            "node-cidr-mask-size-ipv6",
            "service-cluster-ip-range",
        ],
    ),
    (
        "node-lifecycle-controller",
        &[
            "enable-taint-manager",
            "large-cluster-size-threshold",
            "node-eviction-rate",
            "node-monitor-grace-period",
            "node-monitor-period",
            "node-startup-grace-period",
            "node-sync-period",
            "pod-eviction-timeout",
            "secondary-node-eviction-rate",
            "unhealthy-zone-threshold",
        ],
    ),
    (
        "node-route-controller",
        &["configure-cloud-routes", "route-reconciliation-period"],
    ),
    (
        "persistentvolume-attach-detach-controller",
        &[
            "attach-detach-reconcile-sync-period",
            "disable-attach-detach-reconcile-sync",
            "disable-force-detach-on-timeout",
        ],
    ),
    (
        "persistentvolume-binder-controller",
        &[
            "enable-dynamic-provisioning",
            "enable-hostpath-provisioner",
            "flex-volume-plugin-dir",
            "pv-recycler-*",
            "pvclaimbinder-sync-period",
            "volume-host-*",
        ],
    ),
    (
        "pod-garbage-collector-controller",
        &["terminated-pod-gc-threshold"],
    ),
    ("replicaset-controller", &["concurrent-replicaset-syncs"]),
    ("replicationcontroller-controller", &["concurrent-rc-syncs"]),
    (
        "resourcequota-controller",
        &[
            "concurrent-resource-quota-syncs",
            "resource-quota-sync-period",
        ],
    ),
    ("service-lb-controller", &["concurrent-service-syncs"]),
    (
        "serviceaccount-token-controller",
        &[
            "concurrent-serviceaccount-token-syncs",
            "root-ca-file",
            "service-account-private-key-file",
        ],
    ),
    (
        "taint-eviction-controller",
        &["deleting-pods-burst", "deleting-pods-qps"],
    ),
    (
        "ttl-after-finished-controller",
        &["concurrent-ttl-after-finished-syncs"],
    ),
    (
        "validatingadmissionpolicy-status-controller",
        &["concurrent-validating-admission-policy-status-syncs"],
    ),
];

/// Flags of no controller, by subject, with the reason why they are rejected.
const OTHERS: [(&str, &str, &[&str]); 4] = [
    (
        "cloud providers",
        "concerns cloud providers, which this program does not support; remove the flag",
        &[
            "allow-untagged-cloud",
            "cloud-config",
            "cloud-provider",
            "cluster-name",
            "enable-leader-migration",
            "external-cloud-volume-plugin",
            "leader-migration-config",
        ],
    ),
    (
        "Go's logging libraries",
        "is a setting of Go's logging libraries, which this program does not use; remove the flag",
        &[
            "add-dir-header",
            "alsologtostderr",
            "log-backtrace-at",
            "log-dir",
            "log-file",
            "log-file-max-size",
            "log-json-*",
            "log-text-*",
            "logtostderr",
            "one-output",
            "skip-headers",
            "skip-log-headers",
            "stderrthreshold",
            "vmodule",
        ],
    ),
    (
        "values of labels in a file",
        "is not supported; list the values with --allow-metric-labels",
        &["allow-metric-labels-manifest"],
    ),
    (
        "serving without TLS",
        "was for serving without TLS, which was removed; see --bind-address and --secure-port",
        &["address", "port"],
    ),
];

/// Returns all these flags by controller or subject.
pub(super) fn all() -> impl Iterator<Item = (&'static str, &'static [&'static str])> {
    let others = OTHERS.iter().map(|(subject, _, flags)| (*subject, *flags));
    OF_CONTROLLERS.iter().copied().chain(others)
}

/// Reason why a flag of kube-controller-manager doesn't exist here; `None` for unknown names.
pub(super) fn why_not(name: &str) -> Option<String> {
    let among = |patterns: &[&str]| patterns.iter().any(|pattern| matches(pattern, name));
    if let Some((controller, _)) = OF_CONTROLLERS.iter().find(|(_, flags)| among(flags)) {
        return Some(format!(
            "belongs to the {controller}, which this program does not run; remove the flag"
        ));
    }
    let (_, reason, _) = OTHERS.iter().find(|(_, _, flags)| among(flags))?;
    Some((*reason).to_owned())
}

fn matches(pattern: &str, name: &str) -> bool {
    match pattern.strip_suffix('*') {
        Some(start) => name.starts_with(start),
        None => pattern == name,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flags::command;

    #[test]
    fn flags_of_other_controllers_name_their_controller() {
        let reason = why_not("cluster-signing-kube-apiserver-client-key-file").unwrap();
        assert_eq!(
            reason,
            "belongs to the certificatesigningrequest-signing-controller, which this program does \
             not run; remove the flag"
        );
        assert_eq!(why_not("cluster-sign"), None);
        assert_eq!(why_not("root-ca-files"), None);
    }

    #[test]
    fn own_flags_are_not_listed_as_foreign() {
        for flag in command().get_arguments() {
            let name = flag.get_long().unwrap();
            assert_eq!(why_not(name), None, "--{name}");
        }
    }
}
