//! Reasons why a set is not complete yet.

use crate::world::{Key, Member, Observed, Set};

/// Returns the reason for waiting, or `None` for a complete set: its status describes the newest
/// spec, every ordinal has a ready pod of the update revision with bound claims, there is no other
/// pod, and the status counters agree.
pub(crate) fn waits_for(key: &Key, world: &Observed) -> Option<String> {
    let Some(set) = world.sets.get(key) else {
        return Some("the set does not exist".to_owned());
    };
    if set.deleting {
        return Some("the set is being deleted".to_owned());
    }
    if set.observed_generation < set.generation {
        return Some(with_warning(
            format!(
                "the controller has not acted on generation {} (status is about {})",
                set.generation, set.observed_generation
            ),
            &[key],
            world,
        ));
    }
    set.ordinals()
        .find_map(|ordinal| ordinal_waits_for(key, set, ordinal, world))
        .or_else(|| surplus(key, set, world))
        .or_else(|| status_lags(set))
}

fn ordinal_waits_for(key: &Key, set: &Set, ordinal: i64, world: &Observed) -> Option<String> {
    let name = format!("{}-{ordinal}", key.name);
    let pod = Key::new(&key.namespace, &name);
    let Some(member) = world.pods.get(&pod) else {
        return Some(with_warning(
            format!("pod {name} does not exist"),
            &[key],
            world,
        ));
    };
    let wait = if member.set_uid == set.uid {
        claims_wait_for(key, set, &name, world).or_else(|| member_waits_for(set, &name, member))
    } else {
        Some(format!("pod {name} is not controlled by the set"))
    };
    wait.map(|wait| with_warning(wait, &[&pod, key], world))
}

fn claims_wait_for(key: &Key, set: &Set, pod: &str, world: &Observed) -> Option<String> {
    set.claim_templates.iter().find_map(|template| {
        let name = format!("{template}-{pod}");
        match world
            .claims
            .get(&Key::new(&key.namespace, &name))
            .map(String::as_str)
        {
            Some("Bound") => None,
            Some(phase) => Some(format!("claim {name} of pod {pod} is {phase}")),
            None => Some(format!("claim {name} of pod {pod} does not exist")),
        }
    })
}

fn member_waits_for(set: &Set, name: &str, member: &Member) -> Option<String> {
    if member.deleting {
        return Some(format!("pod {name} is being deleted"));
    }
    if !member.ready || member.phase != "Running" {
        let reason = if member.not_ready_reason.is_empty() {
            String::new()
        } else {
            format!(" ({})", member.not_ready_reason)
        };
        let phase = if member.phase.is_empty() {
            "not started"
        } else {
            &member.phase
        };
        return Some(format!("pod {name} is not ready: {phase}{reason}"));
    }
    (member.revision != set.update_revision).then(|| {
        format!(
            "pod {name} has revision {}, expected {}",
            member.revision, set.update_revision
        )
    })
}

fn surplus(key: &Key, set: &Set, world: &Observed) -> Option<String> {
    let wanted = set.ordinals();
    world
        .members(key, set)
        .find(|(_, member)| {
            !member
                .ordinal
                .is_some_and(|ordinal| wanted.contains(&ordinal))
        })
        .map(|(pod, _)| format!("surplus pod {} still exists", pod.name))
}

fn status_lags(set: &Set) -> Option<String> {
    let counters = [
        ("replicas", set.current),
        ("readyReplicas", set.ready),
        ("availableReplicas", set.available),
        ("updatedReplicas", set.updated),
    ];
    let lagging = counters
        .into_iter()
        .find(|(_, counter)| *counter != set.replicas);
    if let Some((name, counter)) = lagging {
        return Some(format!("{name} is {counter} of {}", set.replicas));
    }
    (set.current_revision != set.update_revision).then(|| {
        format!(
            "the rollout from {} to {} is not marked complete",
            set.current_revision, set.update_revision
        )
    })
}

