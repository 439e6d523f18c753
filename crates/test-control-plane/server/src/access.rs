//! Access control of a request: authentication, impersonation, authorization, and access reviews.

mod admin_devices;
mod authenticate;
mod authorize;
mod bootstrap_policy;
mod escalation;
mod impersonation;
mod parameters;
mod request;
mod review;
mod service_account;
mod token_request;

pub(crate) use admin_devices::check_admin_devices;
pub(crate) use authenticate::{authenticate, issue_token};
pub(crate) use authorize::{authorize, authorize_create_on_update, decide};
pub(crate) use bootstrap_policy::install_bootstrap_policy;
pub(crate) use escalation::check_escalation;
pub(crate) use parameters::check_parameters;
pub(crate) use request::{RequestIdentity, authorize_request, identify};
pub(crate) use review::review;
pub(crate) use service_account::token_issuer_keys;
pub(crate) use token_request::request_token;
