//! The provenance: an in-toto statement with the predicate of SLSA 1.0, which cosign signs.

use serde_json::{Value, json};

use crate::digest::Digest;
use crate::release::Release;

/// Type of the statement.
pub const STATEMENT: &str = "https://in-toto.io/Statement/v1";
/// Type of its predicate.
pub const PREDICATE: &str = "https://slsa.dev/provenance/v1";

/// The statement that this build made these files from this commit.
///
/// It names no time and no machine, so that a second build states the same; the signature on it has
/// both.
pub fn statement(
    release: &Release,
    compiler: &str,
    lock_file: &Digest,
    files: &[(String, Digest)],
) -> Value {
    let subjects: Vec<Value> = files
        .iter()
        .map(|(name, digest)| json!({"name": name, "digest": {"sha256": digest.to_string()}}))
        .collect();
    json!({
        "_type": STATEMENT,
        "subject": subjects,
        "predicateType": PREDICATE,
        "predicate": {
            "buildDefinition": {
                "buildType": format!("{}/docs/releasing.md", release.source),
                "externalParameters": {
                    "command": format!("make release VERSION={}", release.version),
                    "source": format!("git+{}@{}", release.source, release.commit),
                },
                "internalParameters": {"SOURCE_DATE_EPOCH": release.seconds},
                "resolvedDependencies": [
                    {
                        "uri": format!("git+{}", release.source),
                        "digest": {"gitCommit": release.commit},
                    },
                    {
                        "name": "Cargo.lock",
                        "digest": {"sha256": lock_file.to_string()},
                    },
                    {"name": compiler},
                ],
            },
            "runDetails": {
                "builder": {"id": format!("{}/hack/release.sh", release.source)},
            },
        },
    })
}
