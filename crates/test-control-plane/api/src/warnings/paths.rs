//! Warnings about the paths of the files in a volume.

use serde_json::Value;

use crate::members::{list, text};

/// A file in a volume: its path, and a description of its source.
#[derive(Clone, PartialEq, Eq)]
struct File {
    path: String,
    source: String,
}

impl File {
    fn new(path: &str, source: &str) -> Self {
        Self {
            path: path.trim_end_matches('/').to_owned(),
            source: source.to_owned(),
        }
    }

    fn shown(&self) -> String {
        match &*self.source {
            "" => format!("{:?}", self.path),
            source => format!("{:?} ({source})", self.path),
        }
    }

    /// Returns true if one path contains the other one.
    fn overlaps(&self, other: &Self) -> bool {
        let [mine, others] = [self, other].map(|file| format!("{}/", file.path));
        let is_named = !self.path.is_empty() && !other.path.is_empty();
        is_named && (mine.starts_with(&others) || others.starts_with(&mine))
    }
}

/// Warns about files of a volume with the same path, or with paths that contain others.
///
/// Upstream: `warningsForOverlappingVirtualPaths`.
pub(super) fn of_volume(volume: &Value, found: &mut Vec<String>) {
    let name = text(volume, "name");
    for (member, title, named_by) in [
        ("configMap", "ConfigMap", "name"),
        ("secret", "Secret", "secretName"),
        ("downwardAPI", "DownwardAPI", ""),
    ] {
        if let Some(source) = volume.get(member) {
            let description = describe(title, source, named_by);
            warn(name, &description, &items(source, ""), found);
        }
    }
    let Some(projected) = volume.get("projected") else {
        return;
    };
    let mut files = Vec::new();
    for source in list(projected, "sources") {
        if source
            .as_object()
            .is_none_or(|members| members.values().all(Value::is_null))
        {
            found.push(format!(
                "volume {name:?} (Projected) has no sources provided"
            ));
            continue;
        }
        files.extend(projected_files(source));
    }
    warn(name, "Projected", &files, found);
}

/// Describes a source, by the name in one of its fields.
fn describe(title: &str, source: &Value, named_by: &str) -> String {
    match named_by {
        "" => title.to_owned(),
        member => format!("{title} {:?}", text(source, member)),
    }
}

fn items(source: &Value, description: &str) -> Vec<File> {
    let items = list(source, "items");
    items
        .map(|item| File::new(text(item, "path"), description))
        .collect()
}

/// Returns the files of one source of a projected volume.
fn projected_files(source: &Value) -> Vec<File> {
    for (member, title, named_by) in [
        ("configMap", "ConfigMap", "name"),
        ("secret", "Secret", "name"),
        ("downwardAPI", "DownwardAPI", ""),
    ] {
        let inner = source
            .get(member)
            .filter(|inner| inner.get("items").is_some());
        if let Some(inner) = inner {
            return items(inner, &describe(title, inner, named_by));
        }
    }
    if let Some(token) = source.get("serviceAccountToken") {
        return vec![File::new(text(token, "path"), "ServiceAccountToken")];
    }
    if let Some(bundle) = source.get("clusterTrustBundle") {
        let named_by = if bundle.get("name").is_some() {
            "name"
        } else {
            "signerName"
        };
        let description = describe("ClusterTrustBundle", bundle, named_by);
        return vec![File::new(text(bundle, "path"), &description)];
    }
    let certificate = source.get("podCertificate");
    let members = [
        ("certificateChainPath", "chain"),
        ("keyPath", "key"),
        ("credentialBundlePath", "credential bundle"),
    ];
    let files = members.iter().filter_map(|(member, noun)| {
        let path = text(certificate?, member);
        (!path.is_empty()).then(|| File::new(path, &format!("PodCertificate {noun}")))
    });
    files.collect()
}

fn warn(volume: &str, description: &str, files: &[File], found: &mut Vec<String>) {
    for (i, file) in files.iter().enumerate() {
        for other in files.iter().take(i).filter(|other| file.overlaps(other)) {
            found.push(format!(
                "volume {volume:?} ({description}): overlapping paths: {} with {}",
                file.shown(),
                other.shown()
            ));
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn paths_should_not_overlap() {
        let sources = json!([
            {},
            {"configMap": {"name": "a", "items": [{"path": "x/y"}, {"path": "z"}]}},
            {"serviceAccountToken": {"path": "x"}},
        ]);
        let volume = json!({"name": "v", "projected": {"sources": sources}});
        let mut found = Vec::new();
        of_volume(&volume, &mut found);
        let expected = [
            "volume \"v\" (Projected) has no sources provided",
            "volume \"v\" (Projected): overlapping paths: \"x\" (ServiceAccountToken) with \
             \"x/y\" (ConfigMap \"a\")",
        ];
        assert_eq!(found, expected);
    }
}
