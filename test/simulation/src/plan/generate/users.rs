//! Actions of users, and faults of pods and nodes.

use rand::RngExt as _;
use rand::rngs::StdRng;
use rand::seq::IndexedRandom as _;
use serde_json::json;

use super::environment::{max_unavailable, retention, set};
use crate::plan::action::Actions;
use crate::plan::{Action, Cascade, Millis, PodEnd, RestoredOwner, SetSpec, UpdateMode};

/// A kind of action on a set.
type Kind = fn(&SetSpec, &mut StdRng) -> Actions;

/// All kinds. A kind listed twice is twice as likely.
pub(super) const KINDS: [Kind; 28] = [
    scale,
    scale,
    scale_back_and_forth,
    image,
    image,
    image_back_and_forth,
    partition,
    budget,
    keep_claims,
    recreate,
    recreate_with_another_spec,
    orphan_and_delete_a_pod,
    delete_pod,
    relabel,
    delete_claim,
    decoy,
    take_claim,
    end_pod,
    flap,
    min_ready_seconds,
    history_limit,
    update_mode,
    first_ordinal,
    hold_pod,
    hold_claim,
    lose_node,
    strip_pod,
    share_claim,
];

/// Images; the last ones never become ready while faults last.
const IMAGES: [&str; 5] = ["a", "b", "c", "d", "bad"];

fn one(action: Action) -> Actions {
    vec![(0, action)]
}

fn pod(spec: &SetSpec, random: &mut StdRng) -> String {
    format!("{}-{}", spec.name, spec.start + random.random_range(0..5))
}

fn claim(spec: &SetSpec, random: &mut StdRng) -> String {
    format!("data0-{}", pod(spec, random))
}

fn scale_to(spec: &SetSpec, replicas: u32) -> Action {
    Action::Scale {
        set: spec.name.clone(),
        replicas,
    }
}

fn scale(spec: &SetSpec, random: &mut StdRng) -> Actions {
    one(scale_to(spec, random.random_range(0..=6)))
}

fn scale_back_and_forth(spec: &SetSpec, random: &mut StdRng) -> Actions {
    let few = random.random_range(0..=2);
    let first = random.random_range(10..5_000);
    vec![
        (0, scale_to(spec, few)),
        (first, scale_to(spec, few + 3)),
        (first * 2, scale_to(spec, few + random.random_range(0..=2))),
    ]
}

fn image_of(spec: &SetSpec, image: &str) -> Action {
    Action::Image {
        set: spec.name.clone(),
        image: image.to_owned(),
    }
}

fn image(spec: &SetSpec, random: &mut StdRng) -> Actions {
    one(image_of(spec, IMAGES.choose(random).unwrap_or(&"a")))
}

fn image_back_and_forth(spec: &SetSpec, random: &mut StdRng) -> Actions {
    let pause = random.random_range(10..10_000);
    let images = ["b", "a", "b", "c"];
    let steps = (0..).map(|nth| nth * pause).zip(images);
    steps
        .map(|(at, image)| (at, image_of(spec, image)))
        .collect()
}

fn partition(spec: &SetSpec, random: &mut StdRng) -> Actions {
    one(Action::Partition {
        set: spec.name.clone(),
        partition: random.random_range(0..=5),
    })
}

fn budget(spec: &SetSpec, random: &mut StdRng) -> Actions {
    one(Action::MaxUnavailable {
        set: spec.name.clone(),
        max: max_unavailable(random),
    })
}

fn keep_claims(spec: &SetSpec, random: &mut StdRng) -> Actions {
    one(Action::Retention {
        set: spec.name.clone(),
        retention: retention(random),
    })
}

fn delete(spec: &SetSpec, random: &mut StdRng) -> Action {
    let cascades = [Cascade::Background, Cascade::Foreground, Cascade::Orphan];
    Action::Delete {
        set: spec.name.clone(),
        cascade: *cascades.choose(random).unwrap_or(&Cascade::Background),
    }
}

fn recreate(spec: &SetSpec, random: &mut StdRng) -> Actions {
    let again = random.random_range(0..60_000);
    vec![
        (0, delete(spec, random)),
        (again, Action::Create(spec.clone())),
    ]
}

fn recreate_with_another_spec(spec: &SetSpec, random: &mut StdRng) -> Actions {
    let again = random.random_range(0..60_000);
    let mut other = set(&spec.name, random);
    (*IMAGES.choose(random).unwrap_or(&"a")).clone_into(&mut other.image);
    // A pod keeps its volumes, so a further claim template would never fit the adopted pods.
    other.claims = spec.claims;
    vec![(0, delete(spec, random)), (again, Action::Create(other))]
}

fn orphan_and_delete_a_pod(spec: &SetSpec, random: &mut StdRng) -> Actions {
    let set = spec.name.clone();
    let again = random.random_range(1_000..20_000);
    vec![
        (
            0,
            Action::Delete {
                set,
                cascade: Cascade::Orphan,
            },
        ),
        (
            again - random.random_range(1..1_000),
            Action::DeletePod {
                pod: pod(spec, random),
                force: false,
            },
        ),
        (again, Action::Create(spec.clone())),
    ]
}

