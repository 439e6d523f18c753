//! The roles for people: what everyone may do, and `view`, `edit`, `admin` and `cluster-admin`.

use super::{CORE, READ, Role, Rule, on, paths, role};

const WRITE: &[&str] = &["create", "delete", "deletecollection", "patch", "update"];
pub(super) const READ_WRITE: &[&str] = &[
    "create",
    "delete",
    "deletecollection",
    "get",
    "list",
    "patch",
    "update",
    "watch",
];

const fn part(name: &'static str, of: &'static str, rules: &'static [Rule]) -> Role {
    Role {
        part_of: Some(of),
        ..role(name, rules)
    }
}

const fn aggregate(name: &'static str, part_of: Option<&'static str>) -> Role {
    Role {
        part_of,
        aggregates: true,
        ..role(name, &[])
    }
}

pub(super) const ROLES: &[Role] = &[
    role(
        "cluster-admin",
        &[
            on(&["*"], &["*"], &["*"]),
            Rule {
                verbs: &["*"],
                ..paths(&["*"])
            },
        ],
    ),
    aggregate("admin", None),
    aggregate("edit", Some("admin")),
    aggregate("view", Some("edit")),
    part("system:aggregate-to-admin", "admin", TO_ADMIN),
    part("system:aggregate-to-edit", "edit", TO_EDIT),
    part("system:aggregate-to-view", "view", TO_VIEW),
    role(
        "system:basic-user",
        &[
            on(
                &["create"],
                &["authorization.k8s.io"],
                &["selfsubjectaccessreviews", "selfsubjectrulesreviews"],
            ),
            on(
                &["create"],
                &["authentication.k8s.io"],
                &["selfsubjectreviews"],
            ),
        ],
    ),
    role(
        "system:discovery",
        &[paths(&[
            "/api",
            "/api/*",
            "/apis",
            "/apis/*",
            "/healthz",
            "/livez",
            "/openapi",
            "/openapi/*",
            "/readyz",
            "/version",
            "/version/",
        ])],
    ),
    role(
        "system:public-info-viewer",
        &[paths(&[
            "/healthz",
            "/livez",
            "/readyz",
            "/version",
            "/version/",
        ])],
    ),
];

const TO_ADMIN: &[Rule] = &[
    on(
        &["create"],
        &["authorization.k8s.io"],
        &["localsubjectaccessreviews"],
    ),
    on(
        READ_WRITE,
        &["rbac.authorization.k8s.io"],
        &["rolebindings", "roles"],
    ),
];

const TO_EDIT: &[Rule] = &[
    on(
        READ,
        CORE,
        &[
            "pods/attach",
            "pods/exec",
            "pods/portforward",
            "pods/proxy",
            "secrets",
            "services/proxy",
        ],
    ),
    on(&["impersonate"], CORE, &["serviceaccounts"]),
    on(
        WRITE,
        CORE,
        &[
            "pods",
            "pods/attach",
            "pods/exec",
            "pods/portforward",
            "pods/proxy",
        ],
    ),
    on(&["create"], CORE, &["pods/eviction"]),
    on(
        WRITE,
        CORE,
        &[
            "configmaps",
            "events",
            "persistentvolumeclaims",
            "replicationcontrollers",
            "replicationcontrollers/scale",
            "secrets",
            "serviceaccounts",
            "services",
            "services/proxy",
        ],
    ),
    on(&["create"], CORE, &["serviceaccounts/token"]),
    on(
        WRITE,
        &["apps"],
        &[
            "daemonsets",
            "deployments",
            "deployments/rollback",
            "deployments/scale",
            "replicasets",
            "replicasets/scale",
            "statefulsets",
            "statefulsets/scale",
        ],
    ),
    on(WRITE, &["autoscaling"], &["horizontalpodautoscalers"]),
    on(WRITE, &["batch"], &["cronjobs", "jobs"]),
    on(
        WRITE,
        &["extensions"],
        &[
            "daemonsets",
            "deployments",
            "deployments/rollback",
            "deployments/scale",
            "ingresses",
            "networkpolicies",
            "replicasets",
            "replicasets/scale",
            "replicationcontrollers/scale",
        ],
    ),
    on(WRITE, &["policy"], &["poddisruptionbudgets"]),
    on(
        WRITE,
        &["networking.k8s.io"],
        &["ingresses", "networkpolicies"],
    ),
    on(READ_WRITE, &["coordination.k8s.io"], &["leases"]),
    on(
        WRITE,
        &["resource.k8s.io"],
        &["resourceclaims", "resourceclaimtemplates"],
    ),
];

const TO_VIEW: &[Rule] = &[
    on(
        READ,
        CORE,
        &[
            "configmaps",
            "endpoints",
            "persistentvolumeclaims",
            "persistentvolumeclaims/status",
            "pods",
            "replicationcontrollers",
            "replicationcontrollers/scale",
            "serviceaccounts",
            "services",
            "services/status",
        ],
    ),
    on(
        READ,
        CORE,
        &[
            "bindings",
            "events",
            "limitranges",
            "namespaces/status",
            "pods/log",
            "pods/status",
            "replicationcontrollers/status",
            "resourcequotas",
            "resourcequotas/status",
        ],
    ),
    on(READ, CORE, &["namespaces"]),
    on(READ, &["discovery.k8s.io"], &["endpointslices"]),
    on(
        READ,
        &["apps"],
        &[
            "controllerrevisions",
            "daemonsets",
            "daemonsets/status",
            "deployments",
            "deployments/scale",
            "deployments/status",
            "replicasets",
            "replicasets/scale",
            "replicasets/status",
            "statefulsets",
            "statefulsets/scale",
            "statefulsets/status",
        ],
    ),
    on(
        READ,
        &["autoscaling"],
        &[
            "horizontalpodautoscalers",
            "horizontalpodautoscalers/status",
        ],
    ),
    on(
        READ,
        &["batch"],
        &["cronjobs", "cronjobs/status", "jobs", "jobs/status"],
    ),
    on(
        READ,
        &["extensions"],
        &[
            "daemonsets",
            "daemonsets/status",
            "deployments",
            "deployments/scale",
            "deployments/status",
            "ingresses",
            "ingresses/status",
            "networkpolicies",
            "replicasets",
            "replicasets/scale",
            "replicasets/status",
            "replicationcontrollers/scale",
        ],
    ),
    on(
        READ,
        &["policy"],
        &["poddisruptionbudgets", "poddisruptionbudgets/status"],
    ),
    on(
        READ,
        &["networking.k8s.io"],
        &["ingresses", "ingresses/status", "networkpolicies"],
    ),
    on(
        READ,
        &["resource.k8s.io"],
        &[
            "resourceclaims",
            "resourceclaims/status",
            "resourceclaimtemplates",
        ],
    ),
];
