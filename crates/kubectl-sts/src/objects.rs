//! The objects that concern some sets, read from the API server.
//!
//! [`read`] lists them by namespace into groups; a [`Snapshot`] holds those of one set.

mod events;
mod evidence;
mod groups;
mod names;
mod namespace;
pub(crate) mod read;
mod snapshot;
mod stored;

pub(crate) use snapshot::Snapshot;
