//! The pods of a job.

use std::sync::Arc;

use jiff::Timestamp;
use kube_apimachinery::time;
use kube_test_control_plane_api::members::{list_at, number_at, text_at};
use kube_test_control_plane_api::object::{Key, Object};
use serde_json::Value;

use crate::replica_set_controller::status::readiness;

/// The finalizer that keeps a pod until it is counted.
pub(super) const TRACKING: &str = "batch.kubernetes.io/job-tracking";

/// The annotation and label with a pod's index.
pub(super) const INDEX: &str = "batch.kubernetes.io/job-completion-index";

/// The end of a pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Succeeded,
    Failed,
}

/// The facts about a pod that matter to its job.
#[derive(Clone, Debug)]
pub(super) struct JobPod {
    pub(super) key: Key,
    pub(super) uid: Box<str>,
    /// True if it waits to be counted.
    pub(super) is_tracked: bool,
    pub(super) is_deleting: bool,
    pub(super) is_ready: bool,
    end: Option<End>,
    pub(super) index: Option<u32>,
    /// The restarts of its containers.
    pub(super) restarts: i64,
    /// The time at which it ended.
    pub(super) ended: Option<Timestamp>,
    created: String,
}

impl JobPod {
    pub(super) fn new((object, value): (Arc<Object>, Value)) -> Self {
        let phase = text_at(&value, "/status/phase");
        let finalizers = list_at(&value, "/metadata/finalizers");
        let index = value
            .pointer("/metadata/annotations")
            .and_then(|it| it.get(INDEX)?.as_str());
        let statuses = || {
            let init = list_at(&value, "/status/initContainerStatuses");
            init.chain(list_at(&value, "/status/containerStatuses"))
        };
        let ends = statuses().map(|it| text_at(it, "/state/terminated/finishedAt"));
        let ended = ends.filter_map(|end| time::parse(end).ok()).max();
        let created = text_at(&value, "/metadata/creationTimestamp");
        Self {
            is_tracked: finalizers.clone().any(|it| *it == TRACKING),
            is_deleting: object.deleting,
            is_ready: readiness(&value).ready,
            end: match phase {
                "Succeeded" => Some(End::Succeeded),
                "Failed" => Some(End::Failed),
                _ => None,
            },
            index: index.and_then(|index| index.parse().ok()),
            restarts: statuses().map(|it| number_at(it, "/restartCount")).sum(),
            ended: ended.or_else(|| time::parse(created).ok()),
            created: created.to_owned(),
            key: object.key.clone(),
            uid: object.uid.clone(),
        }
    }

    /// Returns true if it has succeeded or failed.
    pub(super) fn is_over(&self) -> bool {
        self.end.is_some()
    }

    pub(super) fn has_succeeded(&self) -> bool {
        self.end == Some(End::Succeeded)
    }

    pub(super) fn is_active(&self) -> bool {
        !self.is_over() && !self.is_deleting
    }

    /// Returns the sort key of surplus pods; the lowest is deleted first: pods that are not ready,
    /// then the youngest.
    pub(super) fn deletion_rank(&self) -> (bool, std::cmp::Reverse<&str>, &str) {
        (
            self.is_ready,
            std::cmp::Reverse(&self.created),
            &self.key.name,
        )
    }
}
