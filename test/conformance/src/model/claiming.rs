//! Ownership of revisions and pods: adoption and release.

use std::rc::Rc;

use kube_apimachinery::selector::Selector;
use serde_json::Value;

use super::Sync;
use super::cluster::Kind;
use super::failure::Failure;
use super::object::{controller, is_deleting, map, name, text, uid};

impl Sync {
    /// Adopts the revisions without a controller, up to the first failure.
    pub(super) fn adopt_revisions(&mut self, selector: &Selector) -> Result<(), Failure> {
        let listed = self.list_revisions(selector);
        let orphans = listed
            .iter()
            .filter(|revision| controller(revision).is_none());
        let orphans: Vec<&Value> = orphans.collect();
        if orphans.is_empty() {
            return Ok(());
        }
        let failed = |failure: Failure| failure.while_doing("can't adopt ControllerRevisions");
        self.may_adopt().map_err(failed)?;
        for revision in orphans {
            self.api
                .adopt(Kind::Revision, revision, &self.set.reference())?;
        }
        Ok(())
    }

    /// Returns the set's pods after adoptions and releases; adopted pods are returned unpatched.
    pub(super) fn claim_pods(&mut self, selector: &Selector) -> Result<Vec<Value>, Failure> {
        let set = Rc::clone(&self.set);
        let is_hidden = |pod: &Value| self.rules.canonical_names && set.is_non_canonical(pod);
        let visible = self.pods.iter().filter(|pod| !is_hidden(pod));
        let (owned, orphans): (Vec<Value>, Vec<Value>) =
            visible.cloned().partition(|pod| controller(pod).is_some());

        let mut claimed = Vec::new();
        let mut failures = Vec::new();
        let mut may_adopt = None;
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
                let result = self.api.release(Kind::Pod, &pod, &set.uid);
                failures.extend(result.err().filter(|failure| !is_gone_or_invalid(failure)));
            }
        }
        for pod in orphans {
            if set.is_deleting || is_deleting(&pod) || !matches(&pod) {
                continue;
            }
            let may = may_adopt.get_or_insert_with(|| self.may_adopt()).clone();
            if let Err(failure) = may {
                let place = format!("{}/{} ({})", set.namespace, name(&pod), uid(&pod));
                failures.push(failure.while_doing(&format!("can't adopt Pod {place}")));
                continue;
            }
            match self.api.adopt(Kind::Pod, &pod, &set.reference()) {
                Ok(()) => claimed.push(pod),
                Err(failure) if failure.is_not_found() => {}
                Err(failure) => failures.push(failure),
            }
        }
        Failure::join(failures)?;
        Ok(claimed)
    }

    /// Checks that the live set is the cached one and isn't being deleted.
    fn may_adopt(&mut self) -> Result<(), Failure> {
        let set = &self.set;
        let key = format!("{}/{}", set.namespace, set.name);
        let recheck = |failure: Failure| failure.while_doing("can't recheck DeletionTimestamp");
        let live = self.api.get(Kind::Set, &set.name).map_err(recheck)?;
        if uid(&live) != set.uid {
            let (got, wanted) = (uid(&live), &set.uid);
            let gone =
                format!("original StatefulSet {key} is gone: got uid {got}, wanted {wanted}");
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
}

/// Returns true if a release is unnecessary or impossible.
fn is_gone_or_invalid(failure: &Failure) -> bool {
    use statefulset_client::fake::FaultError::{Invalid, NotFound};
    matches!(failure.reason, Some(NotFound | Invalid))
}
