//! Cached objects: an index over them, and the informers that keep it current.
//!
//! Upstream: `client-go/tools/cache`.

pub mod indexer;
pub mod informer;
