//! Lines of a JSON watch.

use bytes::{Bytes, BytesMut};
use serde::Deserialize;

/// The annotation of the bookmark that ends the initial events.
const INITIAL_EVENTS_END: &[u8] = b"k8s.io/initial-events-end";

/// An event as sent.
#[derive(Clone, Debug, Default)]
pub(super) struct Line {
    /// The text, including the line feed.
    pub(super) text: Bytes,
    /// The event's type; empty for the rest of a partly sent line.
    pub(super) event_type: String,
}

/// Name and namespace of an event's object; for a table, those of its first row.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct EventMetadata {
    pub(super) name: String,
    pub(super) namespace: String,
}

#[derive(Deserialize)]
struct TypeOnly {
    #[serde(rename = "type")]
    event_type: String,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct WithObject {
    object: ObjectOnly,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct ObjectOnly {
    metadata: EventMetadata,
    rows: Vec<RowOnly>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct RowOnly {
    object: Option<RowObject>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct RowObject {
    metadata: EventMetadata,
}

impl Line {
    fn new(text: Bytes) -> Self {
        // The server writes the type first. If it doesn't, the whole line is parsed.
        let event_type = text
            .strip_prefix(b"{\"type\":\"")
            .and_then(|rest| rest.split(|byte| *byte == b'"').next())
            .map(|found| String::from_utf8_lossy(found).into_owned())
            .or_else(|| {
                let found: TypeOnly = serde_json::from_slice(&text).ok()?;
                Some(found.event_type)
            });
        Self {
            text,
            event_type: event_type.unwrap_or_default(),
        }
    }

    pub(super) fn is_bookmark(&self) -> bool {
        self.event_type == "BOOKMARK"
    }

    /// Reports whether the line ends the initial events.
    pub(super) fn ends_initial_events(&self) -> bool {
        self.is_bookmark()
            && self
                .text
                .windows(INITIAL_EVENTS_END.len())
                .any(|part| part == INITIAL_EVENTS_END)
    }

    /// Reports whether the line is an event and no bookmark.
    pub(super) fn is_event(&self) -> bool {
        !self.event_type.is_empty() && !self.is_bookmark()
    }

    pub(super) fn metadata(&self) -> EventMetadata {
        let line: WithObject = serde_json::from_slice(&self.text).unwrap_or_default();
        let mut object = line.object;
        if !object.metadata.name.is_empty() || object.rows.is_empty() {
            return object.metadata;
        }
        object.rows.remove(0).object.unwrap_or_default().metadata
    }
}

/// Splits a stream into lines.
#[derive(Debug, Default)]
pub(super) struct Splitter {
    buffer: BytesMut,
    /// True if the beginning of the next line was sent already.
    mid_line: bool,
}

impl Splitter {
    /// Records a chunk that was sent unchanged.
    pub(super) fn passed(&mut self, chunk: &[u8]) {
        if let Some(last) = chunk.last() {
            self.mid_line = *last != b'\n';
        }
    }

    pub(super) fn push(&mut self, chunk: &[u8]) {
        self.buffer.extend_from_slice(chunk);
    }

    /// Returns the next complete line.
    pub(super) fn next(&mut self) -> Option<Line> {
        let end = self.buffer.iter().position(|byte| *byte == b'\n')?;
        let text = self.buffer.split_to(end + 1).freeze();
        if std::mem::take(&mut self.mid_line) {
            return Some(Line {
                text,
                ..Line::default()
            });
        }
        Some(Line::new(text))
    }

    /// Reports whether the buffer is empty.
    pub(super) fn is_empty(&self) -> bool {
        self.buffer.is_empty()
    }

    /// Returns the incomplete last line.
    pub(super) fn rest(&mut self) -> Bytes {
        self.buffer.split().freeze()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_are_split_into_lines() {
        let mut splitter = Splitter::default();
        splitter.passed(b"{\"type\":\"ADDED\",");
        splitter.push(b"\"object\":{}}\n{\"type\":\"BOOKMARK\",\"object\":{}}\n{\"obj");
        let rest = splitter.next().unwrap();
        assert_eq!((rest.event_type.as_str(), rest.is_event()), ("", false));
        assert!(splitter.next().unwrap().is_bookmark());
        assert!(splitter.next().is_none());
        splitter.push(b"ect\":{\"metadata\":{\"name\":\"a\"}},\"type\":\"DELETED\"}\n");
        let line = splitter.next().unwrap();
        assert_eq!(line.event_type, "DELETED");
        assert_eq!(line.metadata().name, "a");
        assert!(splitter.is_empty());
    }

    #[test]
    fn table_metadata_comes_from_its_row() {
        let text = br#"{"type":"ADDED","object":{"metadata":{"resourceVersion":"5"},"rows":[{"object":{"metadata":{"name":"a","namespace":"x"}}}]}}"#;
        let line = Line::new(Bytes::from_static(text));
        let metadata = line.metadata();
        assert_eq!(
            (metadata.name.as_str(), metadata.namespace.as_str()),
            ("a", "x")
        );
    }
}
