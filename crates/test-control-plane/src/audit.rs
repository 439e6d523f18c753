//! The record of all requests.

pub use kube_test_control_plane_server::audit::{
    AuditEntry, AuditFinding, AuditLevel, AuditLog, AuditMark, Forgotten, NotSettled, Settle,
};
