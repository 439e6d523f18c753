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
use k8s_openapi::api::networking::v1 as networking;
use k8s_openapi::api::policy::v1 as policy;
use k8s_openapi::api::rbac::v1 as rbac;
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

/// Adds the type of a kind. Skips a kind without a type.
fn add(types: &mut Types, kind: GroupVersionKind<'_>) {
    match kind {
        ("", "v1", name) => add_core(types, kind, name),
        ("apiextensions.k8s.io", "v1", "CustomResourceDefinition") => {
            types.add_listed::<api_extensions::CustomResourceDefinition>(kind);
        }
        ("apps", "v1", "ControllerRevision") => types.add_listed::<apps::ControllerRevision>(kind),
        ("apps", "v1", "DaemonSet") => types.add_listed::<apps::DaemonSet>(kind),
        ("apps", "v1", "Deployment") => types.add_listed::<apps::Deployment>(kind),
        ("apps", "v1", "ReplicaSet") => types.add_listed::<apps::ReplicaSet>(kind),
        ("apps", "v1", "StatefulSet") => types.add_listed::<apps::StatefulSet>(kind),
        ("authentication.k8s.io", "v1", "SelfSubjectReview") => {
            types.add::<authentication::SelfSubjectReview>(kind);
        }
        ("authentication.k8s.io", "v1", "TokenRequest") => {
            types.add::<authentication::TokenRequest>(kind);
        }
        ("authentication.k8s.io", "v1", "TokenReview") => {
            types.add::<authentication::TokenReview>(kind);
        }
        ("authorization.k8s.io", "v1", "LocalSubjectAccessReview") => {
            types.add::<authorization::LocalSubjectAccessReview>(kind);
        }
        ("authorization.k8s.io", "v1", "SelfSubjectAccessReview") => {
            types.add::<authorization::SelfSubjectAccessReview>(kind);
        }
        ("authorization.k8s.io", "v1", "SelfSubjectRulesReview") => {
            types.add::<authorization::SelfSubjectRulesReview>(kind);
        }
        ("authorization.k8s.io", "v1", "SubjectAccessReview") => {
            types.add::<authorization::SubjectAccessReview>(kind);
        }
        ("autoscaling", "v1", "Scale") => types.add::<autoscaling::Scale>(kind),
        ("coordination.k8s.io", "v1", "Lease") => types.add_listed::<coordination::Lease>(kind),
        ("admissionregistration.k8s.io", "v1", name) => add_admission(types, kind, name),
        ("autoscaling", "v2", "HorizontalPodAutoscaler") => {
            types.add_listed::<autoscaling_v2::HorizontalPodAutoscaler>(kind);
        }
        ("batch", "v1", "CronJob") => types.add_listed::<batch::CronJob>(kind),
        ("batch", "v1", "Job") => types.add_listed::<batch::Job>(kind),
        ("apiregistration.k8s.io", "v1", "APIService") => {
            types.add_listed::<registration::APIService>(kind);
        }
        ("certificates.k8s.io", "v1", "CertificateSigningRequest") => {
            types.add_listed::<certificates::CertificateSigningRequest>(kind);
        }
        ("discovery.k8s.io", "v1", "EndpointSlice") => {
            types.add_listed::<discovery::EndpointSlice>(kind);
        }
        ("networking.k8s.io", "v1", name) => add_networking(types, kind, name),
        ("scheduling.k8s.io", "v1", "PriorityClass") => {
            types.add_listed::<scheduling::PriorityClass>(kind);
        }
        ("storage.k8s.io", "v1", name) => add_storage(types, kind, name),
        ("events.k8s.io", "v1", "Event") => types.add_listed::<events::Event>(kind),
        ("policy", "v1", "Eviction") => types.add::<policy::Eviction>(kind),
        ("policy", "v1", "PodDisruptionBudget") => {
            types.add_listed::<policy::PodDisruptionBudget>(kind);
        }
        ("rbac.authorization.k8s.io", "v1", "ClusterRole") => {
            types.add_listed::<rbac::ClusterRole>(kind);
        }
        ("rbac.authorization.k8s.io", "v1", "ClusterRoleBinding") => {
            types.add_listed::<rbac::ClusterRoleBinding>(kind);
        }
        ("rbac.authorization.k8s.io", "v1", "Role") => types.add_listed::<rbac::Role>(kind),
        ("rbac.authorization.k8s.io", "v1", "RoleBinding") => {
            types.add_listed::<rbac::RoleBinding>(kind);
        }
        _ => {}
    }
}

