//! Schemas generated from the `k8s-openapi` type of each kind.

use std::sync::Arc;

use k8s_openapi::api::admissionregistration::v1 as admission;
use k8s_openapi::api::apps::v1 as apps;
use k8s_openapi::api::authentication::v1 as authentication;
use k8s_openapi::api::authorization::v1 as authorization;
use k8s_openapi::api::autoscaling::v1 as autoscaling;
use k8s_openapi::api::autoscaling::v2 as autoscaling_v2;
use k8s_openapi::api::batch::v1 as batch;
use k8s_openapi::api::certificates::v1 as certificates;
use k8s_openapi::api::coordination::v1 as coordination;
use k8s_openapi::api::core::v1 as core;
use k8s_openapi::api::discovery::v1 as discovery;
use k8s_openapi::api::events::v1 as events;
use k8s_openapi::api::flowcontrol::v1 as flow_control;
use k8s_openapi::api::networking::v1 as networking;
use k8s_openapi::api::node::v1 as node;
use k8s_openapi::api::policy::v1 as policy;
use k8s_openapi::api::rbac::v1 as rbac;
k8s_openapi::k8s_if_ge_1_34! {
    use k8s_openapi::api::resource::v1 as dynamic_resources;
}
use k8s_openapi::api::scheduling::v1 as scheduling;
use k8s_openapi::api::storage::v1 as storage;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1 as api_extensions;
use k8s_openapi::apimachinery::pkg::apis::meta::v1 as meta;
use k8s_openapi::kube_aggregator::pkg::apis::apiregistration::v1 as registration;
use k8s_openapi::schemars::generate::SchemaSettings;
use k8s_openapi::schemars::{JsonSchema, SchemaGenerator};
use serde_json::{Map, Value, json};

use super::delete_options;
use crate::kinds::Kind;

/// Group, version and kind.
type GroupVersionKind<'a> = (&'a str, &'a str, &'a str);

/// Generates schemas and records which of them are kinds.
struct Types {
    generator: SchemaGenerator,
    /// The names of types that are kinds, with the kind.
    kinds: Vec<(String, Value)>,
}

impl Types {
    /// Adds the type of a kind.
    fn add<T: JsonSchema>(&mut self, (group, version, kind): GroupVersionKind<'_>) {
        self.generator.subschema_for::<T>();
        let kind = json!({"group": group, "version": version, "kind": kind});
        self.kinds.push((T::schema_name().into_owned(), kind));
    }

    /// Adds the types of a kind and of its list.
    fn add_listed<T: JsonSchema>(&mut self, (group, version, kind): GroupVersionKind<'_>) {
        self.add::<T>((group, version, kind));
        let item = self.generator.subschema_for::<T>();
        let metadata = self.generator.subschema_for::<meta::ListMeta>();
        let list = json!({
            "description": format!("{kind}List is a collection of {kind} objects."),
            "type": "object",
            "required": ["items"],
            "properties": {
                "apiVersion": {
                    "description": "The version of the schema that the list follows.",
                    "type": "string",
                },
                "items": {"description": "The objects.", "type": "array", "items": item},
                "kind": {"description": "The kind of the list.", "type": "string"},
                "metadata": metadata,
            },
        });
        let name = format!("{}List", T::schema_name());
        let kind = format!("{kind}List");
        self.generator.definitions_mut().insert(name.clone(), list);
        let kind = json!({"group": group, "version": version, "kind": kind});
        self.kinds.push((name, kind));
    }
}

/// Returns the schemas of a group version's kinds and subresources and of all types they contain.
pub(super) fn of((group, version): (&str, &str), rows: &[Arc<Kind>]) -> Map<String, Value> {
    let mut types = Types {
        generator: SchemaGenerator::new(SchemaSettings::openapi3()),
        kinds: Vec::new(),
    };
    for kind in rows {
        let subresources = kind.subresources.iter().map(|s| kind.response_type(*s));
        for responds in subresources.chain([(&*kind.group, &*kind.version, &*kind.kind)]) {
            add(&mut types, responds);
        }
        if kind.custom.is_some() {
            types.generator.subschema_for::<meta::ListMeta>();
            types.generator.subschema_for::<meta::ObjectMeta>();
        }
    }
    types.generator.subschema_for::<meta::DeleteOptions>();
    types.add::<meta::Status>(("", "v1", "Status"));
    types.generator.subschema_for::<meta::Patch>();
    let mut schemas = types.generator.take_definitions(true);
    let is_custom = rows.iter().any(|kind| kind.custom.is_some());
    let own = (!is_custom).then_some((group, version));
    if let Some(options) = schemas.get_mut(&*meta::DeleteOptions::schema_name()) {
        options["x-kubernetes-group-version-kind"] = delete_options::kinds(own);
    }
    for (name, kind) in types.kinds {
        let Some(schema) = schemas.get_mut(&name).and_then(Value::as_object_mut) else {
            continue;
        };
        let kinds = schema
            .entry("x-kubernetes-group-version-kind")
            .or_insert_with(|| json!([]));
        if let Some(kinds) = kinds.as_array_mut()
            && !kinds.contains(&kind)
        {
            kinds.push(kind);
        }
    }
    schemas
}

