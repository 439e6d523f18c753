//! Who has the stock roles from the start.

use super::{Binding, Subject};

const fn cluster(
    name: &'static str,
    role: &'static str,
    subjects: &'static [Subject],
) -> Binding<'static> {
    Binding {
        namespace: "",
        name,
        role,
        subjects,
    }
}

const fn in_kube_system(
    name: &'static str,
    role: &'static str,
    subjects: &'static [Subject],
) -> Binding<'static> {
    Binding {
        namespace: "kube-system",
        ..cluster(name, role, subjects)
    }
}

const AUTHENTICATED: Subject = Subject::Group("system:authenticated");
const CONTROLLER_MANAGER: Subject = Subject::User("system:kube-controller-manager");
const SCHEDULER: Subject = Subject::User("system:kube-scheduler");

pub(super) const ALL: &[Binding<'static>] = &[
    cluster(
        "cluster-admin",
        "cluster-admin",
        &[Subject::Group("system:masters")],
    ),
    cluster("system:basic-user", "system:basic-user", &[AUTHENTICATED]),
    cluster("system:discovery", "system:discovery", &[AUTHENTICATED]),
    cluster(
        "system:kube-controller-manager",
        "system:kube-controller-manager",
        &[CONTROLLER_MANAGER],
    ),
    cluster(
        "system:kube-dns",
        "system:kube-dns",
        &[Subject::Account("kube-dns")],
    ),
    cluster(
        "system:kube-scheduler",
        "system:kube-scheduler",
        &[SCHEDULER],
    ),
    cluster(
        "system:monitoring",
        "system:monitoring",
        &[Subject::Group("system:monitoring")],
    ),
    // Nodes have their role from the mode that is named after them, unless someone adds them here.
    cluster("system:node", "system:node", &[]),
    cluster(
        "system:node-proxier",
        "system:node-proxier",
        &[Subject::User("system:kube-proxy")],
    ),
    cluster(
        "system:public-info-viewer",
        "system:public-info-viewer",
        &[AUTHENTICATED, Subject::Group("system:unauthenticated")],
    ),
    cluster(
        "system:service-account-issuer-discovery",
        "system:service-account-issuer-discovery",
        &[Subject::Group("system:serviceaccounts")],
    ),
    cluster(
        "system:volume-scheduler",
        "system:volume-scheduler",
        &[SCHEDULER],
    ),
    in_kube_system(
        "system::extension-apiserver-authentication-reader",
        "extension-apiserver-authentication-reader",
        &[CONTROLLER_MANAGER, SCHEDULER],
    ),
    in_kube_system(
        "system::leader-locking-kube-controller-manager",
        "system::leader-locking-kube-controller-manager",
        &[
            CONTROLLER_MANAGER,
            Subject::Account("kube-controller-manager"),
        ],
    ),
    in_kube_system(
        "system::leader-locking-kube-scheduler",
        "system::leader-locking-kube-scheduler",
        &[SCHEDULER, Subject::Account("kube-scheduler")],
    ),
];