fn add_core(types: &mut Types, kind: GroupVersionKind<'_>, name: &str) {
    match name {
        "Binding" => types.add::<core::Binding>(kind),
        "ComponentStatus" => types.add_listed::<core::ComponentStatus>(kind),
        "ConfigMap" => types.add_listed::<core::ConfigMap>(kind),
        "Endpoints" => types.add_listed::<core::Endpoints>(kind),
        "Event" => types.add_listed::<core::Event>(kind),
        "LimitRange" => types.add_listed::<core::LimitRange>(kind),
        "Namespace" => types.add_listed::<core::Namespace>(kind),
        "Node" => types.add_listed::<core::Node>(kind),
        "PersistentVolume" => types.add_listed::<core::PersistentVolume>(kind),
        "PersistentVolumeClaim" => types.add_listed::<core::PersistentVolumeClaim>(kind),
        "Pod" => types.add_listed::<core::Pod>(kind),
        "PodTemplate" => types.add_listed::<core::PodTemplate>(kind),
        "ReplicationController" => types.add_listed::<core::ReplicationController>(kind),
        "ResourceQuota" => types.add_listed::<core::ResourceQuota>(kind),
        "Secret" => types.add_listed::<core::Secret>(kind),
        "Service" => types.add_listed::<core::Service>(kind),
        "ServiceAccount" => types.add_listed::<core::ServiceAccount>(kind),
        _ => {}
    }
}

fn add_admission(types: &mut Types, kind: GroupVersionKind<'_>, name: &str) {
    match name {
        "MutatingWebhookConfiguration" => {
            types.add_listed::<admission::MutatingWebhookConfiguration>(kind);
        }
        "ValidatingAdmissionPolicy" => {
            types.add_listed::<admission::ValidatingAdmissionPolicy>(kind);
        }
        "ValidatingAdmissionPolicyBinding" => {
            types.add_listed::<admission::ValidatingAdmissionPolicyBinding>(kind);
        }
        "ValidatingWebhookConfiguration" => {
            types.add_listed::<admission::ValidatingWebhookConfiguration>(kind);
        }
        _ => {}
    }
    k8s_openapi::k8s_if_ge_1_36! {
        match name {
            "MutatingAdmissionPolicy" => types.add_listed::<admission::MutatingAdmissionPolicy>(kind),
            "MutatingAdmissionPolicyBinding" => types.add_listed::<admission::MutatingAdmissionPolicyBinding>(kind),
            _ => {}
        }
    }
}

fn add_networking(types: &mut Types, kind: GroupVersionKind<'_>, name: &str) {
    match name {
        "Ingress" => types.add_listed::<networking::Ingress>(kind),
        "IngressClass" => types.add_listed::<networking::IngressClass>(kind),
        "NetworkPolicy" => types.add_listed::<networking::NetworkPolicy>(kind),
        _ => {}
    }
}

fn add_storage(types: &mut Types, kind: GroupVersionKind<'_>, name: &str) {
    match name {
        "CSIDriver" => types.add_listed::<storage::CSIDriver>(kind),
        "CSINode" => types.add_listed::<storage::CSINode>(kind),
        "StorageClass" => types.add_listed::<storage::StorageClass>(kind),
        "VolumeAttachment" => types.add_listed::<storage::VolumeAttachment>(kind),
        _ => {}
    }
}
