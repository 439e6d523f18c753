//! Long texts that share their common parts in memory.

use std::borrow::Cow;
#[cfg(any(test, feature = "testing"))]
use std::collections::HashSet;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use fastcdc::v2020::FastCDC;
use weak_table::WeakHashSet;

/// Minimum length of a chunked text, in bytes.
const LONG: usize = 32 * 1024;
/// Minimum length of a chunk, in bytes. Shorter chunks share more but cost more per byte.
const CHUNK_MIN: usize = 1024;
const CHUNK_AVERAGE: usize = 4 * 1024;
const CHUNK_MAX: usize = 16 * 1024;

/// Boxed, so that the bytes are freed with the last text that holds them, although the pool still
/// has a weak pointer.
type Chunk = Box<[u8]>;

/// The chunks of long texts, each kept only while a text holds it.
///
/// A set and its revisions have nearly the same template. Without sharing, a template of a megabyte
/// would be in memory once for the set and once for each revision.
#[derive(Debug, Default)]
pub struct TextPool {
    chunks: Mutex<WeakHashSet<Weak<Chunk>>>,
}

impl TextPool {
    /// Returns the number of chunks.
    #[cfg(any(test, feature = "testing"))]
    pub fn len(&self) -> usize {
        let chunks = self.chunks.lock().unwrap_or_else(PoisonError::into_inner);
        chunks.iter().count()
    }

    /// Returns true if no text holds a chunk.
    #[cfg(any(test, feature = "testing"))]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Splits a text into chunks. Each cut depends only on the bytes around it, so equal parts of
    /// two texts are cut alike at any offset.
    fn chunks_of(&self, text: &str) -> Box<[Arc<Chunk>]> {
        let mut pool = self.chunks.lock().unwrap_or_else(PoisonError::into_inner);
        FastCDC::new(text.as_bytes(), CHUNK_MIN, CHUNK_AVERAGE, CHUNK_MAX)
            .map(|cut| {
                let range = cut.offset..cut.offset + cut.length;
                let bytes = text.as_bytes().get(range).unwrap_or_default();
                pool.get(bytes).unwrap_or_else(|| {
                    let chunk: Arc<Chunk> = Arc::new(bytes.into());
                    pool.insert(Arc::clone(&chunk));
                    chunk
                })
            })
            .collect()
    }
}

/// A text that can share its common parts with other texts. Cloning is cheap.
#[derive(Debug, Clone)]
pub struct SharedText(Arc<Form>);

#[derive(Debug)]
enum Form {
    Whole(Box<str>),
    Chunks {
        chunks: Box<[Arc<Chunk>]>,
        /// Length in bytes.
        len: usize,
    },
}

impl SharedText {
    /// Returns the same text, sharing memory with the other texts of the pool. Returns none if the
    /// text is too short or already chunked.
    pub fn shared(&self, pool: &TextPool) -> Option<Self> {
        match &*self.0 {
            Form::Whole(text) if text.len() >= LONG => Some(Self(Arc::new(Form::Chunks {
                chunks: pool.chunks_of(text),
                len: text.len(),
            }))),
            _ => None,
        }
    }

    /// Returns the length in bytes.
    pub fn len(&self) -> usize {
        match &*self.0 {
            Form::Whole(text) => text.len(),
            Form::Chunks { len, .. } => *len,
        }
    }

    /// Returns true if the text is empty.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the text, assembled from its chunks if necessary.
    pub fn to_str(&self) -> Cow<'_, str> {
        self.get(0..self.len())
    }

    /// Returns the text in this range of bytes. Returns an empty text if the range isn't on
    /// character boundaries or exceeds the text.
    pub fn get(&self, range: Range<usize>) -> Cow<'_, str> {
        match &*self.0 {
            Form::Whole(text) => Cow::Borrowed(text.get(range).unwrap_or_default()),
            Form::Chunks { chunks, len } if range.end <= *len => {
                String::from_utf8(assemble(chunks, &range))
                    .unwrap_or_default()
                    .into()
            }
            Form::Chunks { .. } => Cow::Borrowed(""),
        }
    }

    /// Returns the number of bytes that both texts share in memory.
    #[cfg(any(test, feature = "testing"))]
    pub fn bytes_shared_with(&self, other: &Self) -> usize {
        if self.is_same(other) {
            return self.len();
        }
        let (Form::Chunks { chunks, .. }, Form::Chunks { chunks: others, .. }) =
            (&*self.0, &*other.0)
        else {
            return 0;
        };
        let others: HashSet<*const Chunk> = others.iter().map(Arc::as_ptr).collect();
        let shared = chunks
            .iter()
            .filter(|&chunk| others.contains(&Arc::as_ptr(chunk)));
        shared.map(|chunk| chunk.len()).sum()
    }

    /// Returns true if both are the same text in memory.
    pub fn is_same(&self, other: &Self) -> bool {
        match (&*self.0, &*other.0) {
            _ if Arc::ptr_eq(&self.0, &other.0) => true,
            (Form::Chunks { chunks: one, .. }, Form::Chunks { chunks: other, .. }) => {
                one.len() == other.len()
                    && one
                        .iter()
                        .zip(&**other)
                        .all(|(one, other)| Arc::ptr_eq(one, other))
            }
            _ => false,
        }
    }
}

