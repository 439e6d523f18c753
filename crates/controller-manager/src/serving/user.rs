//! Users of the endpoints.

use std::collections::BTreeMap;

use serde::Serialize;

use super::cache::HeapSize;

/// Group with all permissions.
pub(crate) const MASTERS: &str = "system:masters";
/// Group of all authenticated users.
const AUTHENTICATED: &str = "system:authenticated";
/// Group of all other users.
const UNAUTHENTICATED: &str = "system:unauthenticated";
/// Name of users without credentials.
const ANONYMOUS: &str = "system:anonymous";

/// An identified user.
///
/// Upstream: `user.DefaultInfo`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct User {
    /// User name.
    pub(crate) name: String,
    /// Distinguishes the user from earlier ones of the same name; may be empty.
    pub(crate) uid: String,
    /// Group names.
    pub(crate) groups: Vec<String>,
    /// Extra attributes.
    pub(crate) extra: BTreeMap<String, Vec<String>>,
}

impl HeapSize for Option<User> {
    fn heap_size(&self) -> usize {
        let Some(user) = self else {
            return 0;
        };
        let of = |texts: &[String]| -> usize {
            let each = texts.iter().map(|text| text.len() + size_of::<String>());
            each.sum()
        };
        let extra = user.extra.iter();
        let extra: usize = extra
            .map(|(key, values)| key.len() + 2 * size_of::<String>() + of(values))
            .sum();
        user.name.len() + user.uid.len() + of(&user.groups) + extra
    }
}

impl User {
    /// The user without credentials. Upstream: `anonymous.NewAuthenticator`.
    pub(crate) fn anonymous() -> Self {
        Self {
            name: ANONYMOUS.to_owned(),
            groups: vec![UNAUTHENTICATED.to_owned()],
            ..Self::default()
        }
    }

    /// Adds the group of authenticated users, unless the user is already in it or in the group of
    /// unauthenticated ones.
    ///
    /// Upstream: `AuthenticatedGroupAdder`.
    #[must_use]
    pub(crate) fn authenticated(mut self) -> Self {
        let said = [AUTHENTICATED, UNAUTHENTICATED];
        let known = self.groups.iter().any(|group| said.contains(&&**group));
        if self.name != ANONYMOUS && !known {
            self.groups.push(AUTHENTICATED.to_owned());
        }
        self
    }

    /// Returns true if the user is in a group.
    pub(crate) fn is_in(&self, group: &str) -> bool {
        self.groups.iter().any(|known| known == group)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn authenticated_adds_the_group() {
        let user = |name: &str, groups: &[&str]| User {
            name: name.to_owned(),
            groups: groups.iter().map(|&group| group.to_owned()).collect(),
            ..User::default()
        };
        for (name, groups, expected) in [
            ("jane", &["a"][..], &["a", AUTHENTICATED][..]),
            ("jane", &[AUTHENTICATED, "a"], &[AUTHENTICATED, "a"]),
            ("jane", &[UNAUTHENTICATED], &[UNAUTHENTICATED]),
            (ANONYMOUS, &[], &[]),
        ] {
            assert_eq!(
                user(name, groups).authenticated().groups,
                expected,
                "{name}"
            );
        }
        assert!(User::anonymous().is_in("system:unauthenticated"));
    }
}
