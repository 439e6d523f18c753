//! The progress of a sync: its update revision, and whether it came to its status.

use std::sync::Arc;

use kube_test_control_plane::route::Verb;

use super::case::{Case, update_revision};
use super::view::View;
use super::write::Write;
use crate::agent::Process;
use crate::record::{Request, Sync};
use crate::views::Revision;

/// Returns the update revision of a sync with this knowledge after these requests.
pub(super) fn update_after<'a>(
    case: &Case<'a>,
    view: &View<'a>,
    requests: &[&Request],
    process: Process,
) -> Option<&'a Arc<Revision>> {
    let mut known = view.revisions.clone();
    for request in requests {
        // A sync that meets the revision when it creates it reads it.
        let shown = [Some(Verb::Create), Some(Verb::Get)].contains(&request.verb);
        let of_revisions = request.resource == "controllerrevisions" && shown;
        if let (true, Some(processed)) = (of_revisions, request.processed) {
            let key = (request.namespace.clone(), request.name.clone());
            known.extend(case.history.revisions.at(&key, processed.after));
        }
    }
    update_revision(view.set, &known, case.minor(process))
}

/// Reports whether a sync got as far as its status, and its caches of pods and revisions didn't
/// move on meanwhile: it claimed nothing, and its revisions were written.
pub(super) fn comes_to_status(case: &Case<'_>, sync: &Sync, requests: &[&Request]) -> bool {
    let claims = requests
        .iter()
        .any(|it| it.verb == Some(Verb::Patch) && !it.resizes());
    let looks = requests
        .first()
        .is_some_and(|it| it.verb == Some(Verb::Get) && it.resource == "statefulsets");
    let revisions = requests
        .iter()
        .filter(|it| it.resource == "controllerrevisions" && it.verb != Some(Verb::Delete));
    let mut unwritten = revisions.filter(|it| it.status.is_none_or(|status| status >= 300));
    let known = case.set(sync).is_some();
    known && !claims && !looks && unwritten.next().is_none()
}

/// Returns the update revision of a sync, which may have created it.
pub(super) fn update_of<'a>(case: &Case<'a>, write: &Write<'a>) -> Option<&'a Arc<Revision>> {
    update_after(case, &write.view, &write.earlier, write.sync.process)
}
