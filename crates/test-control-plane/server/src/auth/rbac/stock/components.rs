//! The roles of the control plane's components and of nodes.

use super::users::READ_WRITE;
use super::{CORE, EVENTS, LIST_WATCH, READ, Role, Rule, on, paths, role};

const AUTHENTICATION: &[&str] = &["authentication.k8s.io"];
const AUTHORIZATION: &[&str] = &["authorization.k8s.io"];
const CERTIFICATES: &[&str] = &["certificates.k8s.io"];
const COORDINATION: &[&str] = &["coordination.k8s.io"];
const RESOURCE: &[&str] = &["resource.k8s.io"];
const STORAGE: &[&str] = &["storage.k8s.io"];

const REVIEW_TOKENS: Rule = on(&["create"], AUTHENTICATION, &["tokenreviews"]);
const REVIEW_ACCESS: Rule = on(&["create"], AUTHORIZATION, &["subjectaccessreviews"]);

const ALL_BUT_COLLECTIONS: &[&str] = &["create", "delete", "get", "patch", "update"];
const READ_UPDATE: &[&str] = &["get", "list", "patch", "update", "watch"];

/// The role of kubelets.
pub(super) const NODE: Role = role(
    "system:node",
    &[
        REVIEW_TOKENS,
        on(
            &["create"],
            AUTHORIZATION,
            &["localsubjectaccessreviews", "subjectaccessreviews"],
        ),
        on(READ, CORE, &["services"]),
        on(&["create", "get", "list", "watch"], CORE, &["nodes"]),
        on(&["patch", "update"], CORE, &["nodes/status"]),
        on(&["patch", "update"], CORE, &["nodes"]),
        on(&["create", "patch", "update"], CORE, &["events"]),
        on(READ, CORE, &["pods"]),
        on(&["create", "delete"], CORE, &["pods"]),
        on(&["patch", "update"], CORE, &["pods/status"]),
        on(&["create"], CORE, &["pods/eviction"]),
        on(READ, CORE, &["configmaps", "secrets"]),
        on(
            &["get"],
            CORE,
            &["persistentvolumeclaims", "persistentvolumes"],
        ),
        on(&["get"], CORE, &["endpoints"]),
        on(
            &["create", "get", "list", "watch"],
            CERTIFICATES,
            &["certificatesigningrequests"],
        ),
        on(ALL_BUT_COLLECTIONS, COORDINATION, &["leases"]),
        on(&["get"], STORAGE, &["volumeattachments"]),
        on(&["create"], CORE, &["serviceaccounts/token"]),
        on(
            &["get", "patch", "update"],
            CORE,
            &["persistentvolumeclaims/status"],
        ),
        on(READ, STORAGE, &["csidrivers"]),
        on(ALL_BUT_COLLECTIONS, STORAGE, &["csinodes"]),
        on(READ, &["node.k8s.io"], &["runtimeclasses"]),
        on(&["get"], RESOURCE, &["resourceclaims"]),
        on(&["deletecollection"], RESOURCE, &["resourceslices"]),
        on(READ, CERTIFICATES, &["clustertrustbundles"]),
        on(&["get"], CORE, &["serviceaccounts"]),
    ],
);

