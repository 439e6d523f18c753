//! One handler per verb, shared by all kinds.

mod admit;
mod allocate;
mod apply;
mod apply_body;
mod bind;
mod connect;
mod create;
mod delete;
mod discovery;
mod evict;
mod findings;
mod logs;
mod node;
mod open_api;
mod priority_class;
mod read;
mod scale;
mod signing_request;
mod storage_class;
mod token_issuer;
mod update;
mod virtual_resources;

pub(crate) use read::Page;
pub(crate) use scale::ScaleSource;
pub(crate) use update::Source;
