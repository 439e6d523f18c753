//! Positions in the audit log.

/// A position in the log, used to query later entries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct AuditMark(pub(super) u64);

/// The log no longer has all entries after a mark: raise `ServerConfig::audit_limit`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the audit log no longer covers the mark: {forgotten} requests were dropped")]
#[non_exhaustive]
pub struct Forgotten {
    /// Number of dropped requests after the mark.
    pub forgotten: u64,
}
