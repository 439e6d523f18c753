//! The values of Go's enumerated string types.

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

/// A value of an enumerated type.
pub(super) struct EnumValue {
    /// The value.
    pub(super) name: &'static str,
    /// Its description; empty if the served schema has none.
    pub(super) meaning: &'static str,
}

/// Returns the values of a type, named with its package, or `None` if the type isn't enumerated.
pub(super) fn values(go_type: &str) -> Option<Vec<EnumValue>> {
    let of = go_type.rsplit('.').next()?;
    let explained = EXPLAINED.iter().find(|(known, _)| *known == of);
    if let Some((_, values)) = explained {
        let values = values.iter();
        return Some(
            values
                .map(|&(name, meaning)| EnumValue { name, meaning })
                .collect(),
        );
    }
    let mut rows = ENUMS.lines().filter_map(|row| row.split_once(' '));
    let (_, names) = rows.find(|(known, _)| *known == of)?;
    let value = |name: &'static str| EnumValue {
        name: name.trim_matches('"'),
        meaning: "",
    };
    Some(names.split(' ').map(value).collect())
}
