//! The program's own endpoints: health, metrics and configuration, over TLS, for those who may.
//!
//! | path | what |
//! |---|---|
//! | `/healthz`, `/livez`, `/readyz` | is it healthy, would a restart help, does it do its part; by default for anybody |
//! | `/metrics`, `/metrics/slis` | Prometheus' text format; DELETE of the latter begins anew |
//! | `/configz` | the configuration in use |
//! | `/flagz`, `/statusz` | flags, version and start, for people or as JSON |
//! | `/debug/flags/v` | PUT changes how much is logged, with `--profiling` |
//!
//! Everything else is 404, the pages of Go's profiler (`/debug/pprof/`) among it.
//!
//! A request goes through [`handler`]: [`authentication`] says who asks (a client certificate, a
//! token that the API server knows, headers of a trusted proxy, or nobody), [`authorization`]
//! whether they may, [`endpoints`] what there is. Nothing is allowed because the API server can't
//! be asked.

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
