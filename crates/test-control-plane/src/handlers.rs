//! One handler per verb, the same for every kind.

mod apply;
mod apply_body;
mod bind;
mod connect;
mod create;
mod delete;
mod discovery;
mod evict;
mod open_api;
mod read;
mod scale;
mod token_issuer;
mod update;
mod virtual_resources;

pub(crate) use delete::{FOREGROUND, ORPHAN};
pub(crate) use read::Page;
pub(crate) use scale::{ScaleSource, selector_text};
pub(crate) use update::Source;
