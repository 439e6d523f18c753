//! The roles of the controllers, each bound to the service account of its name.

use serde_json::Value;

use super::{Binding, CORE, EVENTS, LIST_WATCH, READ, Rule, Subject, on};

const APPS: &[&str] = &["apps"];
const APPS_AND_EXTENSIONS: &[&str] = &["apps", "extensions"];
const BATCH: &[&str] = &["batch"];
const DISCOVERY: &[&str] = &["discovery.k8s.io"];
const STORAGE: &[&str] = &["storage.k8s.io"];

const ALL_BUT_COLLECTIONS: &[&str] = &[
    "create", "delete", "get", "list", "patch", "update", "watch",
];
const READ_PUT: &[&str] = &["get", "list", "update", "watch"];
const WRITE_PODS: &[&str] = &["create", "delete", "list", "patch", "watch"];

/// The binding of a controller's role.
pub(super) fn binding(role: &'static str) -> Value {
    let account = role.strip_prefix("system:controller:").unwrap_or(role);
    let binding = Binding {
        namespace: "",
        name: role,
        role,
        subjects: &[Subject::Account(account)],
    };
    binding.to_value()
}

/// Name and rules of each.
pub(super) const ROLES: &[(&str, &[Rule])] = &[
    (
        "system:controller:clusterrole-aggregation-controller",
        &[on(
            &["escalate", "get", "list", "patch", "update", "watch"],
            &["rbac.authorization.k8s.io"],
            &["clusterroles"],
        )],
    ),
    (
        "system:controller:cronjob-controller",
        &[
            on(READ_PUT, BATCH, &["cronjobs"]),
            on(ALL_BUT_COLLECTIONS, BATCH, &["jobs"]),
            on(&["update"], BATCH, &["cronjobs/status"]),
            on(&["update"], BATCH, &["cronjobs/finalizers"]),
            on(&["delete", "list", "watch"], CORE, &["pods"]),
            EVENTS,
        ],
    ),
    (
        "system:controller:daemon-set-controller",
        &[
            on(READ, APPS_AND_EXTENSIONS, &["daemonsets"]),
            on(&["update"], APPS_AND_EXTENSIONS, &["daemonsets/status"]),
            on(&["update"], APPS_AND_EXTENSIONS, &["daemonsets/finalizers"]),
            on(LIST_WATCH, CORE, &["nodes"]),
            on(WRITE_PODS, CORE, &["pods"]),
            on(&["create"], CORE, &["pods/binding"]),
            on(ALL_BUT_COLLECTIONS, APPS, &["controllerrevisions"]),
            EVENTS,
        ],
    ),
    (
        "system:controller:deployment-controller",
        &[
            on(READ_PUT, APPS_AND_EXTENSIONS, &["deployments"]),
            on(&["update"], APPS_AND_EXTENSIONS, &["deployments/status"]),
            on(
                &["update"],
                APPS_AND_EXTENSIONS,
                &["deployments/finalizers"],
            ),
            on(ALL_BUT_COLLECTIONS, APPS_AND_EXTENSIONS, &["replicasets"]),
            on(READ_PUT, CORE, &["pods"]),
            EVENTS,
        ],
    ),
    (
        "system:controller:disruption-controller",
        &[
            on(READ, APPS_AND_EXTENSIONS, &["deployments"]),
            on(READ, APPS_AND_EXTENSIONS, &["replicasets"]),
            on(READ, CORE, &["replicationcontrollers"]),
            on(READ, &["policy"], &["poddisruptionbudgets"]),
            on(READ, APPS, &["statefulsets"]),
            on(&["update"], &["policy"], &["poddisruptionbudgets/status"]),
            on(&["patch", "update"], CORE, &["pods/status"]),
            on(&["get"], &["*"], &["*/scale"]),
            EVENTS,
        ],
    ),
    (
        "system:controller:endpoint-controller",
        &[
            on(READ, CORE, &["pods", "services"]),
            on(
                &["create", "delete", "get", "list", "update", "watch"],
                CORE,
                &["endpoints"],
            ),
            on(&["create"], CORE, &["endpoints/restricted"]),
            EVENTS,
        ],
    ),
    (
        "system:controller:endpointslice-controller",
        &[
            on(READ, CORE, &["nodes", "pods", "services"]),
            on(&["update"], CORE, &["services/finalizers"]),
            on(
                &["create", "delete", "get", "list", "update", "watch"],
                DISCOVERY,
                &["endpointslices"],
            ),
            EVENTS,
        ],
    ),
    (
        "system:controller:generic-garbage-collector",
        &[
            on(
                &["delete", "get", "list", "patch", "update", "watch"],
                &["*"],
                &["*"],
            ),
            EVENTS,
        ],
    ),
    (
        "system:controller:job-controller",
        &[
            on(
                &["get", "list", "patch", "update", "watch"],
                BATCH,
                &["jobs"],
            ),
            on(&["update"], BATCH, &["jobs/status"]),
            on(&["update"], BATCH, &["jobs/finalizers"]),
            on(WRITE_PODS, CORE, &["pods"]),
            EVENTS,
        ],
    ),
    (
        "system:controller:namespace-controller",
        &[
            on(&["delete", "get", "list", "watch"], CORE, &["namespaces"]),
            on(
                &["update"],
                CORE,
                &["namespaces/finalize", "namespaces/status"],
            ),
            on(
                &["delete", "deletecollection", "get", "list", "watch"],
                &["*"],
                &["*"],
            ),
        ],
    ),
    (
        "system:controller:persistent-volume-binder",
        &[
            on(
                &["create", "delete", "get", "list", "update", "watch"],
                CORE,
                &["persistentvolumes"],
            ),
            on(&["update"], CORE, &["persistentvolumes/status"]),
            on(READ_PUT, CORE, &["persistentvolumeclaims"]),
            on(&["update"], CORE, &["persistentvolumeclaims/status"]),
            on(
                &["create", "delete", "get", "list", "watch"],
                CORE,
                &["pods"],
            ),
            on(READ, STORAGE, &["storageclasses"]),
            on(LIST_WATCH, CORE, &["nodes"]),
            EVENTS,
            on(&["watch"], CORE, &["events"]),
        ],
    ),
    (
        "system:controller:pod-garbage-collector",
        &[
            on(&["delete", "list", "watch"], CORE, &["pods"]),
            on(READ, CORE, &["nodes"]),
            on(&["patch"], CORE, &["pods/status"]),
        ],
    ),
    (
        "system:controller:pvc-protection-controller",
        &[
            on(READ_PUT, CORE, &["persistentvolumeclaims"]),
            on(&["update"], CORE, &["persistentvolumeclaims/status"]),
            on(READ, CORE, &["pods"]),
            EVENTS,
        ],
    ),
    (
        "system:controller:replicaset-controller",
        &[
            on(READ_PUT, APPS_AND_EXTENSIONS, &["replicasets"]),
            on(&["update"], APPS_AND_EXTENSIONS, &["replicasets/status"]),
            on(
                &["update"],
                APPS_AND_EXTENSIONS,
                &["replicasets/finalizers"],
            ),
            on(WRITE_PODS, CORE, &["pods"]),
            EVENTS,
        ],
    ),
    (
        "system:controller:service-account-controller",
        &[on(&["create"], CORE, &["serviceaccounts"]), EVENTS],
    ),
    (
        "system:controller:statefulset-controller",
        &[
            on(LIST_WATCH, CORE, &["pods"]),
            on(READ, APPS, &["statefulsets"]),
            on(&["update"], APPS, &["statefulsets/status"]),
            on(&["update"], APPS, &["statefulsets/finalizers"]),
            on(
                &["create", "delete", "get", "patch", "update"],
                CORE,
                &["pods"],
            ),
            on(ALL_BUT_COLLECTIONS, APPS, &["controllerrevisions"]),
            on(
                &["create", "get", "list", "watch"],
                CORE,
                &["persistentvolumeclaims"],
            ),
            on(&["delete", "update"], CORE, &["persistentvolumeclaims"]),
            on(&["update"], CORE, &["pods/finalizers"]),
            EVENTS,
        ],
    ),
    (
        "system:controller:ttl-after-finished-controller",
        &[
            on(&["delete", "get", "list", "watch"], BATCH, &["jobs"]),
            EVENTS,
        ],
    ),
];
