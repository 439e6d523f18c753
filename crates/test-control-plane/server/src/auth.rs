//! Authentication, impersonation and authorization of requests.
//!
//! | credentials | user |
//! |---|---|
//! | none, in this process | the administrator: `kubernetes-admin`, in `system:masters` |
//! | an [`Identity`] in the extensions of an in-process request | that user |
//! | a client certificate signed by a trusted authority | the common name, with the organizations as groups |
//! | a bearer token | its user, see [`Tokens`]; 401 for an unknown token |
//! | none, over the port | `system:anonymous`, in `system:unauthenticated` |
//!
//! Members of `system:masters` may do everything. For all other users the [`Authorization`]
//! decides: by default [`AuthorizationMode::Rbac`], as in most clusters, with a cluster's default
//! roles and bindings (`cluster-admin`, `view`, `system:discovery` and so on) stored from the
//! start.

pub(crate) mod attributes;
mod certificate;
mod decision;
pub(crate) mod forbidden;
pub(crate) mod identity;
pub(crate) mod mode;
pub(crate) mod rbac;
mod sender;
pub(crate) mod service_account;
pub(crate) mod token;
mod token_file;

pub use certificate::user as certificate_user;
pub use identity::{ANONYMOUS, AUTHENTICATED, Identity, MASTERS, NODES, UNAUTHENTICATED};
pub use mode::{Authorization, AuthorizationError, AuthorizationMode};
pub use rbac::PolicyRule;
pub use sender::Peer;
pub use token_file::{TokenFileError, TokenFileFlaw, Tokens};

pub(crate) use decision::Decision;
pub(crate) use rbac::{Rbac, RbacIndex};
pub(crate) use sender::{IssuedTokens, Sender};
pub(crate) use service_account::{ISSUER as TOKEN_ISSUER, TokenKey, TokenUser};
pub(crate) use token::{KeyError, SigningKey};
