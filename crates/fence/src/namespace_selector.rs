//! The label of the namespaces that this program serves.

use std::fmt;
use std::str::FromStr;

use kube_apimachinery::labels::LabelSet;
use kube_apimachinery::selector::{validate_label_key, validate_label_value};

use crate::names::{LABEL_KEY, LABEL_VALUE, SYSTEM_NAMESPACE};

/// Selects namespaces by one label. Formats as `KEY=VALUE`.
///
/// The mirror policy must state the opposite, so other selectors are not supported.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamespaceSelector {
    key: String,
    value: String,
}

/// The text is not a label.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ParseNamespaceSelectorError {
    /// There is no single `=`.
    #[error("must be one label, KEY=VALUE")]
    NotOneLabel,
    /// The key is invalid.
    #[error("invalid key {key:?}: {reason}")]
    Key {
        /// The key.
        key: String,
        /// The violated rule.
        reason: String,
    },
    /// The value is invalid.
    #[error("invalid value {value:?}: {reason}")]
    Value {
        /// The value.
        value: String,
        /// The violated rule.
        reason: String,
    },
}

impl Default for NamespaceSelector {
    /// The shipped label.
    fn default() -> Self {
        Self {
            key: LABEL_KEY.to_owned(),
            value: LABEL_VALUE.to_owned(),
        }
    }
}

impl NamespaceSelector {
    /// Returns the label's key.
    pub fn key(&self) -> &str {
        &self.key
    }

    /// Returns the label's value.
    pub fn value(&self) -> &str {
        &self.value
    }

    /// Returns true if this program serves a namespace with this name and these labels.
    pub fn matches(&self, namespace: &str, labels: &impl LabelSet) -> bool {
        namespace != SYSTEM_NAMESPACE && labels.label(&self.key) == Some(&self.value)
    }
}

impl FromStr for NamespaceSelector {
    type Err = ParseNamespaceSelectorError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (key, value) = text
            .split_once('=')
            .ok_or(ParseNamespaceSelectorError::NotOneLabel)?;
        // Also the other spelling of equality.
        let value = value.strip_prefix('=').unwrap_or(value);
        if key.is_empty() || value.is_empty() || text.contains([',', ' ', '!']) {
            return Err(ParseNamespaceSelectorError::NotOneLabel);
        }
        let (key, value) = (key.to_owned(), value.to_owned());
        if let Err(reason) = validate_label_key(&key) {
            return Err(ParseNamespaceSelectorError::Key { key, reason });
        }
        if let Err(reason) = validate_label_value(&value) {
            return Err(ParseNamespaceSelectorError::Value { value, reason });
        }
        Ok(Self { key, value })
    }
}

impl fmt::Display for NamespaceSelector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}={}", self.key, self.value)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn labels(key: &str, value: &str) -> BTreeMap<String, String> {
        BTreeMap::from([(key.to_owned(), value.to_owned())])
    }

    #[test]
    fn label_is_parsed_and_printed() {
        for (text, printed) in [
            ("a=b", "a=b"),
            ("a==b", "a=b"),
            ("example.com/team=x.y-z", "example.com/team=x.y-z"),
        ] {
            let selector: NamespaceSelector = text.parse().unwrap();
            assert_eq!(selector.to_string(), printed);
        }
        let shipped = NamespaceSelector::default().to_string();
        assert_eq!(shipped, "statefulset-controller-manager/served=true");
        assert_eq!(shipped.parse(), Ok(NamespaceSelector::default()));
    }

    #[test]
    fn other_selectors_are_rejected() {
        for text in ["", "a", "=b", "a=", "a!=b", "a in (b)", "a=b,c=d", "!a"] {
            let error = text.parse::<NamespaceSelector>().unwrap_err();
            assert_eq!(error, ParseNamespaceSelectorError::NotOneLabel, "{text}");
        }
        let error = "-a=b".parse::<NamespaceSelector>().unwrap_err().to_string();
        assert!(error.starts_with(r#"invalid key "-a": "#), "{error}");
        let error = "a='b'"
            .parse::<NamespaceSelector>()
            .unwrap_err()
            .to_string();
        assert!(error.starts_with(r#"invalid value "'b'": "#), "{error}");
    }

    #[test]
    fn label_decides_except_in_the_system_namespace() {
        let selector: NamespaceSelector = "a=b".parse().unwrap();
        assert!(selector.matches("ns", &labels("a", "b")));
        assert!(!selector.matches("ns", &labels("a", "c")));
        assert!(!selector.matches("ns", &labels("b", "b")));
        assert!(!selector.matches("kube-system", &labels("a", "b")));
    }
}
