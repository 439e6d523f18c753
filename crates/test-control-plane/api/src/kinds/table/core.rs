//! `v1`, the core group.

use super::{cluster, field, namespaced};
use crate::kinds::{Field, Kind, NameRule, Subresource, Trait, Verb};

const POD_FIELDS: &[Field] = &[
    field("spec.nodeName", "/spec/nodeName"),
    field("spec.host", "/spec/nodeName"),
    field("spec.restartPolicy", "/spec/restartPolicy"),
    field("spec.schedulerName", "/spec/schedulerName"),
    field("spec.serviceAccountName", "/spec/serviceAccountName"),
    Field {
        default: "false",
        ..field("spec.hostNetwork", "/spec/hostNetwork")
    },
    field("status.phase", "/status/phase"),
    field("status.podIP", "/status/podIP"),
    field("status.podIPs", "/status/podIP"),
    field("status.nominatedNodeName", "/status/nominatedNodeName"),
];

/// All event fields are read from the core/v1 form, which is stored.
const EVENT_FIELDS: &[Field] = &[
    field("involvedObject.kind", "/involvedObject/kind"),
    field("involvedObject.namespace", "/involvedObject/namespace"),
    field("involvedObject.name", "/involvedObject/name"),
    field("involvedObject.uid", "/involvedObject/uid"),
    field("involvedObject.apiVersion", "/involvedObject/apiVersion"),
    field(
        "involvedObject.resourceVersion",
        "/involvedObject/resourceVersion",
    ),
    field("involvedObject.fieldPath", "/involvedObject/fieldPath"),
    field("reason", "/reason"),
    field("reportingComponent", "/reportingComponent"),
    field("type", "/type"),
    // Keep this last: the other form has the same fields except this one.
    Field {
        otherwise: Some("/reportingComponent"),
        ..field("source", "/source/component")
    },
];

pub(super) const KINDS: &[Kind] = &[
    Kind {
        verbs: &[Verb::Create],
        traits: &[Trait::Virtual],
        ..namespaced("", "Binding", "bindings", "binding")
    },
    Kind {
        short_names: &["cs"],
        verbs: &[Verb::Get, Verb::List],
        traits: &[Trait::Virtual],
        ..cluster(
            "",
            "ComponentStatus",
            "componentstatuses",
            "componentstatus",
        )
    },
    Kind {
        short_names: &["cm"],
        ..namespaced("", "ConfigMap", "configmaps", "configmap")
    },
    Kind {
        short_names: &["ep"],
        traits: &[Trait::CreateOnUpdate],
        ..namespaced("", "Endpoints", "endpoints", "endpoints")
    },
    Kind {
        short_names: &["ev"],
        traits: &[Trait::CreateOnUpdate, Trait::OwnFieldLabels],
        fields: EVENT_FIELDS,
        ..namespaced("", "Event", "events", "event")
    },
    Kind {
        short_names: &["limits"],
        traits: &[Trait::CreateOnUpdate],
        ..namespaced("", "LimitRange", "limitranges", "limitrange")
    },
    Kind {
        short_names: &["ns"],
        verbs: &[
            Verb::Create,
            Verb::Delete,
            Verb::Get,
            Verb::List,
            Verb::Patch,
            Verb::Update,
            Verb::Watch,
        ],
        subresources: &[Subresource::Finalize, Subresource::Status],
        fields: &[field("status.phase", "/status/phase")],
        traits: &[Trait::OwnFieldLabels],
        name_rule: NameRule::Label,
        ..cluster("", "Namespace", "namespaces", "namespace")
    },
    Kind {
        short_names: &["no"],
        subresources: &[Subresource::Proxy, Subresource::Status],
        fields: &[Field {
            default: "false",
            ..field("spec.unschedulable", "/spec/unschedulable")
        }],
        traits: &[Trait::OwnFieldLabels],
        ..cluster("", "Node", "nodes", "node")
    },
    Kind {
        short_names: &["pvc"],
        subresources: &[Subresource::Status],
        traits: &[Trait::ReturnsDeleted],
        ..namespaced(
            "",
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
            "",
            "PersistentVolume",
            "persistentvolumes",
            "persistentvolume",
        )
    },
    Kind {
        short_names: &["po"],
        categories: &["all"],
        subresources: &[
            Subresource::Attach,
            Subresource::Binding,
            Subresource::EphemeralContainers,
            Subresource::Eviction,
            Subresource::Exec,
            Subresource::Log,
            Subresource::PortForward,
            Subresource::Proxy,
            Subresource::Resize,
            Subresource::Status,
        ],
        traits: &[
            Trait::Generation,
            Trait::ReturnsDeleted,
            Trait::Graceful,
            Trait::OwnFieldLabels,
        ],
        fields: POD_FIELDS,
        ..namespaced("", "Pod", "pods", "pod")
    },
    Kind {
        traits: &[Trait::Generation, Trait::ReturnsDeleted],
        ..namespaced("", "PodTemplate", "podtemplates", "podtemplate")
    },
    Kind {
        short_names: &["rc"],
        categories: &["all"],
        subresources: &[Subresource::Scale, Subresource::Status],
        traits: &[Trait::Generation, Trait::OwnFieldLabels],
        fields: &[Field {
            default: "0",
            ..field("status.replicas", "/status/replicas")
        }],
        ..namespaced(
            "",
            "ReplicationController",
            "replicationcontrollers",
            "replicationcontroller",
        )
    },
    Kind {
        short_names: &["quota"],
        subresources: &[Subresource::Status],
        traits: &[Trait::ReturnsDeleted],
        ..namespaced("", "ResourceQuota", "resourcequotas", "resourcequota")
    },
    Kind {
        fields: &[field("type", "/type")],
        traits: &[Trait::OwnFieldLabels],
        ..namespaced("", "Secret", "secrets", "secret")
    },
    Kind {
        short_names: &["sa"],
        subresources: &[Subresource::Token],
        traits: &[Trait::ReturnsDeleted],
        ..namespaced("", "ServiceAccount", "serviceaccounts", "serviceaccount")
    },
    Kind {
        short_names: &["svc"],
        categories: &["all"],
        subresources: &[Subresource::Proxy, Subresource::Status],
        traits: &[
            Trait::CreateOnUpdate,
            Trait::ReturnsDeleted,
            Trait::OwnFieldLabels,
        ],
        fields: &[
            field("spec.clusterIP", "/spec/clusterIP"),
            field("spec.type", "/spec/type"),
        ],
        name_rule: NameRule::LetterLabel,
        ..namespaced("", "Service", "services", "service")
    },
];
