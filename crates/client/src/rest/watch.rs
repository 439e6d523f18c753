//! The event stream of a watch: JSON lines, or protobuf messages with their lengths.

use std::borrow::Cow;
use std::fmt;
use std::ops::Range;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::{Buf as _, Bytes, BytesMut};
use futures::Stream;
use http::{Response, header};
use http_body::Body as _;
use kube_apimachinery::json::Document;
use kube_apimachinery::protobuf::{self, Envelope, Value, WireError};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::call::transport_error;
use super::options::MediaType;
use super::service::AnswerBody;
use crate::error::{Error, Status};

/// Maximum length of an event, in bytes. API servers store objects of up to 1.5 MiB by default. The
/// limit only keeps a broken stream from filling the memory.
const EVENT_BYTES_MAX: usize = 64 * 1024 * 1024;

/// A watch event; its object is as the server sent it.
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

/// A watch event's object.
#[derive(Debug)]
pub enum WatchObject {
    /// JSON text.
    Json(JsonObject),
    /// A protobuf message of the object's kind.
    Protobuf(Bytes),
}

/// An object within its line.
#[derive(Debug)]
pub struct JsonObject {
    line: Document,
    object: Range<usize>,
}

impl JsonObject {
    /// Returns the object's JSON, a part of [`Self::document`].
    pub fn text(&self) -> &str {
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

/// The events of one watch. Ends with the server's stream.
pub struct WatchStream {
    body: AnswerBody,
    media_type: MediaType,
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
    pub(super) fn new(response: Response<AnswerBody>, action: String) -> Self {
        let content_type = response.headers().get(header::CONTENT_TYPE);
        let name = MediaType::Protobuf.name().as_bytes();
        let is_protobuf = content_type.is_some_and(|value| value.as_bytes().starts_with(name));
        Self {
            body: response.into_body(),
            media_type: if is_protobuf {
                MediaType::Protobuf
            } else {
                MediaType::Json
            },
            buffer: BytesMut::new(),
            searched: 0,
            ended: false,
            action,
        }
    }

    /// Returns the format that the server has chosen.
    pub fn media_type(&self) -> MediaType {
        self.media_type
    }

    /// Removes the next complete event from the buffer.
    fn next_event(&mut self) -> Option<Result<WatchEvent, Error>> {
        if self.media_type == MediaType::Protobuf {
            let frame = self.next_frame()?;
            let event = event_of_frame(&frame.freeze());
            return Some(event.map_err(|err| self.unusable(format_args!("{err}"))));
        }
        loop {
            let line = self.next_line()?;
            if !line.iter().all(u8::is_ascii_whitespace) {
                return Some(self.decode(&line));
            }
        }
    }

    /// Removes the next complete message from the buffer, with its length in big-endian order.
    fn next_frame(&mut self) -> Option<BytesMut> {
        let (length, rest) = self.buffer.split_first_chunk()?;
        let length = u32::from_be_bytes(*length) as usize;
        if rest.len() < length {
            return None;
        }
        self.buffer.advance(size_of::<u32>());
        Some(self.buffer.split_to(length))
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
            return Ok(event(WatchObject::Json(JsonObject { line, object })));
        }
        let frame: Frame<'_> = serde_json::from_str(line.text()).map_err(decode_error)?;
        if frame.event_type == ERROR {
            let status = serde_json::from_str(frame.object.get()).map_err(decode_error)?;
            return Ok(WatchEvent::Error(status));
        }
        let Some(event) = event_of_type(&frame.event_type) else {
            let event_type = &frame.event_type;
            return Err(self.unusable(format_args!("unknown type of watch event {event_type:?}")));
        };
        let object = line.range_of(frame.object.get()).unwrap_or_default();
        Ok(event(WatchObject::Json(JsonObject { line, object })))
    }
}

/// Type of an event whose object is a `Status`.
const ERROR: &str = "ERROR";

/// Returns the event of a type other than [`ERROR`].
fn event_of_type(event_type: &str) -> Option<EventOf> {
    Some(match event_type {
        "ADDED" => WatchEvent::Added,
        "MODIFIED" => WatchEvent::Modified,
        "DELETED" => WatchEvent::Deleted,
        "BOOKMARK" => WatchEvent::Bookmark,
        _ => return None,
    })
}

/// Reads an event's message. Upstream: `metav1.WatchEvent`.
fn event_of_frame(frame: &Bytes) -> Result<WatchEvent, WireError> {
    let (mut event_type, mut object) = ("", &[][..]);
    for field in protobuf::fields(frame, "WatchEvent") {
        match field? {
            (1, value) => event_type = value.text()?,
            (2, Value::Bytes(extension)) => {
                for field in protobuf::fields(extension, "RawExtension") {
                    if let (1, Value::Bytes(raw)) = field? {
                        object = raw;
                    }
                }
            }
            _ => {}
        }
    }
    let object = Envelope::read(object)?.raw;
    if event_type == ERROR {
        return Status::from_protobuf(object).map(WatchEvent::Error);
    }
    let Some(event) = event_of_type(event_type) else {
        let problem = format!("unknown type of watch event {event_type:?}");
        return Err(WireError::Value(problem));
    };
    Ok(event(WatchObject::Protobuf(frame.slice_ref(object))))
}

/// Makes an event of its object.
type EventOf = fn(WatchObject) -> WatchEvent;

/// Reads the frame of an event as API servers write it, without parsing the object: the
/// object's decoder rejects everything that isn't part of it.
fn frame_as_written(line: &str) -> Option<(EventOf, Range<usize>)> {
    let rest = line.strip_prefix(r#"{"type":""#)?;
    let (event_type, rest) = rest.split_once('"')?;
    let event = event_of_type(event_type)?;
    let object = rest.strip_prefix(r#","object":"#)?.strip_suffix('}')?;
    let end = line.len() - 1;
    Some((event, end - object.len()..end))
}

impl Stream for WatchStream {
    type Item = Result<WatchEvent, Error>;

    /// Yields events in order. An incomplete one at the end of the stream is dropped: the next
    /// watch sends the event again.
    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = self.get_mut();
        loop {
            if this.ended {
                return Poll::Ready(None);
            }
            if let Some(event) = this.next_event() {
                this.ended = event.is_err();
                return Poll::Ready(Some(event));
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

#[cfg(test)]
mod tests;
