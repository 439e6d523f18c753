//! Cached objects: an indexed store, and the informers that keep it current.
//!
//! Upstream: `client-go/tools/cache`.

pub mod indexer;
pub mod informer;
