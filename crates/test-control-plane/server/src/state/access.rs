//! State of access control: users, tokens, roles and bindings.

use std::sync::Arc;

use super::random::Random;
use super::reads::Reads;
use crate::auth::{
    Authorization, Identity, IssuedTokens, KeyError, Rbac, RbacIndex, SigningKey, TokenKey, Tokens,
};

/// The users and their permissions.
#[derive(Debug)]
pub(crate) struct Access {
    pub(crate) reads: Arc<Reads>,
    pub(crate) random: Arc<Random>,
    /// Static bearer tokens.
    pub(crate) tokens: Tokens,
    pub(crate) issued_tokens: IssuedTokens,
    pub(crate) authorization: Authorization,
    /// Default user of requests in this process.
    pub(crate) admin: Arc<Identity>,
    pub(super) policy: Rbac,
    pub(super) token_key: TokenKey,
}

impl Access {
    /// Returns the index of the roles and bindings.
    pub(crate) fn policy_index(&self) -> Arc<RbacIndex> {
        self.policy.index(&self.reads.store)
    }

    /// Returns the signing key of service account tokens.
    pub(crate) fn token_key(&self) -> Result<&SigningKey, KeyError> {
        self.token_key.get()
    }
}
