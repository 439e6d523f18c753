//! The clauses of rules as functions.

use std::net::IpAddr;

use serde_json::{Value, json};

use crate::status::FieldError;
use crate::validation::place::{Errors, Place};
use crate::validation::pod_template::{env, probe, resources, scheduling, volumes};
use crate::validation::{
    cluster, ingresses, jobs, metadata, names, network, others, pod, pod_template, stateful_set,
    storage, workloads,
};

/// Returns true if the value of an object needs the next checks.
pub(super) type Guard = fn(of: &Place<'_>, value: &Place<'_>, args: &[&str]) -> bool;

/// Reports the errors of a value.
pub(super) type Check = fn(&Place<'_>, args: &[&str], detail: &str, &mut Errors);

/// Returns the errors of a text.
pub(super) type Syntax = fn(&str) -> Vec<&'static str>;

/// Reports the errors of a value that no other clause describes.
pub(super) type Hook = fn(&Place<'_>, &mut Errors);

const GUARDS: &[(&str, Guard)] = &[
    ("if", |of, _, args| has_text(of, args)),
    ("on-create", |_, value, _| value.old.is_none()),
    ("optional", |_, value, _| !value.is_empty()),
    ("present", |_, value, _| value.is_present()),
    ("unless", |of, _, args| !has_text(of, args)),
    ("filled", |of, _, args| is_filled(of, args)),
    ("without", |of, _, args| !is_filled(of, args)),
    ("with", |of, _, args| {
        args.iter().all(|path| of.member(path).is_present())
    }),
];

const SYNTAXES: &[(&str, Syntax)] = &[
    ("config-key", names::config_key),
    ("descending-path", names::descending_path),
    ("label", names::dns_label),
    ("label-value", names::label_value),
    ("letter-label", names::letter_label),
    ("local-path", names::local_path),
    ("path-segment", names::path_segment),
    ("port-name", names::port_name),
    ("subdomain", names::dns_subdomain),
    ("variable", names::variable),
];

const CHECKS: &[(&str, Check)] = &[
    ("count", |value, _, _, errors| {
        others::count_or_percent(value, errors);
    }),
    ("enum", one_of),
    ("filled-text", |value, _, _, errors| {
        if value.text().is_empty() {
            value.invalid_for(["must not be empty"], errors);
        }
    }),
    ("forbidden", |value, _, detail, errors| {
        errors.push(value.forbidden(detail));
    }),
    ("immutable", immutable),
    ("invalid", |value, _, detail, errors| {
        errors.push(value.invalid(detail));
    }),
    ("ip", ip),
    ("labels", |value, _, _, errors| {
        metadata::labels(value, errors);
    }),
    ("longest", longest),
    ("max", |value, args, detail, errors| {
        if value.number() > number(args.first()) {
            errors.push(value.invalid(detail));
        }
    }),
    ("min", min),
    ("port", port),
    ("qualified", |value, _, _, errors| {
        value.invalid_for(names::qualified_name(value.text()), errors);
    }),
    ("qualified-any-case", |value, _, _, errors| {
        value.invalid_for(names::qualified_name(&value.text().to_lowercase()), errors);
    }),
    ("range", range),
    ("required", |value, _, detail, errors| {
        if value.is_empty() {
            errors.push(value.required(detail));
        }
    }),
    ("sealed", |value, _, detail, errors| {
        if value.is_changed() {
            errors.push(value.forbidden(detail));
        }
    }),
    ("single", |value, _, detail, errors| {
        if value.values().count() != 1 {
            errors.push(value.required(detail));
        }
    }),
    ("template", stateful_set::selector_and_template),
    ("trimmed", |value, _, _, errors| {
        if value.text() != value.text().trim() {
            errors.push(value.invalid("must not have leading or trailing whitespace"));
        }
    }),
];

const HOOKS: &[(&str, Hook)] = &[
    ("absolute_path", ingresses::absolute_path),
    ("added_finalizers", metadata::added_finalizers),
    ("annotations", metadata::annotations),
    ("approval", cluster::approval),
    ("cidr", ingresses::cidr),
    ("claim_source", pod_template::claim_source),
    ("claim_update", storage::claim_update),
    ("claim_volumes", stateful_set::claim_volumes),
    ("container_resources", resources::container_resources),
    ("cron_job_name", jobs::cron_job_name),
    ("daemon_set_strategy", workloads::daemon_set_strategy),
    ("deletion_grace", metadata::deletion_grace),
    ("deletion_time", metadata::deletion_time),
    ("domain_path", ingresses::domain_path),
    ("downward_files", volumes::downward_files),
    ("endpoint_ip", network::endpoint_ip),
    ("endpoint_subset", network::endpoint_subset),
    ("env_from", env::env_from),
    ("env_source", env::env_source),
    ("field_manager", metadata::field_manager),
    ("field_reference", env::field_reference),
    ("full_name", cluster::full_name),
    ("handler", probe::handler),
    ("host_network", pod_template::host_network),
    ("ingress_host", ingresses::ingress_host),
    ("job_template", jobs::job_template),
    ("job_update", jobs::job_update),
    ("known_finalizer", metadata::known_finalizer),
    ("namespace_finalizer", others::namespace_finalizer),
    ("no_progress", workloads::no_progress),
    ("one_backend", ingresses::one_backend),
    ("one_budget", others::one_budget),
    ("one_controller", metadata::one_controller),
    ("one_deletion_policy", metadata::one_deletion_policy),
    ("one_pod_only", storage::one_pod_only),
    ("one_target", cluster::one_target),
    ("one_volume", cluster::one_volume),
    ("operating_system", pod_template::operating_system),
    ("owner_version", metadata::owner_version),
    ("parameter_names", storage::parameter_names),
    ("pod_spec", pod::pod_spec),
    ("pod_update", pod::pod_update),
    ("positive_size", storage::positive_size),
    ("progress_deadline", workloads::progress_deadline),
    ("projections", volumes::projections),
    ("qos_class", pod::qos_class),
    ("replica_bounds", cluster::replica_bounds),
    ("role_ref_update", others::role_ref_update),
    ("schedule", jobs::schedule),
    ("scheduling_gates", scheduling::scheduling_gates),
    ("search_domain", pod_template::search_domain),
    ("service_ports", network::service_ports),
    ("service_update", network::service_update),
    ("signing_request", cluster::signing_request),
    ("some_rule", ingresses::some_rule),
    ("spread_constraints", scheduling::spread_constraints),
    ("stateful_set_strategy", stateful_set::stateful_set_strategy),
    ("stateful_set_update", stateful_set::stateful_set_update),
    ("status_ip", pod::status_ip),
    ("storage_capacity", storage::storage_capacity),
    ("subresource_name", metadata::subresource_name),
    ("taint_value", others::taint_value),
    ("taints", others::taints),
    ("toleration_value", scheduling::toleration_value),
    ("user_priority", cluster::user_priority),
    ("volume_type", storage::volume_type),
];

fn find<T: Copy>(table: &[(&str, T)], wanted: &str) -> Option<T> {
    let row = table.iter().find(|(name, _)| *name == wanted);
    row.map(|(_, found)| *found)
}

pub(super) fn guard(name: &str) -> Option<Guard> {
    find(GUARDS, name)
}

pub(super) fn check(name: &str) -> Option<Check> {
    find(CHECKS, name)
}

pub(super) fn syntax(name: &str) -> Option<Syntax> {
    find(SYNTAXES, name)
}

pub(super) fn hook(name: &str) -> Option<Hook> {
    find(HOOKS, name)
}

/// Returns true if a member has one of the texts: `member=A|B`.
fn has_text(of: &Place<'_>, args: &[&str]) -> bool {
    let conditions = args.iter().filter_map(|arg| arg.split_once('='));
    let mut met = conditions.map(|(member, texts)| {
        let text = of.member(member).text();
        texts.split('|').any(|wanted| wanted == text)
    });
    met.all(|met| met)
}

/// Returns true if any of the members isn't empty.
fn is_filled(of: &Place<'_>, members: &[&str]) -> bool {
    members.iter().any(|member| !of.member(member).is_empty())
}

fn one_of(value: &Place<'_>, known: &[&str], detail: &str, errors: &mut Errors) {
    let text = value.text();
    if known.contains(&text) {
        return;
    }
    errors.push(if detail.is_empty() {
        value.not_supported(known)
    } else {
        FieldError::invalid(value.path(), &json!(text), detail)
    });
}

fn number(arg: Option<&&str>) -> i64 {
    arg.and_then(|arg| arg.parse().ok()).unwrap_or_default()
}

fn range(value: &Place<'_>, args: &[&str], detail: &str, errors: &mut Errors) {
    let (min, max) = (number(args.first()), number(args.get(1)));
    let found = value.number();
    if !(min..=max).contains(&found) {
        let standard = format!("must be between {min} and {max}, inclusive");
        let detail = if detail.is_empty() { &standard } else { detail };
        errors.push(FieldError::invalid(value.path(), &json!(found), detail));
    }
}

fn min(value: &Place<'_>, args: &[&str], detail: &str, errors: &mut Errors) {
    let (min, found) = (number(args.first()), value.number());
    if found < min {
        let standard = format!("must be greater than or equal to {min}");
        let detail = if detail.is_empty() { &standard } else { detail };
        errors.push(FieldError::invalid(value.path(), &json!(found), detail));
    }
}

fn longest(value: &Place<'_>, args: &[&str], _: &str, errors: &mut Errors) {
    let max = number(args.first());
    if i64::try_from(value.text().len()).is_ok_and(|length| length > max) {
        let detail = format!("can have at most {max} characters");
        errors.push(FieldError::invalid(value.path(), &json!(""), &detail));
    }
}

fn immutable(value: &Place<'_>, _: &[&str], detail: &str, errors: &mut Errors) {
    if value.is_changed() {
        let detail = if detail.is_empty() {
            "field is immutable"
        } else {
            detail
        };
        errors.push(value.invalid(detail));
    }
}

fn ip(value: &Place<'_>, _: &[&str], _: &str, errors: &mut Errors) {
    if value.text().parse::<IpAddr>().is_err() {
        let detail = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)";
        value.invalid_for([detail], errors);
    }
}

/// Reports an invalid number or name of a port.
///
/// Upstream: `ValidatePortNumOrName`.
fn port(value: &Place<'_>, _: &[&str], _: &str, errors: &mut Errors) {
    match value.value {
        Value::String(name) => value.invalid_for(names::port_name(name), errors),
        _ => range(value, &["1", "65535"], "", errors),
    }
}
