//! Sync delays until an undecodable object of the set can be decoded again.

use kube_apimachinery::object_key::ObjectKey;
use kube_apimachinery::owner_reference::OwnerReference;
use statefulset_client::cache::indexer::{CachedObject, Indexer, SetAside, SetAsideOwner};
use statefulset_controller_util::consistency::{Caches, TrackedResource};
use statefulset_controller_util::pod::split_name;
use statefulset_controller_util::stateful_set::{KIND, StatefulSet};

use crate::error::Error;

/// Checks that every object of the set could be decoded: the set itself, and the pods, claims and
/// revisions that it owns or could have named.
///
/// # Errors
///
/// The first undecodable object: its cached state is outdated, so no sync may use it.
pub(crate) fn ensure_decoded(caches: &Caches, key: &ObjectKey) -> Result<(), Error> {
    let set = key.name();
    let cached = caches.sets.get(key.namespace(), set);
    let is_this =
        |owner: &SetAsideOwner| owner.name == set && (owner.kind == KIND || owner.kind.is_empty());
    let is_owner = |object: &SetAside| object.owners.iter().any(is_this);
    let is_set = |controller: Option<&OwnerReference>| {
        controller.is_some_and(|controller| *controller.name == *set)
    };
    // The last decodable states may have had other owners.
    let was_pod = |object: &SetAside| {
        let pod = caches.pods.get(&object.namespace, &object.name);
        is_set(pod.as_ref().and_then(|pod| pod.controller.as_deref()))
    };
    let was_revision = |object: &SetAside| {
        let revision = caches.revisions.get(&object.namespace, &object.name);
        is_set(
            revision
                .as_ref()
                .and_then(|revision| revision.controller.as_ref()),
        )
    };
    check(&caches.sets, TrackedResource::StatefulSets, key, |object| {
        object.name == set
    })?;
    check(&caches.pods, TrackedResource::Pods, key, |object| {
        is_owner(object) || is_named(&object.name, set) || was_pod(object)
    })?;
    check(
        &caches.claims,
        TrackedResource::PersistentVolumeClaims,
        key,
        |object| is_owner(object) || is_claim_named(&object.name, set, cached.as_deref()),
    )?;
    check(
        &caches.revisions,
        TrackedResource::ControllerRevisions,
        key,
        |object| is_owner(object) || is_revision_named(&object.name, set) || was_revision(object),
    )
}

fn check<K: CachedObject>(
    cache: &Indexer<K>,
    resource: TrackedResource,
    key: &ObjectKey,
    concerns: impl Fn(&SetAside) -> bool,
) -> Result<(), Error> {
    let objects = cache.set_aside_in(key.namespace());
    match objects.into_iter().find(|object| concerns(object)) {
        None => Ok(()),
        Some(object) => Err(Error::SetAside {
            resource,
            object: ObjectKey::new(&object.namespace, &object.name),
            reason: object.reason.clone(),
        }),
    }
}

/// True if a pod is named like one of the set's pods.
fn is_named(pod: &str, set: &str) -> bool {
    split_name(pod).is_some_and(|(prefix, _)| prefix == set)
}

/// True if a claim is named like one of the set's claims, with any template name if the set isn't
/// cached. (The claim `data-my-db-0` of the set `my-db` doesn't belong to the set `db`.)
fn is_claim_named(claim: &str, name: &str, set: Option<&StatefulSet>) -> bool {
    let prefix = split_name(claim).and_then(|(prefix, _)| prefix.strip_suffix(name));
    let Some(template) = prefix.and_then(|prefix| prefix.strip_suffix('-')) else {
        return false;
    };
    set.is_none_or(|set| {
        let templates = &set.spec.claim_templates;
        templates.iter().any(|known| *known.name == *template)
    })
}

/// True if a revision is named like one of the set's revisions.
fn is_revision_named(revision: &str, set: &str) -> bool {
    revision
        .rsplit_once('-')
        .is_some_and(|(prefix, _)| prefix == set)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use statefulset_controller_util::testing::builders;

    use super::*;

    fn caches() -> Caches {
        let caches = Caches {
            sets: Arc::default(),
            pods: Arc::default(),
            claims: Arc::default(),
            revisions: Arc::default(),
        };
        let set = builders::set("web").claim_template("data").build();
        caches.pods.add(
            builders::pod(&set, 0)
                .with("metadata.name", "adopted")
                .build(),
        );
        let adopted = builders::revision(&set, "adopted", 1, "{}");
        caches.revisions.add(adopted.build());
        caches.sets.add(set);
        caches
    }

    fn object(name: &str, owner: &str) -> SetAside {
        SetAside {
            namespace: "ns".to_owned(),
            name: name.to_owned(),
            resource_version: String::new(),
            owners: vec![SetAsideOwner {
                kind: KIND.to_owned(),
                name: owner.to_owned(),
            }],
            reason: "it is odd".to_owned(),
        }
    }

    fn held_back(put: impl Fn(&Caches)) -> bool {
        let caches = caches();
        put(&caches);
        ensure_decoded(&caches, &ObjectKey::new("ns", "web")).is_err()
    }

    #[test]
    fn undecodable_objects_of_the_set_block_its_sync() {
        assert!(held_back(|caches| caches.sets.set_aside(object("web", ""))));
        for (name, owner) in [("web-3", ""), ("adopted", ""), ("x", "web")] {
            assert!(held_back(|caches| caches
                .pods
                .set_aside(object(name, owner))));
        }
        for (name, owner) in [("data-web-3", ""), ("x", "web")] {
            assert!(held_back(|caches| caches
                .claims
                .set_aside(object(name, owner))));
        }
        for (name, owner) in [("web-6866c68977", ""), ("adopted", ""), ("x", "web")] {
            assert!(held_back(|caches| caches
                .revisions
                .set_aside(object(name, owner))));
        }
    }

    #[test]
    fn other_undecodable_objects_block_nothing() {
        assert!(!held_back(|caches| {
            caches.sets.set_aside(object("webs", ""));
            caches.pods.set_aside(object("webs-0", "db"));
            caches.pods.set_aside(SetAside {
                namespace: "other".to_owned(),
                ..object("web-0", "web")
            });
            caches.claims.set_aside(object("data-webs-0", ""));
            caches.claims.set_aside(object("data-web", ""));
            caches.claims.set_aside(object("data-my-web-0", ""));
            caches.revisions.set_aside(object("web-x-6866c68977", ""));
            let mut of_another_kind = object("x", "web");
            of_another_kind.owners[0].kind = "DaemonSet".to_owned();
            caches.revisions.set_aside(of_another_kind);
        }));
    }

    #[test]
    fn any_claim_template_matches_an_uncached_set() {
        let caches = Caches {
            sets: Arc::default(),
            ..caches()
        };
        caches.claims.set_aside(object("logs-web-0", ""));
        assert!(ensure_decoded(&caches, &ObjectKey::new("ns", "web")).is_err());
    }

    #[test]
    fn error_names_object_and_reason() {
        let caches = caches();
        caches.pods.set_aside(object("web-0", ""));
        let error = ensure_decoded(&caches, &ObjectKey::new("ns", "web")).unwrap_err();
        assert_eq!(
            error.to_string(),
            "pods ns/web-0 cannot be decoded: it is odd; not syncing the set until it can be decoded or is deleted"
        );
    }
}
