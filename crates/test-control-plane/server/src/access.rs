//! Access control of a request: authentication, impersonation, authorization, and access reviews.

mod admit;
mod authenticate;
mod authorize;
mod escalation;
mod impersonation;
mod review;
mod service_account;
mod stock;
mod token_request;

pub(crate) use admit::Admission;
