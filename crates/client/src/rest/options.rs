//! Options of lists, watches and patches.

use kube_apimachinery::protobuf;

use crate::resource::Resource;

/// The format of a watch's objects.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum MediaType {
    /// JSON.
    #[default]
    Json,
    /// Protobuf; JSON from a server that doesn't offer it.
    Protobuf,
}

impl MediaType {
    /// Returns its name in headers and flags.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Json => "application/json",
            Self::Protobuf => protobuf::MEDIA_TYPE,
        }
    }

    /// Returns the `Accept` header. Servers that weigh both formats alike may respond with either.
    pub(super) const fn accept(self) -> &'static str {
        match self {
            Self::Json => self.name(),
            Self::Protobuf => "application/vnd.kubernetes.protobuf,application/json;q=0.9",
        }
    }
}

/// The kind of a PATCH body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PatchType {
    /// Lists are merged by the key in the type's schema.
    Strategic,
    /// RFC 7386: lists are replaced.
    Merge,
}

impl PatchType {
    /// Returns its content type.
    pub const fn content_type(self) -> &'static str {
        match self {
            Self::Strategic => "application/strategic-merge-patch+json",
            Self::Merge => "application/merge-patch+json",
        }
    }
}

/// Selects objects of a list or watch by labels and fields.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Selectors {
    /// A label selector, such as `app=web`; empty for all objects.
    pub labels: String,
    /// A field selector, such as `metadata.name=web`; empty for all objects.
    pub fields: String,
}

impl Selectors {
    /// Sets the label selector; empty for all objects.
    #[must_use]
    pub fn labels(mut self, labels: impl Into<String>) -> Self {
        self.labels = labels.into();
        self
    }

    /// Sets the field selector; empty for all objects.
    #[must_use]
    pub fn fields(mut self, fields: impl Into<String>) -> Self {
        self.fields = fields.into();
        self
    }

    fn push(&self, query: &mut String) {
        for (name, selector) in [
            ("labelSelector", &self.labels),
            ("fieldSelector", &self.fields),
        ] {
            if !selector.is_empty() {
                push(query, name, selector);
            }
        }
    }
}

/// One page of a list.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ListOptions {
    /// One namespace; empty for all.
    pub namespace: String,
    /// Maximum number of objects in the response; 0 for no limit.
    pub limit: u32,
    /// Continue token of the previous page; empty for the first page.
    pub continue_token: String,
    /// See [`Shard::selector`](crate::shard::Shard::selector); empty for all objects.
    pub shard_selector: String,
    /// The labels and fields of the objects.
    pub selectors: Selectors,
}

impl ListOptions {
    /// Sets the namespace; empty for all.
    #[must_use]
    pub fn namespace(mut self, namespace: impl Into<String>) -> Self {
        self.namespace = namespace.into();
        self
    }

    /// Sets the maximum number of objects in the response; 0 for no limit.
    #[must_use]
    pub fn limit(mut self, limit: u32) -> Self {
        self.limit = limit;
        self
    }

    /// Continues after the page with this token.
    #[must_use]
    pub fn continue_token(mut self, continue_token: impl Into<String>) -> Self {
        self.continue_token = continue_token.into();
        self
    }

    /// Sets the selector of a shard; empty for all objects.
    #[must_use]
    pub fn shard_selector(mut self, shard_selector: impl Into<String>) -> Self {
        self.shard_selector = shard_selector.into();
        self
    }

    /// Sets the labels and fields of the objects.
    #[must_use]
    pub fn selectors(mut self, selectors: Selectors) -> Self {
        self.selectors = selectors;
        self
    }

    /// Returns path and query, with this shard selector instead of that of the options.
    pub(super) fn target(&self, resource: &Resource, shard_selector: &str) -> String {
        let mut query = String::new();
        if self.limit > 0 {
            push(&mut query, "limit", &self.limit.to_string());
        }
        if !self.continue_token.is_empty() {
            push(&mut query, "continue", &self.continue_token);
        }
        if !shard_selector.is_empty() {
            push(&mut query, "shardSelector", shard_selector);
        }
        self.selectors.push(&mut query);
        resource.collection_path(&self.namespace) + &query
    }
}

/// A watch from a known version.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct WatchOptions {
    /// One namespace; empty for all.
    pub namespace: String,
    /// The server sends events after this version.
    pub resource_version: String,
    /// Time after which the server ends the stream, in seconds.
    pub timeout_seconds: u32,
    /// True to allow bookmarks.
    pub allow_bookmarks: bool,
    /// See [`Shard::selector`](crate::shard::Shard::selector); empty for all objects.
    pub shard_selector: String,
    /// The preferred format.
    pub media_type: MediaType,
    /// The labels and fields of the objects.
    pub selectors: Selectors,
}

impl WatchOptions {
    /// Sets the namespace; empty for all.
    #[must_use]
    pub fn namespace(mut self, namespace: impl Into<String>) -> Self {
        self.namespace = namespace.into();
        self
    }

    /// Sets the version after which the events begin.
    #[must_use]
    pub fn resource_version(mut self, resource_version: impl Into<String>) -> Self {
        self.resource_version = resource_version.into();
        self
    }

    /// Sets the time after which the server ends the stream, in seconds.
    #[must_use]
    pub fn timeout_seconds(mut self, timeout_seconds: u32) -> Self {
        self.timeout_seconds = timeout_seconds;
        self
    }

    /// Allows bookmarks, or not.
    #[must_use]
    pub fn allow_bookmarks(mut self, allow_bookmarks: bool) -> Self {
        self.allow_bookmarks = allow_bookmarks;
        self
    }

    /// Sets the selector of a shard; empty for all objects.
    #[must_use]
    pub fn shard_selector(mut self, shard_selector: impl Into<String>) -> Self {
        self.shard_selector = shard_selector.into();
        self
    }

    /// Sets the preferred format.
    #[must_use]
    pub fn media_type(mut self, media_type: MediaType) -> Self {
        self.media_type = media_type;
        self
    }

    /// Sets the labels and fields of the objects.
    #[must_use]
    pub fn selectors(mut self, selectors: Selectors) -> Self {
        self.selectors = selectors;
        self
    }

    /// Returns path and query, with this shard selector instead of that of the options.
    pub(super) fn target(&self, resource: &Resource, shard_selector: &str) -> String {
        let mut query = String::new();
        push(&mut query, "watch", "true");
        push(&mut query, "resourceVersion", &self.resource_version);
        push(
            &mut query,
            "timeoutSeconds",
            &self.timeout_seconds.to_string(),
        );
        if self.allow_bookmarks {
            push(&mut query, "allowWatchBookmarks", "true");
        }
        if !shard_selector.is_empty() {
            push(&mut query, "shardSelector", shard_selector);
        }
        self.selectors.push(&mut query);
        resource.collection_path(&self.namespace) + &query
    }
}

/// Appends a query parameter with escaping.
fn push(query: &mut String, name: &str, value: &str) {
    query.push(if query.is_empty() { '?' } else { '&' });
    query.push_str(name);
    query.push('=');
    for byte in value.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            query.push(char::from(byte));
        } else {
            let digit = |nibble: u8| char::from_digit(u32::from(nibble), 16).unwrap_or('0');
            query.push('%');
            query.push(digit(byte >> 4).to_ascii_uppercase());
            query.push(digit(byte & 0xf).to_ascii_uppercase());
        }
    }
}
