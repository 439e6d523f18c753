//! Validation: the checks that reject a write with 422.

mod admission;
mod api_services;
mod autoscaling;
mod cluster;
mod config;
mod custom;
mod dynamic_resources;
mod engine;
mod events;
mod flow_control;
mod jobs;
mod metadata;
mod others;
mod pods;
#[cfg(feature = "cel")]
mod policies;
#[cfg(not(feature = "cel"))]
#[path = "validation/policies_without_cel.rs"]
mod policies;
mod quotas;
mod resource_names;
mod services;
mod stateful_set;
mod storage;
mod subject;
mod tables;
#[cfg(test)]
mod tests;
mod traffic;
mod webhooks;
mod workloads;

use kube_apimachinery::schema::find_type;
use serde_json::Value;

use crate::custom::DEFINITIONS;
pub(crate) use crate::go::names::{dns_label, dns_subdomain, letter_label};
pub use crate::go::names::{path_segment, qualified_name};
use crate::kinds::{Kind, Subresource, Target, type_in};
use crate::settings::ServerGates;
pub(crate) use custom::is_known_format;
use engine::{Context, Errors, Place, Pod};
pub use flow_control::mandatory_flow_control;
pub(crate) use pods::annotations;
pub use subject::{Findings, Subject};

/// Returns the errors and warnings of a write.
pub fn validate(subject: Subject<'_>) -> Findings {
    let value = &subject.new.value;
    let old = subject.old.map(|old| &old.value);
    let context = &Context {
        old,
        of: type_in(subject.kind, subject.version.schema()),
        pod: pod(subject.kind, value, old),
        ..tables::context(subject.gates)
    };
    let place = &Place::root(context, value, old, "");
    let mut all = metadata::validate(subject, place);
    let errors = &mut all;
    let is_status = subject.target == Target::Part(Subresource::Status);
    if let Some(custom) = &subject.kind.custom {
        let mut findings = custom::resource(custom, subject, all);
        findings
            .warnings
            .extend(metadata::finalizer_warnings(subject));
        return findings;
    }
    match &*subject.kind.storage {
        DEFINITIONS if is_status => {}
        DEFINITIONS => errors.extend(custom::definition(value, old)),
        "apiservices" if is_status => {}
        "apiservices" => api_services::api_service(place, errors),
        "configmaps" => config::config_map(subject, errors),
        "controllerrevisions" => others::controller_revision(subject, place, errors),
        "events" => events::event(subject, place, errors),
        "limitranges" => quotas::limit_range(subject, errors),
        "resourcequotas" => quotas::resource_quota(subject, errors),
        "secrets" => config::secret(subject, place, errors),
        _ => by_tables(subject, place, errors),
    }
    if is_status && &*subject.kind.storage == "namespaces" {
        others::phase(subject, errors);
    }
    metadata::validate_last(subject, place, errors);
    Findings::from(all)
}

/// Applies the block of a subresource, or else of the kind.
fn by_tables(subject: Subject<'_>, place: &Place<'_>, errors: &mut Errors) {
    let kind = place.context.of.map_or(&*subject.kind.kind, |of| of.name);
    if let Target::Part(part) = subject.target {
        let block = format!("{kind}/{}", part.name());
        if place.context.rules.has(&block) {
            return place.check(&block, errors);
        }
    }
    place.check(kind, errors);
}

/// Returns the pod of an object.
fn pod<'a>(kind: &Kind, value: &'a Value, old: Option<&'a Value>) -> Option<Pod<'a>> {
    let of = |value: &'a Value, member: &str| value.get(member).unwrap_or(&Value::Null);
    (&*kind.storage == "pods").then(|| Pod {
        spec: of(value, "spec"),
        old: old.map(|old| of(old, "spec")),
        metadata: of(value, "metadata"),
        is_whole: true,
        claims: &[],
        is_named: false,
    })
}

/// Returns the errors of the addresses and IP families of a service.
pub(crate) fn cluster_ip_errors(service: &Value, old: Option<&Value>) -> Errors {
    let context = Context {
        old,
        of: find_type("Service"),
        ..tables::context(ServerGates::default())
    };
    let mut errors = Errors::new();
    services::cluster_ips(
        &Place::root(&context, service, old, "").member("spec"),
        &mut errors,
    );
    errors
}

/// Returns true if an `AppArmor` profile is valid.
pub(crate) fn is_app_armor_profile(profile: &Value) -> bool {
    let context = tables::context(ServerGates::default());
    let mut errors = Errors::new();
    Place::root(&context, profile, None, "").check("AppArmorProfile", &mut errors);
    errors.is_empty()
}

/// Returns true if the text is a DNS subdomain, the syntax of most object names.
pub fn is_subdomain(text: &str) -> bool {
    dns_subdomain(text).is_empty()
}
