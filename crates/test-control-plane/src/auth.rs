//! Who asks, and whether they may: authentication, impersonation and authorization.
//!
//! | credentials | who it is |
//! |---|---|
//! | none, in this process | the administrator: `kubernetes-admin`, in `system:masters` |
//! | an [`Identity`] in the extensions of a request of this process | that user |
//! | a client certificate of the server's authority | the common name, in the organizations as groups |
//! | a bearer token | who it belongs to, see [`Tokens`]; 401 if it is nobody's |
//! | none, over the port | `system:anonymous`, in `system:unauthenticated` |
//!
//! Whoever is in `system:masters` may do everything. For all others the [`Authorization`] decides:
//! by default [`AuthorizationMode::Rbac`], as in most clusters, with the stock roles and bindings
//! of a cluster (`cluster-admin`, `view`, `system:discovery` and so on) stored from the start.

mod admit;
mod attributes;
mod authenticate;
mod authorize;
mod certificate;
mod forbidden;
mod identity;
mod impersonation;
mod mode;
mod rbac;
mod review;
mod service_account;
mod service_as;
mod token;
mod token_file;
mod token_request;

pub use authenticate::Peer;
pub use identity::{ANONYMOUS, AUTHENTICATED, Identity, MASTERS, NODES, UNAUTHENTICATED};
pub use mode::{Authorization, AuthorizationError, AuthorizationMode};
pub use rbac::PolicyRule;
pub use service_as::ServiceAs;
pub use token_file::{TokenFileError, TokenFileFlaw, Tokens};

pub(crate) use admit::Admission;
pub(crate) use authenticate::{IssuedTokens, Sender};
pub(crate) use certificate::user as certificate_user;
pub(crate) use rbac::{Rbac, RbacIndex, is_policy};
pub(crate) use service_account::{ISSUER as TOKEN_ISSUER, TokenKey};
pub(crate) use token::{KeyError, SigningKey};
