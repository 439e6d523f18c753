//! Other controllers that would adopt the set's pods or revisions while no set owns them.

use anyhow::bail;
use kube_apimachinery::selector::Selector;
use serde_json::{Value, json};

use super::check::selector;
use crate::cluster::name;
use crate::model::Set;
use crate::objects::Snapshot;
use crate::server::{
    DAEMON_SETS, JOBS, REPLICA_SETS, REPLICATION_CONTROLLERS, Resource, STATEFUL_SETS, Server,
    decode,
};

/// A kind of controllers, and the objects that they adopt.
struct Rivals {
    resource: Resource,
    adopts_pods: bool,
    adopts_revisions: bool,
}

/// The kinds that adopt objects by their labels. A set adopts no pods with the name of another one.
const RIVALS: [Rivals; 5] = [
    Rivals {
        resource: STATEFUL_SETS,
        adopts_pods: false,
        adopts_revisions: true,
    },
    Rivals {
        resource: DAEMON_SETS,
        adopts_pods: true,
        adopts_revisions: true,
    },
    Rivals {
        resource: REPLICA_SETS,
        adopts_pods: true,
        adopts_revisions: false,
    },
    Rivals {
        resource: REPLICATION_CONTROLLERS,
        adopts_pods: true,
        adopts_revisions: false,
    },
    Rivals {
        resource: JOBS,
        adopts_pods: true,
        adopts_revisions: false,
    },
];

/// Checks that no other controller would adopt the set's pods or revisions. Kinds that can't be
/// listed are noted.
///
/// # Errors
///
/// A controller selects a pod or a revision of the set.
pub(super) async fn check(
    server: &Server,
    namespace: &str,
    set: &Set,
    snapshot: &Snapshot,
) -> anyhow::Result<()> {
    for rivals in &RIVALS {
        let keep = |text: &str| decode::<Value>(text).map(Some);
        let listed = server.list(&rivals.resource, Some(namespace), keep).await;
        let listed = listed.unwrap_or_else(|error| {
            server.note_unread(&format!(
                "{error:#}; one may adopt pods of {}",
                set.metadata.name
            ));
            Vec::new()
        });
        let others = listed.iter().filter(|it| !is_set(rivals, it, set));
        for rival in others {
            let selector = selector_of(rivals, rival);
            if let Some(object) = taken(rivals, &selector, set, snapshot) {
                bail!(
                    "{} {} selects {object} as well, and would adopt it before the new set: make \
                     their selectors differ first",
                    rivals.resource.kind,
                    name(rival)
                );
            }
        }
    }
    Ok(())
}

fn is_set(rivals: &Rivals, rival: &Value, set: &Set) -> bool {
    rivals.resource.kind == "StatefulSet" && name(rival) == set.metadata.name
}

/// The selector of a controller; an empty or invalid one selects nothing.
fn selector_of(rivals: &Rivals, rival: &Value) -> Selector {
    let labels = rival.pointer("/spec/selector");
    let selector = if rivals.resource.kind == "ReplicationController" {
        selector(&json!({"spec": {"selector": {"matchLabels": labels}}}))
    } else {
        selector(rival)
    };
    let selector = selector.ok().filter(|selector| !selector.is_empty());
    selector.unwrap_or_else(Selector::nothing)
}

/// An object of the set that the selector selects.
fn taken(rivals: &Rivals, selector: &Selector, set: &Set, snapshot: &Snapshot) -> Option<String> {
    let pods = snapshot.pods_of(set).map(|pod| ("pod", &pod.metadata));
    let pods = pods.filter(|_| rivals.adopts_pods);
    let revisions = snapshot.revisions_of(set);
    let revisions = revisions.iter().map(|it| ("revision", &it.metadata));
    let revisions = revisions.filter(|_| rivals.adopts_revisions);
    let mut objects = pods.chain(revisions);
    let found = objects.find(|(_, metadata)| selector.matches(&metadata.labels));
    found.map(|(kind, metadata)| format!("{kind} {}", metadata.name))
}