pub(super) const ROLES: &[Role] = &[
    NODE,
    role("system:auth-delegator", &[REVIEW_TOKENS, REVIEW_ACCESS]),
    role(
        "system:kube-controller-manager",
        &[
            EVENTS,
            on(&["create"], COORDINATION, &["leases"]),
            Rule {
                names: &["kube-controller-manager"],
                ..on(&["get", "update"], COORDINATION, &["leases"])
            },
            on(&["create"], CORE, &["secrets", "serviceaccounts"]),
            on(&["delete"], CORE, &["secrets"]),
            on(
                &["get"],
                CORE,
                &["configmaps", "namespaces", "secrets", "serviceaccounts"],
            ),
            on(&["update"], CORE, &["secrets", "serviceaccounts"]),
            REVIEW_TOKENS,
            REVIEW_ACCESS,
            on(LIST_WATCH, &["*"], &["*"]),
            on(&["create"], CORE, &["serviceaccounts/token"]),
        ],
    ),
    role(
        "system:kube-dns",
        &[on(LIST_WATCH, CORE, &["endpoints", "services"])],
    ),
    role(
        "system:kube-scheduler",
        &[
            EVENTS,
            on(&["create"], COORDINATION, &["leases"]),
            Rule {
                names: &["kube-scheduler"],
                ..on(
                    &["get", "list", "update", "watch"],
                    COORDINATION,
                    &["leases"],
                )
            },
            on(READ_WRITE, COORDINATION, &["leasecandidates"]),
            on(READ, CORE, &["nodes"]),
            on(&["delete", "get", "list", "watch"], CORE, &["pods"]),
            on(&["create"], CORE, &["bindings", "pods/binding"]),
            on(&["patch", "update"], CORE, &["pods/status"]),
            on(READ, CORE, &["replicationcontrollers", "services"]),
            on(READ, &["apps", "extensions"], &["replicasets"]),
            on(READ, &["apps"], &["statefulsets"]),
            on(READ, &["policy"], &["poddisruptionbudgets"]),
            on(READ, CORE, &["persistentvolumeclaims", "persistentvolumes"]),
            REVIEW_TOKENS,
            REVIEW_ACCESS,
            on(READ, STORAGE, &["csinodes"]),
            on(READ, STORAGE, &["volumeattachments"]),
            on(READ, CORE, &["namespaces"]),
            on(READ, STORAGE, &["csidrivers"]),
            on(READ, STORAGE, &["csistoragecapacities"]),
            on(READ, RESOURCE, &["deviceclasses"]),
            on(READ_UPDATE, RESOURCE, &["resourceclaims"]),
            on(READ_UPDATE, RESOURCE, &["resourceclaims/status"]),
            on(READ_UPDATE, CORE, &["pods/finalizers"]),
            on(READ, RESOURCE, &["resourceslices"]),
        ],
    ),
    role(
        "system:kubelet-api-admin",
        &[
            on(READ, CORE, &["nodes"]),
            on(&["proxy"], CORE, &["nodes"]),
            on(
                &["*"],
                CORE,
                &["nodes/log", "nodes/metrics", "nodes/proxy", "nodes/stats"],
            ),
            on(
                &["*"],
                CORE,
                &["nodes/configz", "nodes/healthz", "nodes/pods"],
            ),
        ],
    ),
    role(
        "system:monitoring",
        &[paths(&[
            "/healthz",
            "/healthz/*",
            "/livez",
            "/livez/*",
            "/metrics",
            "/metrics/slis",
            "/readyz",
            "/readyz/*",
        ])],
    ),
    role(
        "system:node-proxier",
        &[
            on(LIST_WATCH, CORE, &["endpoints", "services"]),
            on(READ, CORE, &["nodes"]),
            EVENTS,
            on(LIST_WATCH, &["networking.k8s.io"], &["servicecidrs"]),
            on(LIST_WATCH, &["discovery.k8s.io"], &["endpointslices"]),
        ],
    ),
    role(
        "system:persistent-volume-provisioner",
        &[
            on(
                &["create", "delete", "get", "list", "watch"],
                CORE,
                &["persistentvolumes"],
            ),
            on(
                &["get", "list", "update", "watch"],
                CORE,
                &["persistentvolumeclaims"],
            ),
            on(READ, STORAGE, &["storageclasses"]),
            on(&["watch"], CORE, &["events"]),
            EVENTS,
        ],
    ),
    role(
        "system:service-account-issuer-discovery",
        &[paths(&[
            "/.well-known/openid-configuration",
            "/.well-known/openid-configuration/",
            "/openid/v1/jwks",
            "/openid/v1/jwks/",
        ])],
    ),
    role(
        "system:volume-scheduler",
        &[
            on(READ_UPDATE, CORE, &["persistentvolumes"]),
            on(READ, STORAGE, &["storageclasses"]),
            on(READ_UPDATE, CORE, &["persistentvolumeclaims"]),
        ],
    ),
];

const LEADER_LOCKING: &[Rule] = &[
    on(
        &["create", "get", "list", "update", "watch"],
        COORDINATION,
        &["leases"],
    ),
    on(
        &["create", "get", "list", "update", "watch"],
        COORDINATION,
        &["leasecandidates"],
    ),
];

const fn in_kube_system(name: &'static str, rules: &'static [Rule]) -> Role {
    Role {
        namespace: "kube-system",
        ..role(name, rules)
    }
}

/// The roles of namespaces.
pub(super) const NAMESPACED: &[Role] = &[
    in_kube_system(
        "extension-apiserver-authentication-reader",
        &[Rule {
            names: &["extension-apiserver-authentication"],
            ..on(READ, CORE, &["configmaps"])
        }],
    ),
    in_kube_system(
        "system::leader-locking-kube-controller-manager",
        LEADER_LOCKING,
    ),
    in_kube_system("system::leader-locking-kube-scheduler", LEADER_LOCKING),
];
