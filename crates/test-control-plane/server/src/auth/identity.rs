//! Users: a name, a uid, groups and extra values.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

/// Members of this group may do everything.
pub const MASTERS: &str = "system:masters";

/// The group of all authenticated users.
pub const AUTHENTICATED: &str = "system:authenticated";

/// The group of all unauthenticated users.
pub const UNAUTHENTICATED: &str = "system:unauthenticated";

/// The user name of clients without credentials.
pub const ANONYMOUS: &str = "system:anonymous";

/// The group of all nodes.
pub const NODES: &str = "system:nodes";

/// The group of all service accounts; a namespace's group has the namespace as a suffix.
const SERVICE_ACCOUNTS: &str = "system:serviceaccounts";

const SERVICE_ACCOUNT_PREFIX: &str = "system:serviceaccount:";

const NODE_PREFIX: &str = "system:node:";

/// A user.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Identity {
    /// The user's name.
    pub name: String,
    /// Distinguishes the user from earlier users with the same name; may be empty.
    pub uid: String,
    /// The user's groups.
    pub groups: Vec<String>,
    /// Extra values, such as the pod to which a token is bound.
    pub extra: BTreeMap<String, Vec<String>>,
}

impl Identity {
    /// Creates a user without groups.
    pub fn user(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            ..Self::default()
        }
    }

    /// Creates a service account with its implicit groups.
    pub fn service_account(namespace: &str, name: &str) -> Self {
        Self {
            groups: service_account_groups(namespace),
            ..Self::user(format!("{SERVICE_ACCOUNT_PREFIX}{namespace}:{name}"))
        }
    }

    /// Creates a node's kubelet.
    pub fn node(name: &str) -> Self {
        Self::user(format!("{NODE_PREFIX}{name}")).group(NODES)
    }

    /// Creates the administrator, used by this process and its kubeconfig files.
    pub fn admin() -> Self {
        Self::user("kubernetes-admin")
            .group(MASTERS)
            .group(AUTHENTICATED)
    }

    /// Creates a client without credentials.
    pub fn anonymous() -> Self {
        Self::user(ANONYMOUS).group(UNAUTHENTICATED)
    }

    /// Adds a group.
    #[must_use]
    pub fn group(mut self, group: impl Into<String>) -> Self {
        self.groups.push(group.into());
        self
    }

    /// Sets the uid.
    #[must_use]
    pub fn uid(mut self, uid: impl Into<String>) -> Self {
        self.uid = uid.into();
        self
    }

    /// Adds an extra value.
    #[must_use]
    pub fn extra(mut self, key: impl Into<String>, value: impl Into<String>) -> Self {
        let values = self.extra.entry(key.into()).or_default();
        values.push(value.into());
        self
    }

    /// Reports whether the user is in a group.
    pub fn is_in(&self, group: &str) -> bool {
        self.groups.iter().any(|g| g == group)
    }

    /// Adds the group of authenticated users.
    #[must_use]
    pub(crate) fn authenticated(mut self) -> Self {
        if self.name == ANONYMOUS {
            self.ensure_group(UNAUTHENTICATED);
        } else if !self.is_in(UNAUTHENTICATED) {
            self.ensure_group(AUTHENTICATED);
        }
        self
    }

    pub(crate) fn ensure_group(&mut self, group: &str) {
        if !self.is_in(group) {
            self.groups.push(group.to_owned());
        }
    }

    /// Returns the user's form in reviews.
    pub(crate) fn to_user_info(&self) -> Value {
        let mut info = Map::new();
        if !self.name.is_empty() {
            info.insert("username".to_owned(), json!(self.name));
        }
        if !self.uid.is_empty() {
            info.insert("uid".to_owned(), json!(self.uid));
        }
        if !self.groups.is_empty() {
            info.insert("groups".to_owned(), json!(self.groups));
        }
        if !self.extra.is_empty() {
            info.insert("extra".to_owned(), json!(self.extra));
        }
        Value::Object(info)
    }
}

/// Returns the implicit groups of a namespace's service accounts.
pub(crate) fn service_account_groups(namespace: &str) -> Vec<String> {
    vec![
        SERVICE_ACCOUNTS.to_owned(),
        format!("{SERVICE_ACCOUNTS}:{namespace}"),
    ]
}

/// Returns the user name of a service account.
pub(crate) fn service_account_user(namespace: &str, name: &str) -> String {
    format!("{SERVICE_ACCOUNT_PREFIX}{namespace}:{name}")
}

/// Returns namespace and name from the user name of a service account.
pub(crate) fn split_service_account(user: &str) -> Option<(&str, &str)> {
    let (namespace, name) = user.strip_prefix(SERVICE_ACCOUNT_PREFIX)?.split_once(':')?;
    let valid = !namespace.is_empty() && !name.is_empty() && !name.contains(':');
    valid.then_some((namespace, name))
}

/// Returns the node's name from the user name of a node.
pub(crate) fn node_name(user: &str) -> Option<&str> {
    user.strip_prefix(NODE_PREFIX).filter(|n| !n.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn service_account_has_a_user_name_and_groups() {
        let account = Identity::service_account("kube-system", "gc");
        assert_eq!(
            split_service_account(&account.name),
            Some(("kube-system", "gc"))
        );
        assert_eq!(
            account.authenticated().groups,
            [
                "system:serviceaccounts",
                "system:serviceaccounts:kube-system",
                "system:authenticated"
            ]
        );
        for other in [
            "system:serviceaccount:a",
            "system:serviceaccount:a:b:c",
            "a:b",
        ] {
            assert_eq!(split_service_account(other), None, "{other}");
        }
    }

    #[test]
    fn only_users_with_credentials_are_authenticated() {
        assert!(Identity::user("a").authenticated().is_in(AUTHENTICATED));
        assert!(!Identity::anonymous().authenticated().is_in(AUTHENTICATED));
        let admin = Identity::admin().authenticated();
        assert_eq!(admin, Identity::admin());
    }

    #[test]
    fn user_info_omits_empty_members() {
        assert_eq!(Identity::user("a").to_user_info(), json!({"username": "a"}));
        let full = Identity::user("a").uid("1").group("g").extra("k", "v");
        assert_eq!(
            full.to_user_info(),
            json!({"username": "a", "uid": "1", "groups": ["g"], "extra": {"k": ["v"]}})
        );
    }
}
