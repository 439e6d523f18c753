//! The audit log: all resource requests, with queries for tests and kube-apiserver's event format.

mod check;
mod entry;
mod event;
mod log;
mod mark;
mod role;
mod settle;

pub use check::AuditFinding;
pub use entry::AuditEntry;
pub use event::AuditLevel;
pub use log::AuditLog;
pub use mark::{AuditMark, Forgotten};
pub use settle::{NotSettled, Settle};