/// Adds the last warning about the first of `objects` that has one.
fn with_warning(wait: String, objects: &[&Key], world: &Observed) -> String {
    match objects.iter().find_map(|object| world.warnings.get(object)) {
        Some(warning) => format!("{wait}; last warning: {warning}"),
        None => wait,
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A complete set `n/web` of two pods from ordinal 3, one claim each.
    pub(crate) fn complete() -> Observed {
        let mut world = Observed::default();
        let set = Set {
            uid: "u".to_owned(),
            generation: 2,
            observed_generation: 2,
            start: 3,
            replicas: 2,
            claim_templates: vec!["www".to_owned()],
            current: 2,
            ready: 2,
            available: 2,
            updated: 2,
            current_revision: "web-b".to_owned(),
            update_revision: "web-b".to_owned(),
            ..Set::default()
        };
        world.sets.insert(key(), set);
        for ordinal in [3, 4] {
            let member = Member {
                set_uid: "u".to_owned(),
                ordinal: Some(ordinal),
                revision: "web-b".to_owned(),
                phase: "Running".to_owned(),
                ready: true,
                ..Member::default()
            };
            world
                .pods
                .insert(Key::new("n", &format!("web-{ordinal}")), member);
            world.claims.insert(
                Key::new("n", &format!("www-web-{ordinal}")),
                "Bound".to_owned(),
            );
        }
        world
    }

    pub(crate) fn key() -> Key {
        Key::new("n", "web")
    }

    /// The reason for waiting after one change to the complete world.
    fn after(change: impl FnOnce(&mut Observed)) -> String {
        let mut world = complete();
        change(&mut world);
        waits_for(&key(), &world).expect("the set is not complete")
    }

    fn after_set(change: impl FnOnce(&mut Set)) -> String {
        after(|world| change(world.sets.get_mut(&key()).expect("the set exists")))
    }

    fn after_pod(change: impl FnOnce(&mut Member)) -> String {
        let pod = Key::new("n", "web-4");
        after(|world| change(world.pods.get_mut(&pod).expect("the pod exists")))
    }

    #[test]
    fn complete_sets_wait_for_nothing() {
        assert_eq!(waits_for(&key(), &complete()), None);
        let mut empty = complete();
        empty.pods.clear();
        let set = empty.sets.get_mut(&key()).expect("the set exists");
        (
            set.replicas,
            set.current,
            set.ready,
            set.available,
            set.updated,
        ) = (0, 0, 0, 0, 0);
        assert_eq!(waits_for(&key(), &empty), None);
    }

    #[test]
    fn set_status_may_be_the_reason() {
        assert_eq!(after(|world| world.sets.clear()), "the set does not exist");
        assert_eq!(
            after_set(|set| set.deleting = true),
            "the set is being deleted"
        );
        assert_eq!(
            after_set(|set| set.generation = 3),
            "the controller has not acted on generation 3 (status is about 2)"
        );
        assert_eq!(
            after_set(|set| set.available = 1),
            "availableReplicas is 1 of 2"
        );
        assert_eq!(
            after_set(|set| set.updated = 0),
            "updatedReplicas is 0 of 2"
        );
        assert_eq!(
            after_set(|set| set.replicas = 1),
            "surplus pod web-4 still exists"
        );
        assert_eq!(
            after_set(|set| set.current_revision = "web-a".to_owned()),
            "the rollout from web-a to web-b is not marked complete"
        );
    }

    #[test]
    fn first_missing_or_unready_pod_is_the_reason() {
        assert_eq!(
            after(|world| {
                world.pods.remove(&Key::new("n", "web-4"));
                world
                    .warnings
                    .insert(key(), "FailedCreate: quota".to_owned());
            }),
            "pod web-4 does not exist; last warning: FailedCreate: quota"
        );
        assert_eq!(
            after_pod(|pod| {
                pod.phase = "Pending".to_owned();
                pod.not_ready_reason = "container c: ImagePullBackOff".to_owned();
            }),
            "pod web-4 is not ready: Pending (container c: ImagePullBackOff)"
        );
        assert_eq!(
            after_pod(|pod| pod.ready = false),
            "pod web-4 is not ready: Running"
        );
        assert_eq!(
            after_pod(|pod| pod.deleting = true),
            "pod web-4 is being deleted"
        );
        assert_eq!(
            after_pod(|pod| pod.revision = "web-a".to_owned()),
            "pod web-4 has revision web-a, expected web-b"
        );
        assert_eq!(
            after_pod(|pod| pod.set_uid = "other".to_owned()),
            "pod web-4 is not controlled by the set"
        );
    }

    #[test]
    fn claims_are_reported_before_their_pod() {
        let claim = Key::new("n", "www-web-3");
        assert_eq!(
            after(|world| drop(world.claims.insert(claim.clone(), "Pending".to_owned()))),
            "claim www-web-3 of pod web-3 is Pending"
        );
        assert_eq!(
            after(|world| drop(world.claims.remove(&claim))),
            "claim www-web-3 of pod web-3 does not exist"
        );
    }
}
