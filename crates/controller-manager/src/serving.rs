//! The program's own endpoints: health, metrics and configuration, over TLS with authentication and
//! authorization.
//!
//! | path | content |
//! |---|---|
//! | `/healthz`, `/livez`, `/readyz` | health, need of a restart, readiness; by default open to anyone |
//! | `/metrics`, `/metrics/slis` | Prometheus' text format; DELETE resets the latter |
//! | `/configz` | the configuration in use |
//! | `/flagz`, `/statusz` | flags, version and start time, for people or as JSON |
//! | `/debug/flags/v` | PUT changes the log verbosity, with `--profiling` |
//!
//! Everything else is 404, including the pages of Go's profiler (`/debug/pprof/`).
//!
//! A request passes through [`handler`]: [`authentication`] identifies the user (client
//! certificate, token known to the API server, headers of a trusted proxy, or anonymous),
//! [`authorization`] decides, [`endpoints`] responds. An unreachable API server never causes a
//! request to be allowed.

pub(crate) mod answer;
pub(crate) mod authentication;
pub(crate) mod authorization;
mod cache;
pub(crate) mod certificate;
pub(crate) mod client_ca;
mod connections;
pub(crate) mod endpoints;
pub(crate) mod files;
#[cfg(test)]
mod fixture;
pub(crate) mod handler;
pub(crate) mod health;
pub(crate) mod listen;
pub(crate) mod readiness;
pub(crate) mod review;
pub(crate) mod server;
pub(crate) mod setup;
mod slis;
pub(crate) mod tls;
pub(crate) mod user;
pub(crate) mod zpages;
