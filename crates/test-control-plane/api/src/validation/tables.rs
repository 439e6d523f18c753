//! All rules, and the functions that they call.

use std::sync::LazyLock;

use super::engine::{self, Check, Context, Errors, Functions, Hook, Place, Rules};
use super::pods::{
    annotations, containers, env, projections, resources, scheduling, security, spec, status,
    update, volumes,
};
use super::{
    admission, autoscaling, cluster, dynamic_resources, events, flow_control, jobs, metadata,
    others, policies, services, stateful_set, storage, traffic, webhooks, workloads,
};
use serde_json::Value;

use crate::settings::ServerGates;

/// The rules of all types.
const SOURCES: [&str; 15] = [
    include_str!("tables/admission.txt"),
    include_str!("tables/metadata.txt"),
    include_str!("tables/pod.txt"),
    include_str!("tables/container.txt"),
    include_str!("tables/security.txt"),
    include_str!("tables/scheduling.txt"),
    include_str!("tables/volume.txt"),
    include_str!("tables/workload.txt"),
    include_str!("tables/batch.txt"),
    include_str!("tables/service.txt"),
    include_str!("tables/traffic.txt"),
    include_str!("tables/cluster.txt"),
    include_str!("tables/others.txt"),
    include_str!("tables/flow_control.txt"),
    include_str!("tables/dynamic_resources.txt"),
];

/// Lists functions with their names, module by module.
macro_rules! hooks {
    ($($module:ident: $($hook:ident)*;)*) => {
        &[$($((stringify!($hook), $module::$hook),)*)*]
    };
}

/// The functions of the rules that no other clause describes.
const HOOKS: &[(&str, Hook)] = hooks! {
    admission: field_reference mutating_operations named_rule
        param_kind param_reference validation_actions;
    annotations: kept_annotations matching_profiles pod_annotations;
    autoscaling: container_resource_name described_version metric target_version zero_replicas;
    cluster: approval signing_request user_priority;
    containers: host_ports other_device_name other_device_path other_mount_name other_mount_path
        own_host_ports repeated_device_path same_host_port sleep target_container unique_container;
    dynamic_resources: allocated_device binding_conditions claim_allocation claim_reservations
        claim_status counter_names device_attributes device_capacities device_nodes
        device_parameters device_size extended_resource interface_address pool_name
        qualified_attribute repeated_devices request_reference share_id slice_devices slice_nodes;
    env: env_field resource_divisor volume_field;
    flow_control: flow_namespaces flow_urls flow_verbs hand_size mandatory zero_shares;
    jobs: ended exit_code failed_only generated_selector indexed_pod_names job_indexes ordered schedule
        success_rule template_container template_update time_zone uncounted;
    metadata: added_finalizers annotations field_manager known_finalizer one_controller
        one_deletion_policy owner_version;
    others: namespace_finalizer readable_selector;
    policies: device_expression mutations policy_conditions policy_variables validations;
    projections: bundle_name projections;
    resources: container_resources overhead pod_resources;
    scheduling: compared_toleration label_keys min_domains old_label_keys repeated_constraint
        repeated_tolerations taints;
    security: admin_capability host_process host_sysctl windows_user;
    services: cluster_ips cluster_ips_update endpoint_ip endpoint_ports external_name hints
        ip_families_update known_ip repeated_ports service_ports slice_addresses source_ranges
        topology_annotations;
    spec: dns_of_none long_search_paths resource_claims search_domain template;
    stateful_set: stateful_set_strategy stateful_set_template stateful_set_update;
    status: allocated_resource extended_request host_address nominated_node one_per_family
        pod_claim restarted status_ip;
    storage: allocated_resources claim_update data_sources one_pod_only parameters resize_statuses
        storage_capacity topologies valid_quantity volume_type;
    traffic: domain_path ingress_class_annotation ingress_paths ip_block policy_port;
    update: ephemeral_containers_update pod_resize pod_update;
    volumes: block_volume created_claim empty_directory iscsi_name known_volume long_portal
        quobyte reserved_options volumes;
    webhooks: mutating_webhooks validating_webhooks;
    workloads: no_progress not_decremented not_zero selected_by_map selected_template
        selector_and_template surge_or_unavailable;
};