/// Copies a range of bytes out of concatenated chunks.
fn assemble(chunks: &[Arc<Chunk>], range: &Range<usize>) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(range.len());
    let mut start = 0;
    for chunk in chunks {
        let within = range.start.saturating_sub(start).min(chunk.len())
            ..range.end.saturating_sub(start).min(chunk.len());
        bytes.extend_from_slice(chunk.get(within).unwrap_or_default());
        start += chunk.len();
    }
    bytes
}

impl PartialEq for SharedText {
    fn eq(&self, other: &Self) -> bool {
        self.len() == other.len() && (self.is_same(other) || self.to_str() == other.to_str())
    }
}

impl Eq for SharedText {}

impl PartialEq<str> for SharedText {
    fn eq(&self, other: &str) -> bool {
        self.len() == other.len() && self.to_str() == other
    }
}

impl Default for SharedText {
    fn default() -> Self {
        Self::from("")
    }
}

impl<T: Into<Box<str>>> From<T> for SharedText {
    fn from(text: T) -> Self {
        Self(Arc::new(Form::Whole(text.into())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a random text.
    fn noise(seed: u64, len: usize) -> String {
        let mut state = seed;
        std::iter::repeat_with(|| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            char::from(b'a' + ((state >> 40) % 26) as u8)
        })
        .take(len)
        .collect()
    }

    fn shared(text: &str, pool: &TextPool) -> SharedText {
        SharedText::from(text).shared(pool).unwrap()
    }

    #[test]
    fn short_texts_are_not_chunked() {
        let pool = TextPool::default();
        let text = SharedText::from(noise(1, LONG - 1));
        assert!(text.shared(&pool).is_none());
        assert!(!text.is_empty() && SharedText::default().is_empty());
        assert!(pool.is_empty());
    }

    #[test]
    fn chunked_text_equals_original() {
        let pool = TextPool::default();
        let text = format!("{}äö{}", noise(1, 50_001), noise(2, 50_000));
        let (whole, chunks) = (SharedText::from(text.as_str()), shared(&text, &pool));
        assert!(pool.len() > 10);
        assert_eq!(chunks.to_str(), text);
        assert_eq!(chunks, whole);
        assert_eq!(whole, chunks);
        assert!(chunks == *text.as_str());
        assert_ne!(chunks, SharedText::from(text.replace('ä', "ü")));
        assert!(chunks.shared(&pool).is_none());
        // As many chunks, and as long.
        let mut other = text.clone();
        other.pop();
        other.push('!');
        assert_ne!(chunks, shared(&other, &pool));
        for range in [0..1, 0..50_003, 50_001..60_000, 100_005..100_005, 7..7] {
            assert_eq!(chunks.get(range.clone()), text[range.clone()], "{range:?}");
            assert_eq!(whole.get(range.clone()), text[range]);
        }
        for range in [50_002..50_003, 0..100_006] {
            assert_eq!(chunks.get(range.clone()), "");
            assert_eq!(whole.get(range), "");
        }
    }

    #[test]
    fn common_parts_are_stored_once() {
        let pool = TextPool::default();
        let common = noise(1, 1_000_000);
        let one = shared(&format!("{{\"a\":\"{common}\"}}"), &pool);
        let before = pool.len();
        let other = shared(
            &format!("{{\"spec\":{{\"a\":\"{common}\",\"b\":1}}}}"),
            &pool,
        );
        assert!((200..400).contains(&before), "{before}");
        assert!(pool.len() <= before + 8, "{} after {before}", pool.len());
        assert_ne!(one, other);
        assert!(one.bytes_shared_with(&other) > 950_000);
        assert_eq!(one.bytes_shared_with(&one.clone()), one.len());
        assert_eq!(one.bytes_shared_with(&shared(&noise(2, LONG), &pool)), 0);
        assert_eq!(one.bytes_shared_with(&SharedText::default()), 0);
    }

    #[test]
    fn chunk_is_freed_with_its_last_text() {
        let pool = TextPool::default();
        let text = noise(1, LONG);
        let (one, other) = (shared(&text, &pool), shared(&text, &pool));
        assert!(one.is_same(&other));
        let chunks = pool.len();
        drop(one);
        assert_eq!(pool.len(), chunks);
        drop(other);
        assert!(pool.is_empty());
    }
}
