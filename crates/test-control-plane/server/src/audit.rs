//! The audit log: every request that was about resources, what tests ask of it, and the form in
//! which kube-apiserver writes it.

mod check;
mod entry;
mod event;
mod log;
mod role;
mod settle;

pub use check::AuditFinding;
pub use entry::AuditEntry;
pub use event::AuditLevel;
pub use log::{AuditLog, AuditMark, Forgotten};
pub use settle::{NotSettled, Settle};
