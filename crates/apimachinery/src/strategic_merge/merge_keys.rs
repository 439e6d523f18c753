//! How strategic merge patches treat the lists of the served kinds.
//!
//! The names are unambiguous over the kinds of the table, except `ports`.

/// How a list is patched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ListKind {
    /// The patch's list replaces the old one.
    Atomic,
    /// Objects, merged where this member is equal.
    Keyed(&'static str),
    /// Plain values, merged as a set.
    Set,
}

/// How the list in the member `name` of an object of the kind `kind` is patched.
pub(super) fn list_kind(kind: &str, name: &str) -> ListKind {
    let key = match name {
        "containers"
        | "initContainers"
        | "ephemeralContainers"
        | "volumes"
        | "imagePullSecrets"
        | "schedulingGates"
        | "resourceClaims"
        | "resourceClaimStatuses"
        | "env"
        | "allocatedResourcesStatus"
        | "secrets" => "name",
        "ports" if kind == "Service" => "port",
        "ports" => "containerPort",
        "volumeMounts" => "mountPath",
        "volumeDevices" => "devicePath",
        "hostAliases" | "podIPs" | "hostIPs" => "ip",
        "ownerReferences" => "uid",
        "conditions" | "addresses" => "type",
        "topologySpreadConstraints" => "topologyKey",
        "finalizers" | "podCIDRs" => return ListKind::Set,
        _ => return ListKind::Atomic,
    };
    ListKind::Keyed(key)
}

/// Whether a patch replaces the member as a whole although it is an object.
pub(super) fn is_atomic_map(kind: &str, name: &str) -> bool {
    kind == "PodDisruptionBudget" && name == "selector"
}
