//! Installation and removal of the policies.

use anyhow::bail;
use serde_json::{Value, json};
use statefulset_fence::{FencePolicies, FenceSettings, PartKind};

use super::probe::{collection, path};
use super::status::{Stored, served_namespaces, stored};
use crate::cli::FenceArguments;
use crate::cluster::{Cluster, name, text};
use crate::report::{Outcome, Report};

/// Creates the policies and bindings, or replaces those that differ.
pub(super) async fn install(
    cluster: &Cluster,
    arguments: &FenceArguments,
    report: &mut Report,
) -> anyhow::Result<()> {
    let (namespace, account) = &arguments.account;
    let settings = FenceSettings::default()
        .selector(arguments.namespace_selector.clone())
        .user(format!("system:serviceaccount:{namespace}:{account}"));
    let policies = FencePolicies::new(&settings)?;
    for object in policies.objects() {
        let name = name(object);
        let part = match text(object, "/kind").as_str() {
            "ValidatingAdmissionPolicy" => PartKind::Policy,
            _ => PartKind::Binding,
        };
        let (kind, path) = (part.as_str(), path(part, &name));
        match cluster.get(&path).await? {
            None => {
                cluster.create(&collection(part), object).await?;
                report.step(Outcome::Done, format!("created {kind} {name}"));
            }
            Some(found) if found.get("spec") == object.get("spec") => {
                report.step(Outcome::Ok, format!("{kind} {name} is as shipped"));
            }
            Some(mut found) => {
                if let Some(found) = found.as_object_mut() {
                    let spec = object.get("spec").cloned().unwrap_or_default();
                    found.insert("spec".to_owned(), spec);
                }
                cluster.replace(&path, &found).await?;
                report.step(Outcome::Done, format!("replaced the spec of {kind} {name}"));
            }
        }
    }
    report.conclude(format!(
        "the fence covers the namespaces with the label {} except kube-system; prove it with: \
         kubectl sts fence prove NAMESPACE",
        settings.selector
    ));
    Ok(())
}

/// Deletes the policies and bindings, unless a namespace is still served.
pub(super) async fn uninstall(cluster: &Cluster, report: &mut Report) -> anyhow::Result<()> {
    let Stored { settings, parts } = stored(cluster).await?;
    let served = served_namespaces(cluster, &settings.unwrap_or_default().selector).await?;
    if let Some(first) = served.first() {
        bail!(
            "without the fence both controllers would act in {}; hand them back first: kubectl sts \
             fence release {first}",
            served.join(", ")
        );
    }
    for (kind, object) in parts {
        let name = name(&object);
        cluster.delete(&path(kind, &name)).await?;
        let kind = kind.as_str();
        report.step(Outcome::Done, format!("deleted {kind} {name}"));
    }
    report.conclude("the fence is gone: the built-in controller serves all namespaces");
    Ok(())
}

/// A patch of a namespace's label; null removes it.
pub(super) fn label_patch(key: &str, value: Option<&str>) -> Value {
    json!({"metadata": {"labels": {key: value}}})
}
