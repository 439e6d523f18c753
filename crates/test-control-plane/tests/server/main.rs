//! The API server and its actors from the clients' view.

#![expect(
    clippy::unwrap_used,
    reason = "a test may fail by panicking, in helpers too"
)]

mod actors;
mod actors_budgets;
mod actors_concurrency;
mod actors_deployments;
mod actors_determinism;
mod actors_endpoint_slices;
mod actors_events;
mod actors_extremes;
mod actors_garbage_collector;
mod actors_invariants;
mod actors_jobs;
mod actors_namespaces;
mod actors_nodes;
mod actors_placement;
mod actors_pods;
mod actors_scheduler;
mod actors_volumes;
mod admission;
mod apply;
mod audit;
mod bad_bodies;
mod claims;
mod client;
mod client_go;
mod collections;
mod containers;
mod core_events;
mod custom_bodies;
mod custom_resources;
mod custom_schemas;
mod custom_subresources;
mod custom_values;
mod custom_watches;
mod deletions;
mod discovery;
mod emulated_versions;
mod faults;
mod field_validation;
mod finalizers;
mod groups;
mod impersonation;
mod kubelets;
mod negotiation;
mod object_rules;
mod open_api;
#[cfg(feature = "cel")]
mod policies;
mod protobuf;
mod rare_values;
mod rbac;
mod resources;
mod reviews;
mod service_account_admission;
mod service_account_names;
mod service_account_tokens;
mod services;
mod sizes;
mod stored_as_is;
mod support;
mod tls;
mod transport;
mod tunnels;
#[cfg(feature = "cel")]
mod type_checks;
mod updates;
mod validation;
mod watches;
mod webhooks;
mod wire;
mod writes;
mod wrong_types;
