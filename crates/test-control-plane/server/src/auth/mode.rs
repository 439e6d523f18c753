//! Authorization modes, as in `--authorization-mode`.

use std::fmt;
use std::str::FromStr;

/// An authorization mode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum AuthorizationMode {
    /// Allows every authenticated request; clients without credentials get 401.
    AlwaysAllow,
    /// Denies everything except to members of `system:masters`.
    AlwaysDeny,
    /// Allows kubelets the requests that kubelets need. The object's relation to the kubelet's node
    /// is not checked.
    Node,
    /// Decides by the stored roles and bindings.
    Rbac,
}

/// Authorization modes in the order of evaluation; the first mode that allows a request decides.
///
/// In every mode, members of the group `system:masters` may do everything: the clients in this
/// process, the actors and the administrator's kubeconfig.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Authorization(Vec<AuthorizationMode>);

/// An invalid list of modes.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AuthorizationError {
    /// The list is empty.
    #[error("at least one authorization-mode must be passed")]
    Empty,
    /// The mode needs an external service.
    #[error("authorization-mode {0:?} is not supported; must be one of {KNOWN}")]
    NotSupported(String),
    /// The mode is unknown.
    #[error("authorization-mode {0:?} is not a valid mode; must be one of {KNOWN}")]
    Unknown(String),
    /// The list has the mode twice.
    #[error("authorization-mode \"{0}\" has mode specified more than once")]
    Repeated(AuthorizationMode),
}

const KNOWN: &str = "AlwaysAllow, AlwaysDeny, Node, RBAC";

impl Authorization {
    /// Decides by roles and bindings, as in most clusters.
    pub fn rbac() -> Self {
        Self(vec![AuthorizationMode::Rbac])
    }

    /// Allows every authenticated request.
    pub fn always_allow() -> Self {
        Self(vec![AuthorizationMode::AlwaysAllow])
    }

    /// Returns the modes in the order of evaluation.
    pub fn modes(&self) -> &[AuthorizationMode] {
        &self.0
    }

    /// Reports whether the list has a mode.
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

    /// Parses a list such as `Node,RBAC`.
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
    fn mode_list_keeps_its_order() {
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
    fn invalid_mode_lists_are_rejected() {
        for (list, message) in [
            ("", "at least one authorization-mode must be passed"),
            (
                "RBAC,Webhook",
                "authorization-mode \"Webhook\" is not supported",
            ),
            ("ABAC", "authorization-mode \"ABAC\" is not supported"),
            ("rbac", "authorization-mode \"rbac\" is not a valid mode"),
            (
                "RBAC,RBAC",
                "authorization-mode \"RBAC\" has mode specified more than once",
            ),
        ] {
            let error = list.parse::<Authorization>().unwrap_err().to_string();
            assert!(error.starts_with(message), "{error}");
            assert_eq!(error.lines().count(), 1);
        }
    }
}