fn delete_pod(spec: &SetSpec, random: &mut StdRng) -> Actions {
    one(Action::DeletePod {
        pod: pod(spec, random),
        force: random.random_bool(0.3),
    })
}

fn relabel(spec: &SetSpec, random: &mut StdRng) -> Actions {
    let pod = pod(spec, random);
    let relabel = |matches| Action::Relabel {
        pod: pod.clone(),
        matches,
    };
    let later = random.random_range(1_000..120_000);
    vec![(0, relabel(false)), (later, relabel(true))]
}

fn delete_claim(spec: &SetSpec, random: &mut StdRng) -> Actions {
    one(Action::DeleteClaim {
        claim: claim(spec, random),
    })
}

fn decoy(spec: &SetSpec, random: &mut StdRng) -> Actions {
    // The set adopts the last one, and deletes it. It would never get along with one that it wants,
    // whose volumes can't be changed.
    let names = ["-01", "--1", "-99999999999", "-1-debug", "-x", "-99"];
    let name = names.choose(random).unwrap_or(&"-x");
    one(Action::Decoy {
        pod: format!("{}{name}", spec.name),
        set: spec.name.clone(),
    })
}

fn take_claim(spec: &SetSpec, random: &mut StdRng) -> Actions {
    one(Action::TakeClaim {
        claim: claim(spec, random),
    })
}

fn end_pod(spec: &SetSpec, random: &mut StdRng) -> Actions {
    let ends = [PodEnd::Fails, PodEnd::Succeeds, PodEnd::Evicted];
    one(Action::End {
        pod: pod(spec, random),
        how: *ends.choose(random).unwrap_or(&PodEnd::Fails),
    })
}

fn flap(spec: &SetSpec, random: &mut StdRng) -> Actions {
    let pod = pod(spec, random);
    let ready = |ready| Action::Ready {
        pod: pod.clone(),
        ready,
    };
    let later = random.random_range(100..60_000);
    vec![(0, ready(false)), (later, ready(true))]
}

fn min_ready_seconds(spec: &SetSpec, random: &mut StdRng) -> Actions {
    one(Action::MinReadySeconds {
        set: spec.name.clone(),
        seconds: *[0, 5, 30].choose(random).unwrap_or(&0),
    })
}

fn history_limit(spec: &SetSpec, random: &mut StdRng) -> Actions {
    one(Action::HistoryLimit {
        set: spec.name.clone(),
        limit: random.random_range(0..=3),
    })
}

fn update_mode(spec: &SetSpec, random: &mut StdRng) -> Actions {
    let mode = |mode| Action::UpdateMode {
        set: spec.name.clone(),
        mode,
    };
    let later = random.random_range(1_000..120_000);
    vec![
        (0, mode(UpdateMode::OnDelete)),
        (later, mode(UpdateMode::RollingUpdate)),
    ]
}

fn first_ordinal(spec: &SetSpec, random: &mut StdRng) -> Actions {
    one(Action::FirstOrdinal {
        set: spec.name.clone(),
        start: random.random_range(0..=3),
    })
}

fn hold(resource: &str, name: &str, random: &mut StdRng) -> Actions {
    let later = random.random_range(1_000..180_000);
    vec![
        (0, Action::hold(resource, name, true)),
        (later, Action::hold(resource, name, false)),
    ]
}

fn hold_pod(spec: &SetSpec, random: &mut StdRng) -> Actions {
    hold("pods", &pod(spec, random), random)
}

fn hold_claim(spec: &SetSpec, random: &mut StdRng) -> Actions {
    hold("persistentvolumeclaims", &claim(spec, random), random)
}

fn lose_node(_: &SetSpec, random: &mut StdRng) -> Actions {
    one(Action::LoseNode {
        node: random.random_range(0..2),
        time: Millis(random.random_range(10_000..600_000)),
    })
}

fn strip_pod(spec: &SetSpec, random: &mut StdRng) -> Actions {
    let label = "statefulset.kubernetes.io/pod-name";
    let values = [json!(null), json!("other")];
    let value = values.choose(random).cloned().unwrap_or_default();
    let change = json!({"metadata": {"labels": {label: value}}});
    one(Action::edit("pods", &pod(spec, random), change))
}

fn share_claim(spec: &SetSpec, random: &mut StdRng) -> Actions {
    one(Action::ShareClaim {
        claim: claim(spec, random),
    })
}

/// Owners of a claim in backups: mostly a stale one next to a live one.
const BACKUPS: [&[RestoredOwner]; 7] = {
    use RestoredOwner::{FormerPod, FormerSet, Pod, Set};
    [
        &[FormerSet, Pod],
        &[FormerPod, Pod],
        &[FormerSet, FormerPod, Pod],
        &[FormerPod, Set],
        &[Set, Pod],
        &[FormerSet],
        &[FormerPod],
    ]
};

/// A user restores the owners of one claim or of several, also again and again.
pub(super) fn restore_owners(spec: &SetSpec, random: &mut StdRng) -> Actions {
    let times = 0..random.random_range(1..=4);
    times
        .map(|nth| {
            let owners = BACKUPS.choose(random).copied().unwrap_or_default();
            let restore = Action::RestoreOwners {
                claim: claim(spec, random),
                owners: owners.to_vec(),
            };
            (nth * random.random_range(0..20_000), restore)
        })
        .collect()
}
