//! The sizes that a user asks for.

use std::collections::BTreeMap;
use std::fmt;

use anyhow::{Context as _, ensure};
use kube_apimachinery::quantity::Quantity;
use serde_json::Value;
use statefulset_controller::opt_ins::Carrier;

use crate::opt_ins::carried;

/// Sizes by claim template.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Sizes(BTreeMap<String, Quantity>);

impl Sizes {
    /// Returns the sizes of these arguments, with those that the set asks for already.
    ///
    /// # Errors
    ///
    /// An argument isn't `TEMPLATE=SIZE`, the set has no such template, or the template's size is larger.
    pub(super) fn of(set: &Value, arguments: &[String]) -> anyhow::Result<Self> {
        let earlier = carried(set, Carrier::ClaimSize).filter(|it| *it != "none");
        let mut sizes = BTreeMap::new();
        for entry in earlier.into_iter().flat_map(|it| it.split(',')) {
            let (template, size) = entry_of(set, entry.trim()).with_context(|| {
                let annotation = Carrier::ClaimSize.annotation();
                format!("read the annotation {annotation}, which the set already has")
            })?;
            sizes.insert(template, size);
        }
        for argument in arguments {
            let (template, size) = entry_of(set, argument)?;
            let stored = template_size(set, &template);
            if let Some(stored) = stored.filter(|stored| *stored > size) {
                let name = crate::cluster::name(set);
                anyhow::bail!(
                    "the claim template {template} of StatefulSet {name} has {stored}, more than \
                     {size}, and claims never shrink"
                );
            }
            sizes.insert(template, size);
        }
        Ok(Self(sizes))
    }

    /// Returns the templates with their sizes.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&String, &Quantity)> {
        self.0.iter()
    }
}

/// Formats as the annotation's value.
impl fmt::Display for Sizes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let entries = self
            .iter()
            .map(|(template, size)| format!("{template}={size}"));
        f.write_str(&entries.collect::<Vec<_>>().join(","))
    }
}

fn entry_of(set: &Value, entry: &str) -> anyhow::Result<(String, Quantity)> {
    let expected = || format!("{entry:?}: expected TEMPLATE=SIZE, such as data=20Gi");
    let (template, size) = entry.split_once('=').with_context(expected)?;
    let size: Quantity = size.parse().ok().with_context(expected)?;
    ensure!(
        size.value() > 0,
        "{entry:?}: expected a size of more than 0"
    );
    let names: Vec<String> = templates(set).map(crate::cluster::name).collect();
    ensure!(
        names.iter().any(|name| name == template),
        "StatefulSet {} has no claim template {template}; it has {}",
        crate::cluster::name(set),
        if names.is_empty() {
            "none".to_owned()
        } else {
            names.join(", ")
        }
    );
    Ok((template.to_owned(), size))
}

fn templates(set: &Value) -> impl Iterator<Item = &Value> {
    let templates = set.pointer("/spec/volumeClaimTemplates");
    templates.and_then(Value::as_array).into_iter().flatten()
}

fn template_size(set: &Value, template: &str) -> Option<Quantity> {
    let found = templates(set).find(|it| crate::cluster::name(it) == template)?;
    let size = found.pointer("/spec/resources/requests/storage")?;
    size.as_str()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(earlier: Option<&str>, arguments: &[&str]) -> Result<String, String> {
        let template = |name: &str| {
            let requests = json!({"storage": "1Gi"});
            json!({"metadata": {"name": name}, "spec": {"resources": {"requests": requests}}})
        };
        let set = json!({
            "metadata": {
                "name": "web",
                "annotations": {Carrier::ClaimSize.annotation(): earlier},
            },
            "spec": {"volumeClaimTemplates": [template("data"), template("wal")]},
        });
        let arguments: Vec<String> = arguments.iter().map(|it| (*it).to_owned()).collect();
        let sizes = Sizes::of(&set, &arguments);
        sizes
            .map(|it| it.to_string())
            .map_err(|it| format!("{it:#}"))
    }

    #[test]
    fn sizes_join_those_of_the_set() {
        let text = |text: &str| Ok(text.to_owned());
        assert_eq!(read(None, &["data=20Gi"]), text("data=20Gi"));
        let both = ["wal=5Gi", "data=30Gi"];
        assert_eq!(read(Some("data=20Gi"), &both), text("data=30Gi,wal=5Gi"));
        let one = ["wal=5Gi"];
        assert_eq!(read(Some("data=20Gi"), &one), text("data=20Gi,wal=5Gi"));
        assert_eq!(read(Some("none"), &one), text("wal=5Gi"));
    }

    #[test]
    fn unusable_sizes_are_refused() {
        for (earlier, argument, expected) in [
            (
                None,
                "data",
                "\"data\": expected TEMPLATE=SIZE, such as data=20Gi",
            ),
            (
                None,
                "data=big",
                "\"data=big\": expected TEMPLATE=SIZE, such as data=20Gi",
            ),
            (None, "data=0", "\"data=0\": expected a size of more than 0"),
            (
                None,
                "logs=1Gi",
                "StatefulSet web has no claim template logs; it has data, wal",
            ),
            (
                None,
                "data=1Mi",
                "the claim template data of StatefulSet web has 1Gi, more than 1Mi, and claims \
                 never shrink",
            ),
            (
                Some("data"),
                "wal=5Gi",
                "read the annotation statefulset-controller-manager/claim-size, which the set \
                 already has: \"data\": expected TEMPLATE=SIZE, such as data=20Gi",
            ),
        ] {
            assert_eq!(read(earlier, &[argument]), Err(expected.to_owned()));
        }
    }
}
