//! Which revisions of a history may go.

use std::collections::BTreeSet;
use std::sync::Arc;

use statefulset_controller_util::controller_revision::ControllerRevision;
use statefulset_controller_util::pod::Pod;

/// The revisions to delete, oldest first: those that neither the status nor a pod uses, as far as
/// they exceed `limit`; a negative limit keeps all. `revisions` is sorted from the oldest to the
/// newest; `in_status` names those that the status uses.
///
/// Upstream: `truncateHistory`.
pub(crate) fn revisions_to_delete<'a>(
    revisions: &'a [Arc<ControllerRevision>],
    pods: &[Arc<Pod>],
    in_status: &[&str],
    limit: i32,
) -> Vec<&'a Arc<ControllerRevision>> {
    let Ok(limit) = usize::try_from(limit) else {
        return Vec::new();
    };
    let mut live: BTreeSet<&str> = pods.iter().map(|pod| pod.revision()).collect();
    live.extend(in_status);
    let mut unused: Vec<&Arc<ControllerRevision>> = revisions
        .iter()
        .filter(|revision| !live.contains(&*revision.name))
        .collect();
    unused.truncate(unused.len().saturating_sub(limit));
    unused
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(limit: i32) -> Vec<String> {
        let revision = |name: &str| {
            Arc::new(ControllerRevision {
                name: name.into(),
                ..ControllerRevision::default()
            })
        };
        let revisions: Vec<_> = ["a", "b", "c", "d", "e"].map(revision).into();
        let labels = [("controller-revision-hash", "b")].into_iter().collect();
        let pods = [Arc::new(Pod {
            labels,
            ..Pod::default()
        })];
        revisions_to_delete(&revisions, &pods, &["e"], limit)
            .iter()
            .map(|revision| revision.name.to_string())
            .collect()
    }

    #[test]
    fn the_oldest_unused_revisions_past_the_limit_go() {
        assert_eq!(names(1), ["a", "c"]);
        assert_eq!(names(0), ["a", "c", "d"]);
        assert!(names(3).is_empty());
    }

    #[test]
    fn a_negative_limit_keeps_all() {
        assert!(names(-1).is_empty());
    }
}
