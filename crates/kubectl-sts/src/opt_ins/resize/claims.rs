//! The claims of a set and what becomes of them.

use std::collections::BTreeMap;

use anyhow::Context as _;
use serde::Serialize;
use serde_json::Value;
use statefulset_client::cache::indexer::CachedObject as _;
use statefulset_controller::opt_ins::ClaimState;
use statefulset_controller_util::claim::Claim;

use super::sizes::Sizes;
use crate::cluster::{Cluster, name, text};

/// A claim and what becomes of it.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Planned {
    /// Its name.
    pub(super) claim: String,
    /// The requested size.
    pub(super) request: String,
    /// The size of its volume; empty without one.
    pub(super) capacity: String,
    /// The size that the set asks for.
    pub(super) wanted: String,
    /// Its storage class.
    pub(super) class: String,
    /// True if the class allows expansion; unknown without the permission to read it.
    pub(super) class_allows: Option<bool>,
    /// The reason of its state.
    pub(super) state: &'static str,
    #[serde(skip)]
    kind: ClaimState,
}

impl Planned {
    /// The state in words.
    pub(super) fn note(&self) -> String {
        match self.kind {
            ClaimState::Queued if self.class_allows == Some(false) => {
                ClaimState::ClassForbids.description().to_owned()
            }
            ClaimState::Queued => "it is to grow".to_owned(),
            state => state.description().to_owned(),
        }
    }
}

/// Returns the existing claims with a desired size, from the largest ordinal down. `restarts` is true if the
/// set asks, or is about to ask, for restarts of pods whose volumes need that.
///
/// # Errors
///
/// The claims can't be read.
pub(super) async fn planned(
    cluster: &Cluster,
    namespace: &str,
    (set, restarts): (&Value, bool),
    sizes: &Sizes,
) -> anyhow::Result<Vec<Planned>> {
    let path = format!("/api/v1/namespaces/{namespace}/persistentvolumeclaims");
    let claims = cluster.list(&path).await?;
    let claims: BTreeMap<String, Value> = claims.into_iter().map(|it| (name(&it), it)).collect();
    let number = |pointer: &str| set.pointer(pointer).and_then(Value::as_i64);
    let start = number("/spec/ordinals/start").unwrap_or(0);
    let replicas = number("/spec/replicas").unwrap_or(1);
    let strategy = text(set, "/spec/updateStrategy/type");
    let restarts = restarts && !["OnDelete", "Recreate"].contains(&strategy.as_str());
    let mut classes: BTreeMap<String, Option<bool>> = BTreeMap::new();
    let mut planned = Vec::new();
    for ordinal in (start..start + replicas).rev() {
        for (template, size) in sizes.iter() {
            let claim = format!("{template}-{}-{ordinal}", name(set));
            let Some(found) = claims.get(&claim) else {
                continue;
            };
            let compact = Claim::decode(&found.to_string());
            let compact = compact.with_context(|| format!("decode claim {claim}"))?;
            let state = ClaimState::of(&compact, size.value(), restarts);
            let class = text(found, "/spec/storageClassName");
            if !classes.contains_key(&class) {
                classes.insert(class.clone(), allows_expansion(cluster, &class).await);
            }
            planned.push(Planned {
                claim,
                request: text(found, "/spec/resources/requests/storage"),
                capacity: text(found, "/status/capacity/storage"),
                wanted: size.to_string(),
                class_allows: classes.get(&class).copied().flatten(),
                class,
                state: state.reason(),
                kind: state,
            });
        }
    }
    Ok(planned)
}

/// Returns whether a class allows expansion; `None` if it can't be read.
async fn allows_expansion(cluster: &Cluster, class: &str) -> Option<bool> {
    if class.is_empty() {
        return Some(false);
    }
    let path = format!("/apis/storage.k8s.io/v1/storageclasses/{class}");
    let class = cluster.get(&path).await.ok()?;
    let allows = class.and_then(|class| class.get("allowVolumeExpansion")?.as_bool());
    Some(allows.unwrap_or(false))
}
