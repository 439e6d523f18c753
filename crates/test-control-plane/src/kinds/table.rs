//! The rows.

use super::{Kind, NameRule, Subresource, Trait};

const fn namespaced(
    group: &'static str,
    version: &'static str,
    kind: &'static str,
    plural: &'static str,
    singular: &'static str,
) -> Kind {
    Kind {
        group,
        version,
        kind,
        plural,
        singular,
        storage: plural,
        namespaced: true,
        short_names: &[],
        categories: &[],
        subresources: &[],
        traits: &[],
        fields: &[],
        name_rule: NameRule::Subdomain,
    }
}

const fn cluster(
    version: &'static str,
    kind: &'static str,
    plural: &'static str,
    singular: &'static str,
) -> Kind {
    Kind {
        namespaced: false,
        ..namespaced("", version, kind, plural, singular)
    }
}

const POD_FIELDS: &[(&str, &str)] = &[
    ("spec.nodeName", "/spec/nodeName"),
    ("spec.host", "/spec/nodeName"),
    ("spec.restartPolicy", "/spec/restartPolicy"),
    ("spec.schedulerName", "/spec/schedulerName"),
    ("spec.serviceAccountName", "/spec/serviceAccountName"),
    ("spec.hostNetwork", "/spec/hostNetwork"),
    ("status.phase", "/status/phase"),
    ("status.podIP", "/status/podIP"),
    ("status.podIPs", "/status/podIP"),
    ("status.nominatedNodeName", "/status/nominatedNodeName"),
];

/// Every event field is read from the core/v1 form, which is the stored one.
const EVENT_FIELDS: &[(&str, &str)] = &[
    ("involvedObject.kind", "/involvedObject/kind"),
    ("involvedObject.namespace", "/involvedObject/namespace"),
    ("involvedObject.name", "/involvedObject/name"),
    ("involvedObject.uid", "/involvedObject/uid"),
    ("involvedObject.apiVersion", "/involvedObject/apiVersion"),
    (
        "involvedObject.resourceVersion",
        "/involvedObject/resourceVersion",
    ),
    ("involvedObject.fieldPath", "/involvedObject/fieldPath"),
    ("reason", "/reason"),
    ("reportingComponent", "/reportingComponent"),
    ("source", "/source/component"),
    ("type", "/type"),
];

const NEW_EVENT_FIELDS: &[(&str, &str)] = &[
    ("regarding.kind", "/involvedObject/kind"),
    ("regarding.namespace", "/involvedObject/namespace"),
    ("regarding.name", "/involvedObject/name"),
    ("regarding.uid", "/involvedObject/uid"),
    ("regarding.apiVersion", "/involvedObject/apiVersion"),
    (
        "regarding.resourceVersion",
        "/involvedObject/resourceVersion",
    ),
    ("regarding.fieldPath", "/involvedObject/fieldPath"),
    ("reason", "/reason"),
    ("reportingController", "/reportingComponent"),
    ("type", "/type"),
];

/// Every resource that the server knows.
pub static KINDS: &[Kind] = &[
    Kind {
        short_names: &["cm"],
        ..namespaced("", "v1", "ConfigMap", "configmaps", "configmap")
    },
    Kind {
        short_names: &["ev"],
        traits: &[Trait::CreateOnUpdate, Trait::OwnFieldLabels],
        fields: EVENT_FIELDS,
        ..namespaced("", "v1", "Event", "events", "event")
    },
    Kind {
        short_names: &["ns"],
        subresources: &[Subresource::Finalize, Subresource::Status],
        fields: &[("status.phase", "/status/phase")],
        traits: &[Trait::OwnFieldLabels],
        name_rule: NameRule::Label,
        ..cluster("v1", "Namespace", "namespaces", "namespace")
    },
    Kind {
        short_names: &["no"],
        subresources: &[Subresource::Status],
        fields: &[("spec.unschedulable", "/spec/unschedulable")],
        traits: &[Trait::OwnFieldLabels],
        ..cluster("v1", "Node", "nodes", "node")
    },
    Kind {
        short_names: &["pvc"],
        subresources: &[Subresource::Status],
        traits: &[Trait::ReturnsDeleted],
        ..namespaced(
            "",
            "v1",
            "PersistentVolumeClaim",
            "persistentvolumeclaims",
            "persistentvolumeclaim",
        )
    },
    Kind {
        short_names: &["pv"],
        subresources: &[Subresource::Status],
        traits: &[Trait::ReturnsDeleted],
        ..cluster(
            "v1",
            "PersistentVolume",
            "persistentvolumes",
            "persistentvolume",
        )
    },
    Kind {
        short_names: &["po"],
        categories: &["all"],
        subresources: &[
            Subresource::Binding,
            Subresource::Eviction,
            Subresource::Status,
        ],
        traits: &[
            Trait::Generation,
            Trait::ReturnsDeleted,
            Trait::Graceful,
            Trait::OwnFieldLabels,
        ],
        fields: POD_FIELDS,
        ..namespaced("", "v1", "Pod", "pods", "pod")
    },
    Kind {
        fields: &[("type", "/type")],
        traits: &[Trait::OwnFieldLabels],
        ..namespaced("", "v1", "Secret", "secrets", "secret")
    },
    Kind {
        short_names: &["sa"],
        traits: &[Trait::ReturnsDeleted],
        ..namespaced(
            "",
            "v1",
            "ServiceAccount",
            "serviceaccounts",
            "serviceaccount",
        )
    },
    Kind {
        short_names: &["svc"],
        categories: &["all"],
        subresources: &[Subresource::Status],
        traits: &[
            Trait::CreateOnUpdate,
            Trait::ReturnsDeleted,
            Trait::OwnFieldLabels,
        ],
        fields: &[
            ("spec.clusterIP", "/spec/clusterIP"),
            ("spec.type", "/spec/type"),
        ],
        name_rule: NameRule::Label,
        ..namespaced("", "v1", "Service", "services", "service")
    },
    Kind {
        traits: &[Trait::RawData],
        ..namespaced(
            "apps",
            "v1",
            "ControllerRevision",
            "controllerrevisions",
            "controllerrevision",
        )
    },
    Kind {
        short_names: &["sts"],
        categories: &["all"],
        subresources: &[Subresource::Scale, Subresource::Status],
        traits: &[Trait::Generation],
        name_rule: NameRule::Label,
        ..namespaced("apps", "v1", "StatefulSet", "statefulsets", "statefulset")
    },
    Kind {
        short_names: &["ev"],
        traits: &[Trait::CreateOnUpdate, Trait::OwnFieldLabels, Trait::View],
        fields: NEW_EVENT_FIELDS,
        ..namespaced("events.k8s.io", "v1", "Event", "events", "event")
    },
    Kind {
        traits: &[Trait::NoUnconditionalUpdate, Trait::CreateOnUpdate],
        ..namespaced("coordination.k8s.io", "v1", "Lease", "leases", "lease")
    },
    Kind {
        short_names: &["pdb"],
        subresources: &[Subresource::Status],
        traits: &[Trait::Generation, Trait::NoUnconditionalUpdate],
        ..namespaced(
            "policy",
            "v1",
            "PodDisruptionBudget",
            "poddisruptionbudgets",
            "poddisruptionbudget",
        )
    },
];
