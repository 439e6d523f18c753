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

/// The functions of the rules that no other clause describes.
const HOOKS: &[(&str, Hook)] = &[
    ("added_finalizers", metadata::added_finalizers),
    ("admin_capability", security::admin_capability),
    ("allocated_device", dynamic_resources::allocated_device),
    ("allocated_resource", status::allocated_resource),
    ("allocated_resources", storage::allocated_resources),
    ("annotations", metadata::annotations),
    ("approval", cluster::approval),
    ("banned_owner", metadata::banned_owner),
    ("binding_conditions", dynamic_resources::binding_conditions),
    ("blob_disk", volumes::blob_disk),
    ("block_volume", volumes::block_volume),
    ("both_datasets", volumes::both_datasets),
    ("both_fields", volumes::both_fields),
    ("bundle_name", projections::bundle_name),
    ("claim_allocation", dynamic_resources::claim_allocation),
    ("claim_reservations", dynamic_resources::claim_reservations),
    ("claim_status", dynamic_resources::claim_status),
    ("claim_update", storage::claim_update),
    ("clean_path", traffic::clean_path),
    ("client_ip_timeout", services::client_ip_timeout),
    ("cluster_ips", services::cluster_ips),
    ("cluster_ips_update", services::cluster_ips_update),
    ("compared_toleration", scheduling::compared_toleration),
    ("condition_type", status::condition_type),
    (
        "container_resource_name",
        autoscaling::container_resource_name,
    ),
    ("container_resources", resources::container_resources),
    ("counter_names", dynamic_resources::counter_names),
    ("created_claim", volumes::created_claim),
    ("credential_spec", security::credential_spec),
    ("cron_job_name", jobs::cron_job_name),
    ("data_sources", storage::data_sources),
    ("described_version", autoscaling::described_version),
    ("device_attributes", dynamic_resources::device_attributes),
    ("device_capacities", dynamic_resources::device_capacities),
    ("device_data", dynamic_resources::device_parameters),
    ("device_expression", policies::device_expression),
    ("device_message", status::device_message),
    ("device_nodes", dynamic_resources::device_nodes),
    ("device_parameters", dynamic_resources::device_parameters),
    ("device_size", dynamic_resources::device_size),
    ("dns_of_none", spec::dns_of_none),
    ("domain_path", traffic::domain_path),
    ("empty_directory", volumes::empty_directory),
    ("endpoint_ip", services::endpoint_ip),
    ("endpoint_subsets", services::endpoint_subsets),
    ("env_field", env::env_field),
    (
        "ephemeral_containers_update",
        update::ephemeral_containers_update,
    ),
    ("exit_code", jobs::exit_code),
    ("extended_request", status::extended_request),
    ("extended_resource", dynamic_resources::extended_resource),
    ("external_ips", services::external_ips),
    ("external_name", services::external_name),
    ("external_traffic", services::external_traffic),
    ("few_name_servers", spec::few_name_servers),
    ("few_policy_types", traffic::few_policy_types),
    ("few_search_paths", spec::few_search_paths),
    ("field_manager", metadata::field_manager),
    ("field_reference", admission::field_reference),
    ("flow_namespaces", flow_control::namespaces),
    ("flow_urls", flow_control::urls),
    ("flow_verbs", flow_control::verbs),
    ("generated_selector", jobs::generated_selector),
    ("hand_size", flow_control::hand_size),
    ("health_check", services::health_check),
    ("health_check_update", services::health_check_update),
    ("hints", services::hints),
    ("host_address", status::host_address),
    ("host_ports", containers::host_ports),
    ("host_process", security::host_process),
    ("host_sysctl", security::host_sysctl),
    ("indexed_pod_names", jobs::indexed_pod_names),
    (
        "ingress_class_annotation",
        traffic::ingress_class_annotation,
    ),
    ("ingress_paths", traffic::ingress_paths),
    ("interface_address", dynamic_resources::interface_address),
    ("ip_block", traffic::ip_block),
    ("ip_families_update", services::ip_families_update),
    ("iscsi_name", volumes::iscsi_name),
    ("job_status", jobs::status::job_status),
    ("job_update", jobs::job_update),
    ("kept_annotations", annotations::kept_annotations),
    ("known_finalizer", metadata::known_finalizer),
    ("known_ip", services::known_ip),
    ("known_volume", volumes::known_volume),
    ("label_keys", scheduling::label_keys),
    (
        "load_balancer_class_update",
        services::load_balancer_class_update,
    ),
    ("long_portal", volumes::long_portal),
    ("managed_disk", volumes::managed_disk),
    ("mandatory", flow_control::mandatory),
    ("many_completions", jobs::many_completions),
    ("matching_profiles", annotations::matching_profiles),
    ("metric", autoscaling::metric),
    ("min_domains", scheduling::min_domains),
    ("mutating_operations", admission::mutating_operations),
    ("mutating_webhooks", webhooks::mutating_webhooks),
    ("mutations", policies::mutations),
    ("named_rule", admission::named_rule),
    ("namespace_finalizer", others::namespace_finalizer),
    ("negative_size", volumes::negative_size),
    ("no_claim", spec::no_claim),
    ("no_headless", services::no_headless),
    ("no_progress", workloads::no_progress),
    ("no_slash", volumes::no_slash),
    ("nominated_node", status::nominated_node),
    ("not_decremented", workloads::not_decremented),
    ("not_negative", autoscaling::not_negative),
    ("not_zero", workloads::not_zero),
    ("old_label_keys", scheduling::old_label_keys),
    ("one_backend", traffic::one_backend),
    ("one_controller", metadata::one_controller),
    ("one_deletion_policy", metadata::one_deletion_policy),
    ("one_env_from", env::one_env_from),
    ("one_env_source", env::one_env_source),
    ("one_peer", traffic::one_peer),
    ("one_per_family", status::one_per_family),
    ("one_pod_only", storage::one_pod_only),
    ("one_service_port", traffic::one_service_port),
    ("one_volume", cluster::one_volume),
    ("ordered", jobs::ordered),
    ("other_device_name", containers::other_device_name),
    ("other_device_path", containers::other_device_path),
    ("other_mount_name", containers::other_mount_name),
    ("other_mount_path", containers::other_mount_path),
    ("overhead", resources::overhead),
    ("own_host_ports", containers::own_host_ports),
    ("owner_version", metadata::owner_version),
    ("param_kind", admission::param_kind),
    ("param_reference", admission::param_reference),
    ("parameters", storage::parameters),
    ("pod_annotations", annotations::pod_annotations),
    ("pod_claim", status::pod_claim),
    ("pod_resize", update::pod_resize),
    ("pod_resources", resources::pod_resources),
    ("pod_update", update::pod_update),
    ("policy_conditions", policies::policy_conditions),
    ("policy_port", traffic::policy_port),
    ("policy_variables", policies::policy_variables),
    ("pool_name", dynamic_resources::pool_name),
    ("positive", autoscaling::positive),
    ("positive_size", storage::positive_size),
    ("progress_deadline", workloads::progress_deadline),
    ("projections", projections::projections),
    ("qos_class", status::qos_class),
    (
        "qualified_attribute",
        dynamic_resources::qualified_attribute,
    ),
    ("quobyte", volumes::quobyte),
    ("readable_selector", others::readable_selector),
    ("repeated_constraint", scheduling::repeated_constraint),
    ("repeated_device_path", containers::repeated_device_path),
    ("repeated_devices", dynamic_resources::repeated_devices),
    ("repeated_ports", services::repeated_ports),
    ("repeated_tolerations", scheduling::repeated_tolerations),
    ("replica_bounds", autoscaling::replica_bounds),
    ("request_reference", dynamic_resources::request_reference),
    ("reserved_options", volumes::reserved_options),
    ("resize_statuses", storage::resize_statuses),
    ("resource_claims", spec::resource_claims),
    ("resource_divisor", env::resource_divisor),
    ("resource_field", env::resource_field),
    ("restarted", status::restarted),
    ("role_ref_update", others::role_ref_update),
    ("same_host_port", containers::same_host_port),
    ("schedule", jobs::schedule),
    ("search_domain", spec::search_domain),
    ("selected_by_map", workloads::selected_by_map),
    ("selected_template", workloads::selected_template),
    ("selector_and_template", workloads::selector_and_template),
    ("service_ports", services::service_ports),
    ("share_id", dynamic_resources::share_id),
    ("signing_request", cluster::signing_request),
    ("sleep", containers::sleep),
    ("slice_addresses", services::slice_addresses),
    ("slice_devices", dynamic_resources::slice_devices),
    ("slice_endpoints", services::slice_endpoints),
    ("slice_nodes", dynamic_resources::slice_nodes),
    ("some_rule", traffic::some_rule),
    ("source_ranges", services::source_ranges),
    ("stateful_set_strategy", stateful_set::stateful_set_strategy),
    ("stateful_set_template", stateful_set::stateful_set_template),
    ("stateful_set_update", stateful_set::stateful_set_update),
    ("status_ip", status::status_ip),
    ("stop_signal", containers::stop_signal),
    ("storage_capacity", storage::storage_capacity),
    ("subresource_name", metadata::subresource_name),
    ("success_rule", jobs::success_rule),
    ("surge_or_unavailable", workloads::surge_or_unavailable),
    ("taints", scheduling::taints),
    ("target_container", containers::target_container),
    ("target_version", autoscaling::target_version),
    ("template", spec::template),
    ("template_container", jobs::template_container),
    ("time_zone", jobs::time_zone),
    ("topologies", storage::topologies),
    ("topology_annotations", services::topology_annotations),
    ("uncounted", jobs::status::uncounted),
    ("unique_container", containers::unique_container),
    ("user_priority", cluster::user_priority),
    ("valid_quantity", storage::valid_quantity),
    ("validating_webhooks", webhooks::validating_webhooks),
    ("validation_actions", admission::validation_actions),
    ("validations", policies::validations),
    ("volume_field", env::volume_field),
    ("volume_type", storage::volume_type),
    ("volumes", volumes::volumes),
    ("windows_user", security::windows_user),
    ("zero_replicas", autoscaling::zero_replicas),
    ("zero_shares", flow_control::zero_shares),
];

