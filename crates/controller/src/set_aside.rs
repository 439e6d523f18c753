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
    let name = key.name();
    let cached = caches.sets.get(key.namespace(), name);
    let set = Owner {
        name,
        uid: cached.as_ref().map(|set| set.uid()),
    };
    // The last decodable states may have had other owners.
    let was_pod = |object: &SetAside| {
        let pod = caches.pods.get(&object.namespace, &object.name);
        set.controls(pod.as_ref().and_then(|pod| pod.controller.as_deref()))
    };
    let was_revision = |object: &SetAside| {
        let revision = caches.revisions.get(&object.namespace, &object.name);
        let controller = revision.as_ref().map(|it| it.controller.as_ref());
        set.controls(controller.flatten())
    };
    check(&caches.sets, TrackedResource::StatefulSets, key, |object| {
        object.name == name
    })?;
    check(&caches.pods, TrackedResource::Pods, key, |object| {
        let is_own = set.controls_undecodable(object);
        is_own.unwrap_or_else(|| is_named(&object.name, name)) || was_pod(object)
    })?;
    check(
        &caches.claims,
        TrackedResource::PersistentVolumeClaims,
        key,
        |object| {
            let is_owner = object.owners.iter().any(|owner| set.may_be(owner));
            is_owner || is_claim_named(&object.name, name, cached.as_deref())
        },
    )?;
    check(
        &caches.revisions,
        TrackedResource::ControllerRevisions,
        key,
        |object| {
            let is_own = set.controls_undecodable(object);
            let is_named = || is_revision_named(&object.name, name);
            is_own.unwrap_or_else(is_named) || was_revision(object)
        },
    )
}

/// A set as the owner of objects.
struct Owner<'a> {
    name: &'a str,
    /// `None` if the set isn't cached: then its name decides.
    uid: Option<&'a str>,
}

impl Owner<'_> {
    /// True if this controller of a decoded object is the set.
    fn controls(&self, controller: Option<&OwnerReference>) -> bool {
        controller.is_some_and(|controller| {
            *controller.kind == *KIND
                && *controller.name == *self.name
                && self.uid.is_none_or(|uid| *controller.uid == *uid)
        })
    }

    /// True if this owner of an undecodable object is the set, as far as it can be read.
    fn may_be(&self, owner: &SetAsideOwner) -> bool {
        let is_uid = |uid: &str| owner.uid.is_empty() || owner.uid == uid;
        owner.name == self.name
            && (owner.kind == KIND || owner.kind.is_empty())
            && self.uid.is_none_or(is_uid)
    }

    /// True if the set controls or owns the object; `None` if that can't be read, or nothing controls
    /// the object, which the set may then adopt.
    fn controls_undecodable(&self, object: &SetAside) -> Option<bool> {
        let mut owners = object.owners.iter();
        if owners.clone().any(|owner| self.may_be(owner)) {
            return Some(true);
        }
        let is_other = |owner: &SetAsideOwner| owner.is_controller && !owner.kind.is_empty();
        owners.any(is_other).then_some(false)
    }
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
            source: object.error.clone(),
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

    use statefulset_client::cache::indexer::Undecodable;
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
                uid: format!("{owner}-uid"),
                is_controller: false,
            }],
            error: undecodable(),
        }
    }

    /// The error of a string where a number must be.
    fn undecodable() -> Undecodable {
        Undecodable::new(&serde_json::from_str::<u8>(r#""odd""#).unwrap_err())
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
    fn undecodable_pods_of_other_controllers_block_nothing() {
        let of = |kind: &str, uid: &str| SetAsideOwner {
            kind: kind.to_owned(),
            name: "web".to_owned(),
            uid: uid.to_owned(),
            is_controller: true,
        };
        let is_held_back = |owner: SetAsideOwner| {
            held_back(|caches| {
                let owners = vec![owner.clone()];
                caches.pods.set_aside(SetAside {
                    owners: owners.clone(),
                    ..object("web-0", "")
                });
                caches.revisions.set_aside(SetAside {
                    owners,
                    ..object("web-6866c68977", "")
                });
            })
        };
        assert!(!is_held_back(of("ReplicaSet", "other-uid")));
        assert!(!is_held_back(of(KIND, "former-uid")));
        for own in [of(KIND, "web-uid"), of(KIND, ""), of("", "web-uid")] {
            assert!(is_held_back(own));
        }
    }

    #[test]
    fn pods_that_another_controller_had_block_nothing() {
        let caches = caches();
        for (kind, uid) in [("ReplicaSet", "web-uid"), (KIND, "former-uid")] {
            let set = builders::set("web").build();
            let pod = builders::pod(&set, 0).with("metadata.name", "web-x");
            let pod = pod.with("metadata.ownerReferences.0.kind", kind);
            caches
                .pods
                .add(pod.with("metadata.ownerReferences.0.uid", uid).build());
            caches.pods.set_aside(object("web-x", ""));
            assert!(ensure_decoded(&caches, &ObjectKey::new("ns", "web")).is_ok());
        }
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
    fn error_names_object_and_source() {
        let caches = caches();
        caches.pods.set_aside(object("web-0", ""));
        let error = ensure_decoded(&caches, &ObjectKey::new("ns", "web")).unwrap_err();
        assert_eq!(
            error.to_string(),
            "pods ns/web-0 cannot be decoded: invalid type: string \"odd\", expected u8 at line 1 \
             column 5; not syncing the set until it can be decoded or is deleted"
        );
        let source = std::error::Error::source(&error).expect("the decoding error is kept");
        assert_eq!(source.to_string(), undecodable().to_string());
    }
}
