//! Validation: the checks that reject a write with 422.

mod api_services;
mod cluster;
mod config;
mod custom;
mod events;
mod ingresses;
mod inner;
mod jobs;
mod line_diff;
mod metadata;
mod network;
mod others;
mod place;
mod pod;
mod pod_template;
mod quotas;
mod resource_names;
mod rules;
mod stateful_set;
mod storage;
#[cfg(test)]
mod upstream;
mod workloads;

use crate::custom::DEFINITIONS;
use crate::go::names;
pub use crate::go::names::path_segment;
pub(crate) use crate::go::names::{dns_label, dns_subdomain, letter_label};
use crate::kinds::{Kind, Subresource, Target};
use crate::object::Draft;
use crate::settings::FeatureGates;
use crate::status::FieldError;
pub(crate) use custom::is_known_format;
use metadata::embedded as embedded_metadata;
use place::Place;

/// The write to validate.
#[derive(Clone, Copy, Debug)]
pub struct Subject<'a> {
    /// The stored kind of the object.
    pub kind: &'a Kind,
    /// The kind in the request's URL, which may be another version of the stored kind.
    pub served: &'a Kind,
    /// The object after the write.
    pub new: &'a Draft,
    /// The stored object; `None` on create.
    pub old: Option<&'a Draft>,
    /// The target: the object or a subresource.
    pub target: Target,
    /// The server's feature gates.
    pub gates: FeatureGates,
}

/// Errors and warnings of a write.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Findings {
    /// Errors, which reject the write.
    pub errors: Vec<FieldError>,
    /// Warnings for the client.
    pub warnings: Vec<String>,
}

impl From<Vec<FieldError>> for Findings {
    fn from(errors: Vec<FieldError>) -> Self {
        Self {
            errors,
            warnings: Vec::new(),
        }
    }
}

/// Returns the errors and warnings of a write.
pub fn validate(subject: Subject<'_>) -> Findings {
    let place = &Place::root(
        &subject.new.value,
        subject.old.map(|old| &old.value),
        subject.gates,
    );
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
        DEFINITIONS => {
            let old = subject.old.map(|old| &old.value);
            errors.extend(custom::definition(&subject.new.value, old));
        }
        "apiservices" if is_status => {}
        "apiservices" => api_services::api_service(place, errors),
        "configmaps" => config::config_map(subject, errors),
        "controllerrevisions" => others::controller_revision(subject, errors),
        "events" => events::event(subject, place, errors),
        "limitranges" => quotas::limit_range(subject, errors),
        "resourcequotas" => quotas::resource_quota(subject, errors),
        "secrets" => config::secret(subject, errors),
        "statefulsets" if is_status => {
            stateful_set::status(subject, &place.member("status"), errors);
        }
        "daemonsets" | "deployments" | "replicasets" | "replicationcontrollers" if is_status => {
            workloads::status(&place.member("status"), errors);
        }
        "pods" if is_status && place.old.is_some() => rules::check("Pod/status", place, errors),
        "pods" | "persistentvolumeclaims" if subject.target != Target::Object => {}
        _ => rules::check(&subject.kind.kind, place, errors),
    }
    if is_status && &*subject.kind.storage == "namespaces" {
        others::phase(subject, errors);
    }
    Findings::from(all)
}

/// Returns true if the text is a DNS subdomain, the syntax of most object names.
pub fn is_subdomain(text: &str) -> bool {
    dns_subdomain(text).is_empty()
}
