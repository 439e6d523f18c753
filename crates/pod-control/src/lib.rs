//! Claims, then pods: creation, identity and storage matching, retention policy, events.
