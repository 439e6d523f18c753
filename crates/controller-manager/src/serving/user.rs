//! Who asks.

use std::collections::BTreeMap;

use serde::Serialize;

use super::cache::HeapSize;

/// Whoever is in this group may do everything.
pub(crate) const MASTERS: &str = "system:masters";
/// The group of everyone who has shown who they are.
const AUTHENTICATED: &str = "system:authenticated";
/// The group of everyone else.
const UNAUTHENTICATED: &str = "system:unauthenticated";
/// The name of whoever has no credentials.
const ANONYMOUS: &str = "system:anonymous";

/// A user as it is known here.
///
/// Upstream: `user.DefaultInfo`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct User {
    /// The name.
    pub(crate) name: String,
    /// What tells the user from others who had the name before; may be empty.
    pub(crate) uid: String,
    /// The groups.
    pub(crate) groups: Vec<String>,
    /// Anything else.
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
    /// Whoever has no credentials. Upstream: `anonymous.NewAuthenticator`.
    pub(crate) fn anonymous() -> Self {
        Self {
            name: ANONYMOUS.to_owned(),
            groups: vec![UNAUTHENTICATED.to_owned()],
            ..Self::default()
        }
    }

    /// The user in the group of those who have shown who they are, unless it is known to be, or
    /// not to be, one of them.
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

    /// Whether the user is in a group.
    pub(crate) fn is_in(&self, group: &str) -> bool {
        self.groups.iter().any(|known| known == group)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_is_known_is_in_the_group_of_those() {
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
