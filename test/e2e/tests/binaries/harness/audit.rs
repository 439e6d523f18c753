//! Who wrote what, and when, as the control plane's audit log tells it.

use std::time::Duration;

use k8s_openapi::jiff::Timestamp;
use serde_json::Value;

/// A write that went well.
#[derive(Debug, Clone)]
pub(crate) struct Entry {
    /// When it came.
    pub(crate) at: Timestamp,
    /// Who sent it.
    pub(crate) user: String,
    /// Whether it was about a lease.
    pub(crate) is_lease: bool,
    /// Whether the client that keeps the lease has sent it: the lease itself, and events about it.
    pub(crate) is_election: bool,
    /// Such as `delete pods web-0`.
    pub(crate) what: String,
}

impl Entry {
    /// Reads a line of the audit log; none if it is no write, or went wrong.
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

/// Watches over the terms of the holders of a lease.
#[derive(Debug, Default)]
pub(crate) struct Audit {
    holder: Option<Entry>,
    writes: Vec<Entry>,
    violations: Vec<String>,
}

impl Audit {
    /// Takes in a write of one of the candidates. What is no business of the election may only be
    /// written in one's own term: after one's own write of the lease, before anybody else's, and
    /// less than the lease's duration after the last of one's own.
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

    /// Who wrote the lease last.
    pub(crate) fn holder(&self) -> Option<&str> {
        self.holder.as_ref().map(|entry| entry.user.as_str())
    }

    /// What was written, but for the sake of the election.
    pub(crate) fn writes(&self) -> &[Entry] {
        &self.writes
    }

    /// What was written by who must not.
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
    fn writes_belong_into_the_terms_of_their_writers() {
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
    fn reads_and_failures_are_no_writes() {
        let read = line(0, "a", "pods", "c").replace("update", "list");
        let failure = line(0, "a", "pods", "c").replace("200", "409");
        assert!(Entry::parse(&read).is_none() && Entry::parse(&failure).is_none());
        assert!(Entry::parse("ready https://127.0.0.1:1").is_none());
    }
}
