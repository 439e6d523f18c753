//! Parsed audit log of the control plane, with checks of lease terms.

use std::time::Duration;

use k8s_openapi::jiff::Timestamp;
use serde_json::Value;

/// A successful write.
#[derive(Debug, Clone)]
pub(crate) struct Entry {
    /// Time of the request.
    pub(crate) at: Timestamp,
    /// User of the request.
    pub(crate) user: String,
    /// True if it wrote a lease.
    pub(crate) is_lease: bool,
    /// True if the lease client sent it: lease writes, and events about the lease.
    pub(crate) is_election: bool,
    /// Description such as `delete pods web-0`.
    pub(crate) what: String,
}

impl Entry {
    /// Parses a line of the audit log; `None` for reads and failed requests.
    pub(crate) fn parse(line: &str) -> Option<Self> {
        let event: Value = serde_json::from_str(line).ok()?;
        let text = |pointer: &str| event.pointer(pointer).and_then(Value::as_str).unwrap_or("");
        let verb = text("/verb");
        let code = event.pointer("/responseStatus/code")?.as_u64()?;
        if !matches!(verb, "create" | "update" | "patch" | "delete") || !(200..300).contains(&code)
        {
            return None;
        }
        let resource = text("/objectRef/resource");
        Some(Self {
            at: text("/requestReceivedTimestamp").parse().ok()?,
            user: text("/user/username").to_owned(),
            is_lease: resource == "leases",
            is_election: text("/userAgent").ends_with("leader-election"),
            what: format!("{verb} {resource} {}", text("/objectRef/name")),
        })
    }
}

/// Checks writes against the terms of a lease's holders.
#[derive(Debug, Default)]
pub(crate) struct Audit {
    holder: Option<Entry>,
    writes: Vec<Entry>,
    violations: Vec<String>,
}

impl Audit {
    /// Adds a write of one of the candidates. Writes unrelated to the election are allowed only in
    /// the writer's own term: after its write of the lease, before any other candidate's, and less
    /// than the lease duration after its last renewal.
    pub(crate) fn take(&mut self, entry: Entry, lease_duration: Duration) {
        if entry.is_lease {
            self.holder = Some(entry);
            return;
        }
        if entry.is_election {
            return;
        }
        let is_in_term = self.holder.as_ref().is_some_and(|holder| {
            let since = entry.at.duration_since(holder.at);
            holder.user == entry.user && since.unsigned_abs() < lease_duration
        });
        if !is_in_term {
            let (Entry { user, what, at, .. }, holder) = (&entry, &self.holder);
            let holder = holder.as_ref().map(|holder| (&holder.user, holder.at));
            let text =
                format!("{at} {user}: {what}, while the lease was last written by {holder:?}");
            self.violations.push(text);
        }
        self.writes.push(entry);
    }

    /// Last writer of the lease.
    pub(crate) fn holder(&self) -> Option<&str> {
        self.holder.as_ref().map(|entry| entry.user.as_str())
    }

    /// Writes unrelated to the election.
    pub(crate) fn writes(&self) -> &[Entry] {
        &self.writes
    }

    /// Writes outside of their writer's term.
    pub(crate) fn violations(&self) -> &[String] {
        &self.violations
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn line(second: u32, user: &str, resource: &str, client: &str) -> String {
        json!({
            "verb": "update", "user": {"username": user}, "userAgent": format!("x/1 {client}"),
            "objectRef": {"resource": resource, "name": "n"}, "responseStatus": {"code": 200},
            "requestReceivedTimestamp": format!("2026-01-01T00:00:{second:02}.000000Z"),
        })
        .to_string()
    }

    fn violations(lines: &[String]) -> Vec<String> {
        let mut audit = Audit::default();
        for line in lines {
            audit.take(Entry::parse(line).unwrap(), Duration::from_secs(3));
        }
        let users = audit.violations.iter();
        users.map(|text| text[21..].to_owned()).collect()
    }

    #[test]
    fn writes_outside_a_term_are_violations() {
        let lease = |second, user| line(second, user, "leases", "leader-election");
        let write = |second, user| line(second, user, "pods", "controller");
        let event = |second, user| line(second, user, "events", "leader-election");
        let orderly = [
            lease(0, "a"),
            write(2, "a"),
            lease(2, "a"),
            write(4, "a"),
            event(4, "b"),
            lease(6, "b"),
            write(6, "b"),
        ];
        assert_eq!(violations(&orderly), [""; 0]);
        assert_eq!(violations(&[write(0, "a")]).len(), 1);
        assert_eq!(violations(&[lease(0, "a"), write(0, "b")]).len(), 1);
        assert_eq!(
            violations(&[lease(0, "a"), lease(3, "b"), write(3, "a")]).len(),
            1
        );
        assert_eq!(violations(&[lease(0, "a"), write(3, "a")]).len(), 1);
    }

    #[test]
    fn reads_and_failures_are_not_writes() {
        let read = line(0, "a", "pods", "c").replace("update", "list");
        let failure = line(0, "a", "pods", "c").replace("200", "409");
        assert!(Entry::parse(&read).is_none() && Entry::parse(&failure).is_none());
        assert!(Entry::parse("ready https://127.0.0.1:1").is_none());
    }
}