/// Adds a type if it is that of the kind: those of groups by the modules that have them.
macro_rules! add_of {
    ($types:ident, $kind:ident, $add:ident: $($group:literal $version:literal $module:ident $($name:ident)+;)+) => {
        $($(if $kind == ($group, $version, stringify!($name)) {
            $types.$add::<$module::$name>($kind);
        })+)+
    };
}

/// Adds the type of a kind. Skips a kind without a type.
#[rustfmt::skip]
fn add(types: &mut Types, kind: GroupVersionKind<'_>) {
    add_of! { types, kind, add:
        "" "v1" core Binding;
        "authentication.k8s.io" "v1" authentication SelfSubjectReview TokenRequest TokenReview;
        "authorization.k8s.io" "v1" authorization
            LocalSubjectAccessReview SelfSubjectAccessReview SelfSubjectRulesReview SubjectAccessReview;
        "autoscaling" "v1" autoscaling Scale;
        "policy" "v1" policy Eviction;
    }
    add_of! { types, kind, add_listed:
        "" "v1" core
            ComponentStatus ConfigMap Endpoints Event LimitRange Namespace Node PersistentVolume
            PersistentVolumeClaim Pod PodTemplate ReplicationController ResourceQuota Secret Service
            ServiceAccount;
        "admissionregistration.k8s.io" "v1" admission
            MutatingWebhookConfiguration ValidatingAdmissionPolicy ValidatingAdmissionPolicyBinding
            ValidatingWebhookConfiguration;
        "apiextensions.k8s.io" "v1" api_extensions CustomResourceDefinition;
        "apiregistration.k8s.io" "v1" registration APIService;
        "apps" "v1" apps ControllerRevision DaemonSet Deployment ReplicaSet StatefulSet;
        "autoscaling" "v1" autoscaling HorizontalPodAutoscaler;
        "autoscaling" "v2" autoscaling_v2 HorizontalPodAutoscaler;
        "batch" "v1" batch CronJob Job;
        "certificates.k8s.io" "v1" certificates CertificateSigningRequest;
        "coordination.k8s.io" "v1" coordination Lease;
        "discovery.k8s.io" "v1" discovery EndpointSlice;
        "events.k8s.io" "v1" events Event;
        "flowcontrol.apiserver.k8s.io" "v1" flow_control FlowSchema PriorityLevelConfiguration;
        "networking.k8s.io" "v1" networking Ingress IngressClass NetworkPolicy;
        "node.k8s.io" "v1" node RuntimeClass;
        "policy" "v1" policy PodDisruptionBudget;
        "rbac.authorization.k8s.io" "v1" rbac ClusterRole ClusterRoleBinding Role RoleBinding;
        "scheduling.k8s.io" "v1" scheduling PriorityClass;
        "storage.k8s.io" "v1" storage
            CSIDriver CSINode CSIStorageCapacity StorageClass VolumeAttachment;
    }
    k8s_openapi::k8s_if_ge_1_34! {
        add_of! { types, kind, add_listed:
            "resource.k8s.io" "v1" dynamic_resources
                DeviceClass ResourceClaim ResourceClaimTemplate ResourceSlice;
            "storage.k8s.io" "v1" storage VolumeAttributesClass;
        }
    }
    k8s_openapi::k8s_if_ge_1_36! {
        add_of! { types, kind, add_listed:
            "admissionregistration.k8s.io" "v1" admission
                MutatingAdmissionPolicy MutatingAdmissionPolicyBinding;
        }
    }
}
