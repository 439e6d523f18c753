//! The `--controllers` list: names of controllers to run.

use anyhow::{bail, ensure};

/// Name of this program's controller, and its older alias.
const OWN: [&str; 2] = ["statefulset-controller", "statefulset"];

/// Upstream's other controllers, with their older aliases.
///
/// Upstream: `NewControllerDescriptors`, `ControllersDisabledByDefault`.
const OTHERS: [&str; 89] = [
    "attachdetach",
    "bootstrap-signer-controller",
    "bootstrapsigner",
    "certificatesigningrequest-approving-controller",
    "certificatesigningrequest-cleaner-controller",
    "certificatesigningrequest-signing-controller",
    "cloud-node-lifecycle",
    "cloud-node-lifecycle-controller",
    "clusterrole-aggregation",
    "clusterrole-aggregation-controller",
    "cronjob",
    "cronjob-controller",
    "csrapproving",
    "csrcleaner",
    "csrsigning",
    "daemonset",
    "daemonset-controller",
    "deployment",
    "deployment-controller",
    "device-taint-eviction-controller",
    "disruption",
    "disruption-controller",
    "endpoint",
    "endpoints-controller",
    "endpointslice",
    "endpointslice-controller",
    "endpointslice-mirroring-controller",
    "endpointslicemirroring",
    "ephemeral-volume",
    "ephemeral-volume-controller",
    "garbage-collector-controller",
    "garbagecollector",
    "horizontal-pod-autoscaler-controller",
    "horizontalpodautoscaling",
    "job",
    "job-controller",
    "kube-apiserver-serving-clustertrustbundle-publisher-controller",
    "legacy-service-account-token-cleaner",
    "legacy-serviceaccount-token-cleaner-controller",
    "namespace",
    "namespace-controller",
    "node-ipam-controller",
    "node-lifecycle-controller",
    "node-route-controller",
    "nodeipam",
    "nodelifecycle",
    "persistentvolume-attach-detach-controller",
    "persistentvolume-binder",
    "persistentvolume-binder-controller",
    "persistentvolume-expander",
    "persistentvolume-expander-controller",
    "persistentvolume-protection-controller",
    "persistentvolumeclaim-protection-controller",
    "pod-garbage-collector-controller",
    "podcertificaterequest-cleaner-controller",
    "podgc",
    "pv-protection",
    "pvc-protection",
    "replicaset",
    "replicaset-controller",
    "replicationcontroller",
    "replicationcontroller-controller",
    "resource-claim-controller",
    "resourceclaim-controller",
    "resourcequota",
    "resourcequota-controller",
    "root-ca-cert-publisher",
    "root-ca-certificate-publisher-controller",
    "route",
    "selinux-warning-controller",
    "service",
    "service-cidr-controller",
    "service-lb-controller",
    "serviceaccount",
    "serviceaccount-controller",
    "serviceaccount-token",
    "serviceaccount-token-controller",
    "storage-version-gc",
    "storage-version-migrator-controller",
    "storageversion-garbage-collector-controller",
    "taint-eviction-controller",
    "token-cleaner-controller",
    "tokencleaner",
    "ttl",
    "ttl-after-finished",
    "ttl-after-finished-controller",
    "ttl-controller",
    "validatingadmissionpolicy-status-controller",
    "volumeattributesclass-protection-controller",
];

/// Checks that the list contains only known names and enables this controller. The first matching
/// entry decides; explicit names override `*`. Returns a warning about requested controllers that
/// this program doesn't have.
///
/// # Errors
///
/// An unknown name, or a list that disables this controller.
///
/// Upstream: `Validate`, `IsControllerEnabled`.
pub(crate) fn check(list: &[String]) -> anyhow::Result<Option<String>> {
    let mut enabled = None;
    let mut all = false;
    let mut not_here = Vec::new();
    let entries = list.iter().map(|entry| entry.trim());
    for entry in entries.filter(|entry| !entry.is_empty()) {
        if entry == "*" {
            all = true;
            continue;
        }
        let name = entry.strip_prefix('-').unwrap_or(entry);
        let wanted = name == entry;
        if OWN.contains(&name) {
            enabled.get_or_insert(wanted);
        } else if !OTHERS.contains(&name) {
            bail!("{name:?} is not in the list of known controllers");
        } else if wanted {
            not_here.push(name);
        }
    }
    ensure!(
        enabled.unwrap_or(all),
        "--controllers={} leaves nothing to run: this program has only {:?}",
        list.join(","),
        OWN[0]
    );
    let warning = || {
        let names = not_here.join(" and ");
        format!(
            "--controllers: this program has only {:?} and does not run {names}",
            OWN[0]
        )
    };
    Ok((!not_here.is_empty()).then(warning))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checked(list: &[&str]) -> Result<Option<String>, String> {
        let list: Vec<String> = list.iter().map(ToString::to_string).collect();
        check(&list).map_err(|error| error.to_string())
    }

    #[test]
    fn foreign_controllers_only_cause_a_warning() {
        for list in [
            &["*"][..],
            &["statefulset"],
            &["*", " -nodelifecycle", "-token-cleaner-controller", ""],
            &["statefulset-controller", "-statefulset"],
        ] {
            assert_eq!(checked(list), Ok(None), "{list:?}");
        }
        // The value that kubeadm sets.
        let warning = "--controllers: this program has only \"statefulset-controller\" and does \
                       not run bootstrapsigner and tokencleaner";
        let list = ["*", "bootstrapsigner", "tokencleaner"];
        assert_eq!(checked(&list), Ok(Some(warning.to_owned())));
    }

    #[test]
    fn check_rejects_unknown_names_and_empty_selections() {
        let unknown = "\"foo\" is not in the list of known controllers";
        assert_eq!(checked(&["*", "-foo"]), Err(unknown.to_owned()));
        for list in [
            &["*", "bootstrapsigner", "-statefulset-controller"][..],
            &["deployment"],
            &["-statefulset", "statefulset"],
            &[],
        ] {
            let error = checked(list).unwrap_err();
            assert!(error.contains(" leaves nothing to run: "), "{error}");
        }
    }

    #[test]
    fn names_are_sorted_and_unique() {
        assert!(OTHERS.is_sorted_by(|a, b| a < b));
    }
}
