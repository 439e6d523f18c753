//! The event stream of a watch: one JSON object per line.

use std::borrow::Cow;
use std::fmt;
use std::ops::Range;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::BytesMut;
use futures::Stream;
use http_body::Body as _;
use kube_apimachinery::json::Document;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::AnswerBody;
use super::call::transport_error;
use crate::error::{Error, Status};

/// Maximum length of an event, in bytes. API servers store objects of up to 1.5 MiB by default. The
/// limit only keeps a broken stream from filling the memory.
const EVENT_BYTES_MAX: usize = 64 * 1024 * 1024;

/// A watch event; its object is the server's text.
#[derive(Debug)]
pub enum WatchEvent {
    /// The object was created, or now matches the watch.
    Added(WatchObject),
    /// The object was modified.
    Modified(WatchObject),
    /// The object was deleted; this is its last state, with the version of the deletion.
    Deleted(WatchObject),
    /// All events up to this object's version have been sent.
    Bookmark(WatchObject),
    /// The server ends the watch, for example because the requested version has expired (410).
    Error(Status),
}

/// A watch event's object, within its line.
#[derive(Debug)]
pub struct WatchObject {
    line: Document,
    object: Range<usize>,
}

impl WatchObject {
    /// Returns the object's JSON, a part of [`Self::document`].
    pub fn json(&self) -> &str {
        self.line
            .text()
            .get(self.object.clone())
            .unwrap_or_default()
    }

    /// Returns the whole line.
    pub fn document(&self) -> &Document {
        &self.line
    }
}

impl fmt::Display for WatchObject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.json())
    }
}

/// The events of one watch. Ends with the server's stream.
pub struct WatchStream {
    body: AnswerBody,
    /// Bytes received but not yet returned.
    buffer: BytesMut,
    /// Length of the buffer's prefix without a line break.
    searched: usize,
    ended: bool,
    action: String,
}

#[derive(Deserialize)]
struct Frame<'a> {
    #[serde(rename = "type", borrow)]
    event_type: Cow<'a, str>,
    #[serde(borrow)]
    object: &'a RawValue,
}

impl WatchStream {
    pub(super) fn new(body: AnswerBody, action: String) -> Self {
        Self {
            body,
            buffer: BytesMut::new(),
            searched: 0,
            ended: false,
            action,
        }
    }

    /// Removes the next complete line from the buffer.
    fn next_line(&mut self) -> Option<BytesMut> {
        let unsearched = self.buffer.get(self.searched..)?;
        let Some(offset) = memchr::memchr(b'\n', unsearched) else {
            self.searched = self.buffer.len();
            return None;
        };
        let mut line = self.buffer.split_to(self.searched + offset + 1);
        line.truncate(line.len() - 1);
        self.searched = 0;
        Some(line)
    }

    /// Returns the error of an event that the next watch would send again: only a list gets past it.
    fn unusable(&self, problem: fmt::Arguments<'_>) -> Error {
        Error::Decode {
            action: self.action.clone(),
            source: serde::de::Error::custom(problem),
        }
    }

    fn decode(&self, line: &[u8]) -> Result<WatchEvent, Error> {
        let decode_error = |source| Error::Decode {
            action: self.action.clone(),
            source,
        };
        let line = Document::new(line.to_vec());
        if let Some((event, object)) = frame_as_written(line.text()) {
            return Ok(event(WatchObject { line, object }));
        }
        let frame: Frame<'_> = serde_json::from_str(line.text()).map_err(decode_error)?;
        let event = match &*frame.event_type {
            "ADDED" => WatchEvent::Added,
            "MODIFIED" => WatchEvent::Modified,
            "DELETED" => WatchEvent::Deleted,
            "BOOKMARK" => WatchEvent::Bookmark,
            "ERROR" => {
                let status = serde_json::from_str(frame.object.get()).map_err(decode_error)?;
                return Ok(WatchEvent::Error(status));
            }
            other => {
                return Err(self.unusable(format_args!("unknown type of watch event {other:?}")));
            }
        };
        let object = line.range_of(frame.object.get()).unwrap_or_default();
        Ok(event(WatchObject { line, object }))
    }
}

/// Makes an event of its object.
type EventOf = fn(WatchObject) -> WatchEvent;

/// Reads the frame of an event as API servers write it, without parsing the object: the
/// object's decoder rejects everything that isn't part of it.
fn frame_as_written(line: &str) -> Option<(EventOf, Range<usize>)> {
    let rest = line.strip_prefix(r#"{"type":""#)?;
    let (event_type, rest) = rest.split_once('"')?;
    let event: EventOf = match event_type {
        "ADDED" => WatchEvent::Added,
        "MODIFIED" => WatchEvent::Modified,
        "DELETED" => WatchEvent::Deleted,
        _ => return None,
    };
    let object = rest.strip_prefix(r#","object":"#)?.strip_suffix('}')?;
    let end = line.len() - 1;
    Some((event, end - object.len()..end))
}

impl Stream for WatchStream {
    type Item = Result<WatchEvent, Error>;

    /// Yields events in order. An incomplete line at the end of the stream is dropped: the next
    /// watch sends the event again.
    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = self.get_mut();
        loop {
            if this.ended {
                return Poll::Ready(None);
            }
            while let Some(line) = this.next_line() {
                if !line.iter().all(u8::is_ascii_whitespace) {
                    let event = this.decode(&line);
                    this.ended = event.is_err();
                    return Poll::Ready(Some(event));
                }
            }
            match ready!(Pin::new(&mut this.body).poll_frame(cx)) {
                Some(Ok(frame)) => {
                    if let Ok(data) = frame.into_data() {
                        this.buffer.extend_from_slice(&data);
                    }
                    if this.buffer.len() > EVENT_BYTES_MAX {
                        this.ended = true;
                        let limit = format_args!("an event is longer than {EVENT_BYTES_MAX} bytes");
                        return Poll::Ready(Some(Err(this.unusable(limit))));
                    }
                }
                Some(Err(err)) => {
                    this.ended = true;
                    return Poll::Ready(Some(Err(transport_error(&this.action, err))));
                }
                None => this.ended = true,
            }
        }
    }
}