/// The checks besides those of the engine.
const CHECKS: &[(&str, Check)] = &[
    ("at-most", workloads::at_most),
    ("at-most-all", workloads::at_most_all),
    ("count", workloads::count),
    ("driver-name", storage::driver_name),
    ("invalid-as", dynamic_resources::invalid_as),
    ("invalid-here", workloads::invalid_here),
    ("joined-label-value", scheduling::joined_label_value),
    ("labels", metadata::labels),
    ("lone-wildcard", flow_control::lone_wildcard),
    ("longest", events::longest),
    ("repeated", dynamic_resources::repeated),
    ("unsupported", workloads::unsupported),
];

/// The functions that the rules call by name.
const FUNCTIONS: Functions = Functions {
    hooks: HOOKS,
    checks: CHECKS,
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
    use kube_apimachinery::schema::{Field, find_type};

    use super::*;

    #[test]
    fn rules_are_readable_and_name_existing_members() {
        assert_eq!(engine::unread(&SOURCES, FUNCTIONS), [""; 0]);
        assert_eq!(RULES.missing(), [""; 0]);
        for (block, member) in RULES.members() {
            // A block's name is that of a type, with a group before and a use behind.
            let (rest, _) = block.rsplit_once('/').unwrap_or((block, ""));
            let name = [block, rest]
                .into_iter()
                .chain(block.split('/'))
                .find_map(find_type);
            let Some(member) = member.filter(|member| !member.starts_with('^')) else {
                continue;
            };
            let mut of = name;
            for step in member.split('.') {
                let Some(found) = of else { break };
                let field = found.field(step);
                assert!(field.is_some(), "{block} has no member {member}");
                of = field.and_then(Field::object_type);
            }
        }
    }
}