/// The checks besides those of the engine.
const CHECKS: &[(&str, Check)] = &[
    ("at-most-all", workloads::at_most_all),
    ("count", workloads::count),
    ("driver-name", storage::driver_name),
    ("joined-label-value", scheduling::joined_label_value),
    ("labels", metadata::labels),
    ("lone-wildcard", flow_control::lone_wildcard),
    ("longest", events::longest),
    ("repeated", dynamic_resources::repeated),
];

/// The functions that the rules call by name.
const FUNCTIONS: Functions = Functions {
    hooks: HOOKS,
    checks: CHECKS,
    guards: jobs::GUARDS,
};

/// The rules. They are immutable.
static RULES: LazyLock<Rules> = LazyLock::new(|| engine::parse(&SOURCES, FUNCTIONS));

/// Returns the surroundings of an object that is no pod and not stored.
pub(super) fn context(gates: ServerGates) -> Context<'static> {
    Context {
        gates,
        rules: &*RULES,
        old: None,
        of: None,
        pod: None,
    }
}

/// Returns the errors in the metadata of an object inside another one, at `path`.
pub(super) fn embedded_metadata(object: &Value, path: &str) -> Errors {
    let context = context(ServerGates::default());
    let mut errors = Errors::new();
    let place = Place::root(&context, object, None, path);
    place.member("metadata").check("ObjectMeta", &mut errors);
    errors
}

#[cfg(test)]
mod tests {
    use kube_apimachinery::schema::{Type, find_type};

    use super::*;

    /// Returns the type of a block: its name is that of a type, with a group before and a use behind.
    fn type_of(block: &str) -> Option<&'static Type> {
        let (rest, _) = block.rsplit_once('/').unwrap_or((block, ""));
        let mut names = [block, rest].into_iter().chain(block.split('/'));
        names.find_map(find_type)
    }

    /// Reports whether a type has the field at a path.
    fn has(of: Option<&'static Type>, path: &str) -> bool {
        let mut of = of;
        for step in path.split('.').filter(|step| !step.is_empty()) {
            let Some(found) = of else { break };
            let Some(field) = found.field(step) else {
                return false;
            };
            of = field.object_type();
        }
        true
    }

    /// Returns the fields that a clause names. Those of other objects begin with a caret.
    fn fields_of(clause: &str) -> Vec<&str> {
        let mut words = clause.split(' ');
        let named = match words.next() {
            Some("over") => words.take(1).collect::<Vec<_>>(),
            Some("if" | "unless") => words
                .filter_map(|word| word.split_once('='))
                .map(|(path, _)| path.strip_prefix("old:").unwrap_or(path))
                .filter(|path| !path.starts_with("spec:"))
                .collect(),
            Some(
                "absent" | "above" | "at-least" | "at-most" | "differ" | "filled" | "several"
                | "some" | "with" | "without",
            ) => words.collect(),
            _ => Vec::new(),
        };
        named
            .into_iter()
            .filter(|path| !path.starts_with('^'))
            .collect()
    }

    #[test]
    fn clauses_name_existing_fields() {
        let mut of = None;
        let (mut block, mut count) = ("", 0);
        let lines = SOURCES.iter().flat_map(|source| source.lines());
        for line in lines.filter(|line| !line.starts_with('#')) {
            let Some(row) = line.strip_prefix("  ") else {
                (block, of) = (line, type_of(line));
                continue;
            };
            let (row, _) = row.split_once(" -- ").unwrap_or((row, ""));
            let (_, clauses) = row.split_once(": ").unwrap_or_default();
            for clause in clauses.split(", ") {
                for path in fields_of(clause) {
                    assert!(has(of, path), "{block} has no {path}: {line}");
                    count += 1;
                }
                if let Some(names) = clause.strip_prefix("turns ") {
                    let status = find_type("JobStatus");
                    let is_field = |name: &&str| name.starts_with(|c: char| c.is_lowercase());
                    for name in names.split(' ').filter(is_field) {
                        assert!(name == "finished" || has(status, name), "{line}");
                    }
                }
            }
        }
        assert!(count > 300, "{count}");
    }

    #[test]
    fn rules_are_readable_and_name_existing_members() {
        assert_eq!(engine::unread(&SOURCES, FUNCTIONS), [""; 0]);
        assert_eq!(RULES.missing(), [""; 0]);
        for (block, member) in RULES.members() {
            let member = member.filter(|member| !member.starts_with('^'));
            let found = has(type_of(block), member.unwrap_or_default());
            assert!(found, "{block} has no member {member:?}");
        }
    }
}
