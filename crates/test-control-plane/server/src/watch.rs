//! Watches: the log from a revision on, as a stream of JSON lines.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::stream;
use kube_test_control_plane_api::kinds::zero;
use kube_test_control_plane_api::list_options::{ListOptions, parse_version_field};
use kube_test_control_plane_api::object::Draft;
use kube_test_control_plane_api::query::Query;
use kube_test_control_plane_api::response::represent::Representation;
use kube_test_control_plane_api::response::table;
use kube_test_control_plane_api::selectors::Selection;
use kube_test_control_plane_api::status::{ApiError, ApiResult};
use kube_test_control_plane_store::clock::later;
use kube_test_control_plane_store::store::{Change, Collection, LogEntry};
use serde_json::json;
use tokio::sync::watch::Receiver;
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

use crate::faults::ReadView;
use crate::handlers;
use crate::reply::{self, BoxError, Reply};
use crate::route::ResourceRequest;
use crate::state::Reads;
use crate::write::Earlier;
use crate::write::{served_draft, served_text};

/// Limit of events in one chunk.
const BATCH_MAX: usize = 100;

/// Time between the last bookmark and a watch's timeout.
const LAST_BOOKMARK_LEAD: Duration = Duration::from_secs(2);

/// The annotation of the bookmark that ends the initial events.
const INITIAL_EVENTS_END: &str = "k8s.io/initial-events-end";

/// A watch in progress.
struct Follow {
    reads: Arc<Reads>,
    request: ResourceRequest,
    selection: Selection,
    /// The last sent revision.
    cursor: u64,
    revisions: Receiver<u64>,
    pending: Option<Bytes>,
    ended: bool,
    deadline: Instant,
    next_bookmark: Option<Instant>,
    stopping: CancellationToken,
    representation: Representation,
    /// True after the first table, whose columns later ones omit.
    columns_sent: bool,
    /// The client's view of the store.
    read_view: ReadView,
    /// Notified of changed views.
    views: Receiver<u64>,
}

/// Reason for a watch's wake-up.
enum WakeReason {
    /// There may be events.
    Moved,
    /// It is over.
    Ended,
    /// A bookmark was due at this time.
    BookmarkDue(Instant),
}

/// Start of a watch.
enum Start {
    /// With the current objects.
    Now,
    /// After a revision.
    After(u64),
}

/// Watches a collection.
pub(crate) async fn watch(
    reads: &Arc<Reads>,
    request: &ResourceRequest,
    query: &Query,
    representation: Representation,
    read_view: ReadView,
) -> ApiResult<Reply> {
    let options = ListOptions::of_watch(query)?;
    let selection = handlers::selection(reads, &request.kind, query)?.named(&request.name);
    let wants_initial = options.send_initial_events;
    let revision = match options.resource_version {
        None => 0,
        Some(text) => parse_version_field(text).map_err(ApiError::internal)?,
    };
    let bookmarks = query.flag("allowWatchBookmarks");
    let timeout_seconds = options.timeout_seconds;
    let mut follow = new_follow(reads, request, timeout_seconds, selection, read_view);
    if bookmarks {
        follow.schedule_bookmark(Instant::now());
    }
    follow.representation = representation;
    let start = match (wants_initial, revision) {
        (Some(true), _) | (None, 0) => Start::Now,
        _ => Start::After(revision),
    };
    match start {
        Start::Now => {
            // A watch with initial events but no version starts at the newest state.
            let wanted = match (wants_initial, options.resource_version) {
                (Some(true), None) => reads.store.revision(),
                _ => revision,
            };
            let seen =
                handlers::wait_for_revision(reads, wanted, timeout_seconds, &follow.read_view)
                    .await;
            match seen {
                Ok(horizon) => {
                    let with_end = wants_initial == Some(true) && bookmarks;
                    follow.send_initial(horizon, with_end).await;
                }
                Err(err) => follow.end_with(&err),
            }
        }
        Start::After(0) => {
            let newest = reads.store.revision();
            follow.cursor = follow.read_view.horizon(newest).unwrap_or(newest);
        }
        Start::After(revision) => {
            follow.cursor = revision;
            let floor = reads.watch_floor();
            let oldest = match reads.store.check_reach(revision) {
                Err(compacted) => Some(compacted.oldest.max(floor)),
                Ok(()) => (revision < floor).then_some(floor),
            };
            if let Some(oldest) = oldest {
                follow.end_with(&too_old(revision, oldest));
            }
        }
    }
    let lines = stream::unfold(follow, |mut follow| async move {
        let chunk = follow.next().await?;
        Some((Ok::<Bytes, BoxError>(chunk), follow))
    });
    Ok(reply::stream(lines))
}

