//! Access control of a request: authentication, impersonation, authorization, and access reviews.

mod authenticate;
mod authorize;
mod bootstrap_policy;
mod escalation;
mod impersonation;
mod request;
mod review;
mod service_account;
mod token_request;

pub(crate) use request::RequestIdentity;
