//! Who decides what users may do: the modes of `--authorization-mode`.

use std::fmt;
use std::str::FromStr;

/// One way to decide.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AuthorizationMode {
    /// Everyone with credentials may do everything; clients without any get 401.
    AlwaysAllow,
    /// Nobody but the masters may do anything.
    AlwaysDeny,
    /// Kubelets may do what kubelets need. It isn't checked whether an object has to do with a pod
    /// on the node that asks.
    Node,
    /// Roles and bindings that are stored in the server decide.
    Rbac,
}

/// The modes in the order in which they are asked; the first that allows a request decides.
///
/// In every mode, the members of the group `system:masters` may do everything: the clients of this
/// process, the actors and the administrator's kubeconfig.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Authorization(Vec<AuthorizationMode>);

/// A list of modes that can't be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AuthorizationError {
    /// There is no mode in the list.
    #[error("at least one authorization mode is needed, of {KNOWN}")]
    Empty,
    /// The mode asks something outside of this process.
    #[error("the authorization mode {0} is not supported, known are {KNOWN}")]
    NotSupported(String),
    /// There is no such mode.
    #[error("unknown authorization mode {0:?}, known are {KNOWN}")]
    Unknown(String),
    /// The mode stands in the list twice.
    #[error("the authorization mode {0} is named more than once")]
    Repeated(AuthorizationMode),
}

const KNOWN: &str = "AlwaysAllow, AlwaysDeny, Node and RBAC";

impl Authorization {
    /// Roles and bindings decide, as in most clusters.
    pub fn rbac() -> Self {
        Self(vec![AuthorizationMode::Rbac])
    }

    /// Everyone with credentials may do everything.
    pub fn always_allow() -> Self {
        Self(vec![AuthorizationMode::AlwaysAllow])
    }

    /// The modes, in the order in which they are asked.
    pub fn modes(&self) -> &[AuthorizationMode] {
        &self.0
    }

    /// Whether a mode is in the list.
    pub fn has(&self, mode: AuthorizationMode) -> bool {
        self.0.contains(&mode)
    }
}

impl Default for Authorization {
    fn default() -> Self {
        Self::rbac()
    }
}

impl From<AuthorizationMode> for Authorization {
    fn from(mode: AuthorizationMode) -> Self {
        Self(vec![mode])
    }
}

impl FromStr for Authorization {
    type Err = AuthorizationError;

    /// Reads a list as in `Node,RBAC`.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let mut modes = Vec::new();
        for name in text.split(',').map(str::trim).filter(|n| !n.is_empty()) {
            let mode = name.parse()?;
            if modes.contains(&mode) {
                return Err(AuthorizationError::Repeated(mode));
            }
            modes.push(mode);
        }
        if modes.is_empty() {
            return Err(AuthorizationError::Empty);
        }
        Ok(Self(modes))
    }
}

impl FromStr for AuthorizationMode {
    type Err = AuthorizationError;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        match name {
            "AlwaysAllow" => Ok(Self::AlwaysAllow),
            "AlwaysDeny" => Ok(Self::AlwaysDeny),
            "Node" => Ok(Self::Node),
            "RBAC" => Ok(Self::Rbac),
            "ABAC" | "Webhook" => Err(AuthorizationError::NotSupported(name.to_owned())),
            _ => Err(AuthorizationError::Unknown(name.to_owned())),
        }
    }
}

impl fmt::Display for AuthorizationMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::AlwaysAllow => "AlwaysAllow",
            Self::AlwaysDeny => "AlwaysDeny",
            Self::Node => "Node",
            Self::Rbac => "RBAC",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_read_in_order() {
        let list: Authorization = "Node, RBAC".parse().unwrap();
        assert_eq!(
            list.modes(),
            [AuthorizationMode::Node, AuthorizationMode::Rbac]
        );
        for mode in list.modes() {
            assert_eq!(mode.to_string().parse(), Ok(*mode));
        }
    }

    #[test]
    fn what_cannot_be_used_is_said_in_one_line() {
        for (list, message) in [
            ("", "at least one authorization mode is needed"),
            (
                "RBAC,Webhook",
                "the authorization mode Webhook is not supported",
            ),
            ("ABAC", "the authorization mode ABAC is not supported"),
            ("rbac", "unknown authorization mode \"rbac\""),
            (
                "RBAC,RBAC",
                "the authorization mode RBAC is named more than once",
            ),
        ] {
            let error = list.parse::<Authorization>().unwrap_err().to_string();
            assert!(error.starts_with(message), "{error}");
            assert_eq!(error.lines().count(), 1);
        }
    }
}
