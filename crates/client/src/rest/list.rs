//! A page of a list as a stream of its items.

mod items;

use std::time::Duration;

use http_body_util::BodyExt as _;
use kube_apimachinery::json::Document;
use serde::Deserialize;
use serde::de::IgnoredAny;
use tokio::time::{Instant, timeout_at};

use super::api_health::Right;
use super::call::transport_error;
use super::reports::Reports;
use super::service::AnswerBody;
use crate::error::Error;
use items::Items;

/// The items of a page in their order, each as soon as it has arrived. Only one item and the bytes
/// of one frame are in memory at a time.
pub struct ListStream {
    body: AnswerBody,
    items: Items,
    bytes: usize,
    deadline: Instant,
    body_timeout: Duration,
    reports: Reports,
    action: String,
    right: Right,
}

/// The part of a page besides its items.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct ListMetadata {
    /// Version of the collection.
    pub resource_version: String,
    /// Token of the next page; empty after the last one.
    pub continue_token: String,
}

#[derive(Deserialize)]
struct Envelope {
    #[serde(default)]
    metadata: Metadata,
    /// Empty, because the items are read as a stream. Some servers send null for an empty list.
    #[serde(default)]
    items: Option<Vec<IgnoredAny>>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Metadata {
    resource_version: String,
    #[serde(rename = "continue")]
    continue_token: String,
}

impl ListStream {
    pub(super) fn new(
        body: AnswerBody,
        body_timeout: Duration,
        reports: Reports,
        action: String,
        right: Right,
    ) -> Self {
        Self {
            body,
            items: Items::default(),
            bytes: 0,
            deadline: Instant::now() + body_timeout,
            body_timeout,
            reports,
            action,
            right,
        }
    }

    /// Returns the next item, none after the last one. Its text is complete, but may be invalid
    /// JSON.
    ///
    /// # Errors
    ///
    /// The connection is lost, or the page takes longer than the time limit of a body.
    pub async fn next(&mut self) -> Result<Option<Document>, Error> {
        loop {
            if let Some(item) = self.items.next() {
                return Ok(Some(Document::new(item)));
            }
            let frame = match timeout_at(self.deadline, self.body.frame()).await {
                Ok(None) => return Ok(None),
                Ok(Some(frame)) => frame.map_err(|err| transport_error(&self.action, err)),
                Err(_) => Err(Error::Timeout {
                    action: self.action.clone(),
                    after: self.body_timeout,
                }),
            };
            let frame = frame.inspect_err(|err| self.reports.failed(&self.right, err))?;
            if let Ok(data) = frame.into_data() {
                self.bytes += data.len();
                self.items.push(data);
            }
        }
    }

    /// Number of bytes received so far.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Returns the metadata of the page, after its last item.
    ///
    /// # Errors
    ///
    /// The page is not a list, or is incomplete.
    pub fn finish(self) -> Result<ListMetadata, Error> {
        let envelope = Document::new(self.items.into_envelope());
        let read = serde_json::from_str(envelope.text()).and_then(|envelope: Envelope| {
            let unread = envelope.items.unwrap_or_default().len();
            if unread == 0 {
                Ok(envelope.metadata)
            } else {
                let problem = format_args!("{unread} items under an unusual name");
                Err(serde::de::Error::custom(problem))
            }
        });
        let metadata = read.map_err(|source| Error::Decode {
            action: self.action,
            source,
        })?;
        Ok(ListMetadata {
            resource_version: metadata.resource_version,
            continue_token: metadata.continue_token,
        })
    }
}
