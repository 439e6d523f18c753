//! The values of Go's enumerated string types.

use kube_apimachinery::schema::Version;

/// The types with their values in order: a line per type.
const ENUMS: &str = include_str!("enums.txt");

/// The types whose served schema describes the values, with these descriptions.
const EXPLAINED: &[(&str, &[(&str, &str)])] = &[
    (
        "PodManagementPolicyType",
        &[
            (
                "OrderedReady",
                "will create pods in strictly increasing order on scale up and strictly \
                 decreasing order on scale down, progressing only when the previous pod is ready \
                 or terminated. At most one pod will be changed at any time.",
            ),
            (
                "Parallel",
                "will create and delete pods as soon as the stateful set replica count is \
                 changed, and will not wait for pods to be ready or complete termination.",
            ),
        ],
    ),
    (
        "StatefulSetUpdateStrategyType",
        &[
            (
                "OnDelete",
                "triggers the legacy behavior. Version tracking and ordered rolling restarts are \
                 disabled. Pods are recreated from the StatefulSetSpec when they are manually \
                 deleted. When a scale operation is performed with this strategy,specification \
                 version indicated by the StatefulSet's currentRevision.",
            ),
            (
                "RollingUpdate",
                "indicates that update will be applied to all Pods in the StatefulSet with \
                 respect to the StatefulSet ordering constraints. When a scale operation is \
                 performed with this strategy, new Pods will be created from the specification \
                 version indicated by the StatefulSet's updateRevision.",
            ),
        ],
    ),
];

/// A value that a version added to an explained type. Its description is not known.
const ADDED: [(Version, &str, &str); 1] =
    [(Version::V1_37, "StatefulSetUpdateStrategyType", "Recreate")];

/// A value of an enumerated type.
pub(super) struct EnumValue {
    /// The value.
    pub(super) name: &'static str,
    /// Its description; empty if the served schema has none.
    pub(super) meaning: &'static str,
}

/// Returns a version's values of a type, named with its package, or `None` if the type isn't
/// enumerated.
pub(super) fn values(go_type: &str, version: Version) -> Option<Vec<EnumValue>> {
    let of = go_type.rsplit('.').next()?;
    let explained = EXPLAINED.iter().find(|(known, _)| *known == of);
    if let Some((_, values)) = explained {
        let added = ADDED.iter().filter(|row| row.0 <= version && row.1 == of);
        let added = added.map(|&(_, _, name)| (name, ""));
        let mut values: Vec<EnumValue> = values
            .iter()
            .copied()
            .chain(added)
            .map(|(name, meaning)| EnumValue { name, meaning })
            .collect();
        values.sort_by_key(|value| value.name);
        return Some(values);
    }
    let mut rows = ENUMS.lines().filter_map(|row| row.split_once(' '));
    let (_, names) = rows.find(|(known, _)| *known == of)?;
    let value = |name: &'static str| EnumValue {
        name: name.trim_matches('"'),
        meaning: "",
    };
    Some(names.split(' ').map(value).collect())
}
