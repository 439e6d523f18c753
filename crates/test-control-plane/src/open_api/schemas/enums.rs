//! The values of Go's string types that have a fixed set of them.

/// The types by name, and their values in order.
const ENUMS: &[(&str, &[&str])] = &[
    (
        "AppArmorProfileType",
        &["Localhost", "RuntimeDefault", "Unconfined"],
    ),
    (
        "AzureDataDiskCachingMode",
        &["None", "ReadOnly", "ReadWrite"],
    ),
    ("AzureDataDiskKind", &["Dedicated", "Managed", "Shared"]),
    (
        "DNSPolicy",
        &["ClusterFirst", "ClusterFirstWithHostNet", "Default", "None"],
    ),
    (
        "DaemonSetUpdateStrategyType",
        &["OnDelete", "RollingUpdate"],
    ),
    ("DeploymentStrategyType", &["Recreate", "RollingUpdate"]),
    (
        "HostPathType",
        &[
            "",
            "BlockDevice",
            "CharDevice",
            "Directory",
            "DirectoryOrCreate",
            "File",
            "FileOrCreate",
            "Socket",
        ],
    ),
    ("IPFamily", &["", "IPv4", "IPv6"]),
    (
        "IPFamilyPolicy",
        &["PreferDualStack", "RequireDualStack", "SingleStack"],
    ),
    (
        "MountPropagationMode",
        &["Bidirectional", "HostToContainer", "None"],
    ),
    ("NamespacePhase", &["Active", "Terminating"]),
    ("NodeInclusionPolicy", &["Honor", "Ignore"]),
    ("NodePhase", &["Pending", "Running", "Terminated"]),
    (
        "NodeSelectorOperator",
        &["DoesNotExist", "Exists", "Gt", "In", "Lt", "NotIn"],
    ),
    (
        "PersistentVolumeAccessMode",
        &[
            "ReadOnlyMany",
            "ReadWriteMany",
            "ReadWriteOnce",
            "ReadWriteOncePod",
        ],
    ),
    ("PersistentVolumeClaimPhase", &["Bound", "Lost", "Pending"]),
    ("PersistentVolumeMode", &["Block", "Filesystem"]),
    (
        "PersistentVolumePhase",
        &["Available", "Bound", "Failed", "Pending", "Released"],
    ),
    (
        "PersistentVolumeReclaimPolicy",
        &["Delete", "Recycle", "Retain"],
    ),
    ("PodFSGroupChangePolicy", &["Always", "OnRootMismatch"]),
    ("PodManagementPolicyType", &["OrderedReady", "Parallel"]),
    (
        "PodPhase",
        &["Failed", "Pending", "Running", "Succeeded", "Unknown"],
    ),
    ("PodQOSClass", &["BestEffort", "Burstable", "Guaranteed"]),
    ("PreemptionPolicy", &["Never", "PreemptLowerPriority"]),
    ("ProcMountType", &["Default", "Unmasked"]),
    ("Protocol", &["SCTP", "TCP", "UDP"]),
    ("PullPolicy", &["Always", "IfNotPresent", "Never"]),
    ("RestartPolicy", &["Always", "Never", "OnFailure"]),
    (
        "SeccompProfileType",
        &["Localhost", "RuntimeDefault", "Unconfined"],
    ),
    ("ServiceAffinity", &["ClientIP", "None"]),
    ("ServiceExternalTrafficPolicy", &["Cluster", "Local"]),
    ("ServiceInternalTrafficPolicy", &["Cluster", "Local"]),
    (
        "ServiceType",
        &["ClusterIP", "ExternalName", "LoadBalancer", "NodePort"],
    ),
    (
        "StatefulSetUpdateStrategyType",
        &["OnDelete", "RollingUpdate"],
    ),
    ("SupplementalGroupsPolicy", &["Merge", "Strict"]),
    (
        "TaintEffect",
        &["NoExecute", "NoSchedule", "PreferNoSchedule"],
    ),
    (
        "TerminationMessagePolicy",
        &["FallbackToLogsOnError", "File"],
    ),
    ("URIScheme", &["HTTP", "HTTPS"]),
    (
        "UnhealthyPodEvictionPolicyType",
        &["AlwaysAllow", "IfHealthyBudget"],
    ),
    (
        "UnsatisfiableConstraintAction",
        &["DoNotSchedule", "ScheduleAnyway"],
    ),
];

/// The values of a type, named with its package; none if any text is one.
pub(super) fn values(go_type: &str) -> Option<&'static [&'static str]> {
    let name = go_type.rsplit('.').next()?;
    let found = ENUMS.iter().find(|(known, _)| *known == name);
    found.map(|(_, values)| *values)
}
