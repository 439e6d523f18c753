//! Users: a name, a uid, groups and extra values.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

/// Whoever is in this group may do everything.
pub const MASTERS: &str = "system:masters";

/// The group of everyone who showed who they are.
pub const AUTHENTICATED: &str = "system:authenticated";

/// The group of everyone else.
pub const UNAUTHENTICATED: &str = "system:unauthenticated";

/// The name of a client without credentials.
pub const ANONYMOUS: &str = "system:anonymous";

/// The group of all nodes.
pub const NODES: &str = "system:nodes";

/// The group of all service accounts; those of a namespace have its name behind it.
const SERVICE_ACCOUNTS: &str = "system:serviceaccounts";

const SERVICE_ACCOUNT_PREFIX: &str = "system:serviceaccount:";

const NODE_PREFIX: &str = "system:node:";

/// A user.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Identity {
    /// The user's name.
    pub name: String,
    /// What tells the user from others who had the name before; may be empty.
    pub uid: String,
    /// The user's groups.
    pub groups: Vec<String>,
    /// Anything else that is known of the user, such as the pod that a token was made for.
    pub extra: BTreeMap<String, Vec<String>>,
}

impl Identity {
    /// A user without groups.
    pub fn user(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            ..Self::default()
        }
    }

    /// A service account, with the groups that it is always in.
    pub fn service_account(namespace: &str, name: &str) -> Self {
        Self {
            groups: service_account_groups(namespace),
            ..Self::user(format!("{SERVICE_ACCOUNT_PREFIX}{namespace}:{name}"))
        }
    }

    /// The kubelet of a node.
    pub fn node(name: &str) -> Self {
        Self::user(format!("{NODE_PREFIX}{name}")).group(NODES)
    }

    /// The administrator: this process and the clients that it hands a kubeconfig.
    pub fn admin() -> Self {
        Self::user("kubernetes-admin")
            .group(MASTERS)
            .group(AUTHENTICATED)
    }

    /// A client without credentials.
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

    /// Whether the user is in a group.
    pub fn is_in(&self, group: &str) -> bool {
        self.groups.iter().any(|g| g == group)
    }

    /// The user as a server sees one that has shown credentials: in the group of those.
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

    /// The user as reviews show it.
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

/// The groups that a service account of the namespace is always in.
pub(crate) fn service_account_groups(namespace: &str) -> Vec<String> {
    vec![
        SERVICE_ACCOUNTS.to_owned(),
        format!("{SERVICE_ACCOUNTS}:{namespace}"),
    ]
}

/// The user name of a service account.
pub(crate) fn service_account_user(namespace: &str, name: &str) -> String {
    format!("{SERVICE_ACCOUNT_PREFIX}{namespace}:{name}")
}

/// Namespace and name, if the user name is that of a service account.
pub(crate) fn split_service_account(user: &str) -> Option<(&str, &str)> {
    let (namespace, name) = user.strip_prefix(SERVICE_ACCOUNT_PREFIX)?.split_once(':')?;
    let valid = !namespace.is_empty() && !name.is_empty() && !name.contains(':');
    valid.then_some((namespace, name))
}

/// The node's name, if the user name is that of a node.
pub(crate) fn node_name(user: &str) -> Option<&str> {
    user.strip_prefix(NODE_PREFIX).filter(|n| !n.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_service_account_is_told_by_its_name_and_is_in_its_groups() {
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
    fn only_who_showed_credentials_is_in_the_group_of_those() {
        assert!(Identity::user("a").authenticated().is_in(AUTHENTICATED));
        assert!(!Identity::anonymous().authenticated().is_in(AUTHENTICATED));
        let admin = Identity::admin().authenticated();
        assert_eq!(admin, Identity::admin());
    }

    #[test]
    fn reviews_leave_out_what_is_empty() {
        assert_eq!(Identity::user("a").to_user_info(), json!({"username": "a"}));
        let full = Identity::user("a").uid("1").group("g").extra("k", "v");
        assert_eq!(
            full.to_user_info(),
            json!({"username": "a", "uid": "1", "groups": ["g"], "extra": {"k": ["v"]}})
        );
    }
}
