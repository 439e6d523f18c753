//! What runs in a cluster beside the API server, as far as tests need it.

/// How the user agents of actors start.
pub const ACTOR_AGENT_PREFIX: &str = "test-control-plane/";
