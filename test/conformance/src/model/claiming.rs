//! Ownership of revisions and pods: adoption and release.

use std::rc::Rc;

use kube_apimachinery::selector::Selector;
use serde_json::Value;

use super::cluster::Kind;
use super::failure::Failure;
use super::object::{controller, is_deleting, map, name, text, uid};
use super::revisions::list_revisions;
use super::sync::Sync;

/// Returns true if a release is unnecessary or impossible.
fn is_gone_or_invalid(failure: &Failure) -> bool {
    use statefulset_client::fake::CallError::{Invalid, NotFound};
    matches!(failure.reason, Some(NotFound | Invalid))
}

/// Adopts the revisions without a controller, up to the first failure.
pub(super) fn adopt_revisions(sync: &mut Sync, selector: &Selector) -> Result<(), Failure> {
    let listed = list_revisions(sync, selector);
    let orphans = listed
        .iter()
        .filter(|revision| controller(revision).is_none());
    let orphans: Vec<&Value> = orphans.collect();
    if orphans.is_empty() {
        return Ok(());
    }
    let failed = |failure: Failure| failure.while_doing("can't adopt ControllerRevisions");
    may_adopt(sync).map_err(failed)?;
    for revision in orphans {
        sync.api
            .adopt(Kind::Revision, revision, &sync.set.reference())?;
    }
    Ok(())
}

/// Returns the set's pods after adoptions and releases; adopted pods are returned unpatched.
pub(super) fn claim_pods(sync: &mut Sync, selector: &Selector) -> Result<Vec<Value>, Failure> {
    let set = Rc::clone(&sync.set);
    let is_hidden = |pod: &Value| sync.rules.canonical_names && set.is_non_canonical(pod);
    let visible = sync.pods.iter().filter(|pod| !is_hidden(pod));
    let (owned, orphans): (Vec<Value>, Vec<Value>) =
        visible.cloned().partition(|pod| controller(pod).is_some());

    let mut claimed = Vec::new();
    let mut failures = Vec::new();
    let mut adoption = None;
    let matches =
        |pod: &Value| set.is_member(pod) && selector.matches(&map(pod, "/metadata/labels"));
    for pod in owned {
        let owner = controller(&pod).map_or("", |owner| text(owner, "/uid"));
        if owner != set.uid {
            continue;
        }
        if matches(&pod) {
            claimed.push(pod);
        } else if !set.is_deleting {
            let result = sync.api.release(Kind::Pod, &pod, &set.uid);
            failures.extend(result.err().filter(|failure| !is_gone_or_invalid(failure)));
        }
    }
    for pod in orphans {
        if set.is_deleting || is_deleting(&pod) || !matches(&pod) {
            continue;
        }
        let may = adoption.get_or_insert_with(|| may_adopt(sync)).clone();
        if let Err(failure) = may {
            let place = format!("{}/{} ({})", set.namespace, name(&pod), uid(&pod));
            failures.push(failure.while_doing(&format!("can't adopt Pod {place}")));
            continue;
        }
        match sync.api.adopt(Kind::Pod, &pod, &set.reference()) {
            Ok(()) => claimed.push(pod),
            Err(failure) if failure.is_not_found() => {}
            Err(failure) => failures.push(failure),
        }
    }
    Failure::join(failures)?;
    Ok(claimed)
}

/// Checks that the live set is the cached one and isn't being deleted.
fn may_adopt(sync: &mut Sync) -> Result<(), Failure> {
    let set = &sync.set;
    let key = format!("{}/{}", set.namespace, set.name);
    let recheck = |failure: Failure| failure.while_doing("can't recheck DeletionTimestamp");
    let live = sync.api.get(Kind::Set, &set.name).map_err(recheck)?;
    if uid(&live) != set.uid {
        let (got, wanted) = (uid(&live), &set.uid);
        let gone = format!("original StatefulSet {key} is gone: got uid {got}, wanted {wanted}");
        return Err(recheck(Failure::new(gone)));
    }
    if is_deleting(&live) {
        let time = text(&live, "/metadata/deletionTimestamp");
        return Err(Failure::new(format!(
            "{key} has just been deleted at {time}"
        )));
    }
    Ok(())
}
