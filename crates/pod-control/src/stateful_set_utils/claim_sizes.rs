//! Sizes of claims that a set asks for, besides those of its templates.

use std::collections::BTreeMap;

use kube_apimachinery::json::object_member;
use kube_apimachinery::quantity::Quantity;
use serde_json::Value;

/// Sizes of claims that a set asks for, by claim template. Templates without an entry keep their own.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClaimSizes(BTreeMap<Box<str>, Quantity>);

impl ClaimSizes {
    /// Returns the size for the claims of a template.
    pub fn get(&self, template: &str) -> Option<&Quantity> {
        self.0.get(template)
    }

    /// Returns the templates with their sizes.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Quantity)> {
        self.0.iter().map(|(template, size)| (&**template, size))
    }

    /// Returns true if the set asks for no size.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl FromIterator<(Box<str>, Quantity)> for ClaimSizes {
    fn from_iter<I: IntoIterator<Item = (Box<str>, Quantity)>>(sizes: I) -> Self {
        Self(sizes.into_iter().collect())
    }
}

/// Raises the size that a claim requests, in its JSON. Never lowers it.
pub fn raise_request(claim: &mut Value, size: &Quantity) {
    let resources = object_member(object_member(claim, "spec"), "resources");
    let requests = object_member(resources, "requests");
    let stored = requests.get("storage").and_then(Value::as_str);
    let stored = stored.and_then(|stored| stored.parse::<Quantity>().ok());
    if stored.is_none_or(|stored| stored < *size) {
        requests["storage"] = Value::from(size.to_string());
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn request_is_raised_and_never_lowered() {
        for (stored, size, expected) in [
            (json!("1Gi"), "2Gi", "2Gi"),
            (json!("2Gi"), "1Gi", "2Gi"),
            (json!("1024Mi"), "1Gi", "1024Mi"),
            (json!("1Gi"), "2048Mi", "2Gi"),
            (json!(null), "1Gi", "1Gi"),
        ] {
            let requests = json!({"storage": stored, "other": 1});
            let mut claim = json!({"spec": {"resources": {"requests": requests}}, "status": {}});
            raise_request(&mut claim, &size.parse().unwrap());
            let requests = json!({"storage": expected, "other": 1});
            let expected = json!({"spec": {"resources": {"requests": requests}}, "status": {}});
            assert_eq!(claim, expected);
        }
    }
}
