//! Users, their credentials and their permissions.

pub use kube_test_control_plane_server::auth::{
    AUTHENTICATED, Authorization, AuthorizationError, AuthorizationMode, Identity, Peer,
    PolicyRule, TokenFileError, TokenFileFlaw, Tokens,
};
pub use kube_test_control_plane_server::in_process::ServiceAs;
