//! `/metrics`: the emulated version and the number of stored objects.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;

use http::header::CONTENT_TYPE;
use http::{HeaderValue, StatusCode};

use crate::reply::{self, Reply};
use crate::state::Reads;

const CONTENT_TYPE_OF_METRICS: &str =
    "text/plain; version=0.0.4; charset=utf-8; escaping=underscores";

/// Returns the metrics in text format.
pub(super) fn metrics(reads: &Reads) -> Reply {
    let mut counts: BTreeMap<Arc<str>, usize> = BTreeMap::new();
    for object in reads.store.all().1 {
        *counts.entry(Arc::clone(&object.key.storage)).or_default() += 1;
    }
    let mut text = "# HELP apiserver_storage_objects [STABLE] Number of stored objects by \
                    resource.\n# TYPE apiserver_storage_objects gauge\n"
        .to_owned();
    for (resource, count) in counts {
        // A write to a string can't fail.
        let _ = writeln!(
            text,
            "apiserver_storage_objects{{resource=\"{resource}\"}} {count}"
        );
    }
    text += "# HELP kubernetes_build_info [ALPHA] The version of Kubernetes that is \
             imitated.\n# TYPE kubernetes_build_info gauge\n";
    let version = reads.behaviour().version;
    let (full, minor) = (version.git_version(), version.minor());
    let _ = writeln!(
        text,
        "kubernetes_build_info{{git_version=\"{full}\",major=\"1\",minor=\"{minor}\"}} 1"
    );
    let mut reply = reply::text(StatusCode::OK, text);
    let media_type = HeaderValue::from_static(CONTENT_TYPE_OF_METRICS);
    reply.headers_mut().insert(CONTENT_TYPE, media_type);
    reply
}