fn new_follow(
    reads: &Arc<Reads>,
    request: &ResourceRequest,
    timeout_seconds: Option<i64>,
    selection: Selection,
    read_view: ReadView,
) -> Follow {
    let now = Instant::now();
    let timeout = match timeout_seconds {
        Some(seconds) if seconds > 0 => seconds.unsigned_abs(),
        Some(seconds) if seconds < 0 => 0,
        _ => reads.watch_timeout(),
    };
    let deadline = later(now, Duration::from_secs(timeout));
    Follow {
        reads: Arc::clone(reads),
        request: request.clone(),
        selection,
        cursor: 0,
        revisions: reads.store.subscribe(),
        pending: None,
        ended: false,
        deadline,
        next_bookmark: None,
        stopping: reads.stopping.clone(),
        representation: Representation::Whole,
        columns_sent: false,
        views: read_view.faults.watch_changes(),
        read_view,
    }
}

impl Follow {
    fn schedule_bookmark(&mut self, now: Instant) {
        let interval = self.reads.bookmark_interval;
        let regular = later(now, interval);
        let last = self
            .deadline
            .checked_sub(LAST_BOOKMARK_LEAD)
            .unwrap_or(now)
            .max(now + Duration::from_secs(1));
        self.next_bookmark = Some(if last > now {
            regular.min(last)
        } else {
            regular
        });
    }

    fn end_with(&mut self, error: &ApiError) {
        let mut line = Vec::new();
        push_event(&mut line, "ERROR", error.to_text().as_bytes());
        self.pending = Some(line.into());
        self.ended = true;
    }

    async fn send_initial(&mut self, horizon: Option<u64>, with_end: bool) {
        let kind = &Arc::clone(&self.request.kind);
        let (store, namespace) = (&self.reads.store, &self.request.namespace);
        let all = Collection::new(&kind.storage, namespace);
        let (revision, objects) = match horizon {
            None => store.list(&kind.storage, namespace),
            Some(revision) => match store.page_at(&all, usize::MAX, revision) {
                Ok(page) => (revision, page.objects),
                Err(compacted) => {
                    let oldest = compacted.oldest;
                    return self.end_with(&too_old(revision, oldest));
                }
            },
        };
        self.cursor = revision;
        let mut chunk = Vec::new();
        let reads = Arc::clone(&self.reads);
        for object in &objects {
            if self.selection.matches(object) {
                let text = served_text(&reads, kind, object, Earlier::Used).await;
                self.push(&mut chunk, "ADDED", text);
            }
        }
        if with_end {
            self.push_bookmark(&mut chunk, true);
        }
        self.pending = Some(Bytes::from(chunk)).filter(|chunk| !chunk.is_empty());
    }

    /// Adds a bookmark with the current revision.
    fn push_bookmark(&mut self, chunk: &mut Vec<u8>, initial_end: bool) {
        let kind = &self.request.kind;
        let mut object = zero(kind).clone();
        object["kind"] = json!(kind.kind);
        object["apiVersion"] = json!(kind.api_version());
        object["metadata"] = json!({"resourceVersion": self.cursor.to_string()});
        if initial_end {
            object["metadata"]["annotations"] = json!({INITIAL_EVENTS_END: "true"});
        }
        let draft = Draft {
            value: object,
            data: None,
        };
        self.push(chunk, "BOOKMARK", Ok(draft.encode().into()));
    }

    /// Returns the next chunk of lines; `None` at the end of the watch.
    async fn next(&mut self) -> Option<Bytes> {
        loop {
            if let Some(chunk) = self.pending.take() {
                return Some(chunk);
            }
            if self.ended || self.stopping.is_cancelled() || Instant::now() >= self.deadline {
                return None;
            }
            let newest = *self.revisions.borrow_and_update();
            self.views.mark_unchanged();
            let horizon = self.read_view.horizon(newest).unwrap_or(u64::MAX);
            let mut events = Vec::new();
            if horizon > self.cursor {
                let (until, found) = self.reads.store.events_after(self.cursor, BATCH_MAX).ok()?;
                self.cursor = until.min(horizon);
                events = found;
                events.retain(|entry| entry.revision <= horizon);
            }
            if !events.is_empty() {
                let chunk = self.chunk(&events).await;
                self.pending = Some(chunk).filter(|chunk| !chunk.is_empty());
                continue;
            }
            if self.is_replaced() {
                return None;
            }
            match self.wait(newest).await {
                WakeReason::Moved => {}
                WakeReason::Ended => return None,
                WakeReason::BookmarkDue(at) => {
                    self.schedule_bookmark(at);
                    let mut chunk = Vec::new();
                    self.push_bookmark(&mut chunk, false);
                    self.pending = Some(chunk.into()).filter(|chunk: &Bytes| !chunk.is_empty());
                }
            }
        }
    }

    /// Returns true if the watched version of a custom resource is gone or has another definition.
    fn is_replaced(&self) -> bool {
        let kind = &self.request.kind;
        let Some(watched) = &kind.custom else {
            return false;
        };
        let index = self.reads.custom_kinds();
        let served = index.by_resource(&kind.group, &kind.version, &kind.plural);
        let served = served.and_then(|row| row.custom.as_ref());
        !served.is_some_and(|served| served.is_same_definition(watched))
    }

    async fn wait(&mut self, newest: u64) -> WakeReason {
        let bookmark = self.next_bookmark.unwrap_or(self.deadline);
        tokio::select! {
            biased;
            () = self.stopping.cancelled() => WakeReason::Ended,
            moved = self.revisions.wait_for(|revision| *revision > newest) => {
                if moved.is_ok() { WakeReason::Moved } else { WakeReason::Ended }
            }
            Ok(()) = self.views.changed() => WakeReason::Moved,
            () = sleep_until(self.deadline) => WakeReason::Ended,
            () = sleep_until(bookmark), if self.next_bookmark.is_some() => {
                WakeReason::BookmarkDue(bookmark)
            }
        }
    }

    async fn chunk(&mut self, events: &[LogEntry]) -> Bytes {
        let mut chunk = Vec::new();
        for entry in events {
            let key = &entry.object.key;
            let namespace = &self.request.namespace;
            if key.storage == self.request.kind.storage
                && (namespace.is_empty() || *key.namespace == **namespace)
            {
                self.push_entry(&mut chunk, entry).await;
            }
        }
        chunk.into()
    }

    /// Adds the event of a write, as seen through the watch's selection.
    async fn push_entry(&mut self, chunk: &mut Vec<u8>, entry: &LogEntry) {
        let reads = Arc::clone(&self.reads);
        let kind = &Arc::clone(&self.request.kind);
        let is_in = self.selection.matches(&entry.object);
        let was_in = entry
            .previous
            .as_ref()
            .is_some_and(|old| self.selection.matches(old));
        let event = match (entry.change, was_in, is_in) {
            (Change::Deleted, true, _) => "DELETED",
            (Change::Deleted, false, _) | (_, false, false) => return,
            (_, false, true) => "ADDED",
            (_, true, true) => "MODIFIED",
            (_, true, false) => {
                let Some(old) = &entry.previous else {
                    return;
                };
                let mut draft = old.draft();
                let version = json!(entry.revision.to_string());
                draft
                    .metadata_mut()
                    .insert("resourceVersion".to_owned(), version);
                let text = served_draft(&reads, kind, draft, Earlier::Used).await;
                self.push(chunk, "DELETED", text);
                return;
            }
        };
        let text = served_text(&reads, kind, &entry.object, Earlier::Used).await;
        self.push(chunk, event, text);
    }

    /// Adds one event in the client's format. The watch ends with an error if the object can't be
    /// converted to the watched version, and silently if it can't be represented.
    fn push(&mut self, chunk: &mut Vec<u8>, event: &str, text: ApiResult<Bytes>) {
        if self.ended {
            return;
        }
        let text = match text {
            Ok(text) => text,
            Err(error) => {
                push_event(chunk, "ERROR", error.to_text().as_bytes());
                self.ended = true;
                return;
            }
        };
        let kind = &self.request.kind;
        let now = self.reads.clock().now();
        let Ok(mut shown) = self.representation.body(kind, text, now) else {
            self.ended = true;
            return;
        };
        if matches!(self.representation, Representation::Table { .. }) {
            if self.columns_sent {
                shown = table::without_columns(&shown);
            }
            self.columns_sent = true;
        }
        push_event(chunk, event, &shown);
    }
}

fn too_old(revision: u64, oldest: u64) -> ApiError {
    ApiError::expired(format!("too old resource version: {revision} ({oldest})"))
}

fn push_event(chunk: &mut Vec<u8>, event: &str, text: &[u8]) {
    chunk.extend_from_slice(b"{\"type\":\"");
    chunk.extend_from_slice(event.as_bytes());
    chunk.extend_from_slice(b"\",\"object\":");
    chunk.extend_from_slice(text);
    chunk.extend_from_slice(b"}\n");
}
