//! Rules of projected volumes.

use serde_json::json;

use crate::go::names;
use crate::members::{list, text};
use crate::validation::engine::{Errors, Place};

/// The sources of a projection, in the order of errors, with the blocks of the source and of its
/// items. Those of disabled gates only exist in older objects.
const SOURCES: [(&str, &str, &str); 6] = [
    ("secret", "SecretProjection", "KeyToPath"),
    ("configMap", "SecretProjection", "KeyToPath"),
    ("downwardAPI", "", "DownwardAPIVolumeFile"),
    ("serviceAccountToken", "ServiceAccountTokenProjection", ""),
    ("clusterTrustBundle", "ClusterTrustBundleProjection", ""),
    ("podCertificate", "PodCertificateProjection", ""),
];

/// Upstream: `validateProjectionSources`.
pub(in crate::validation) fn projections(volume: &Place<'_>, errors: &mut Errors) {
    let mut paths = Vec::new();
    for (i, value) in list(volume.value, "sources").enumerate() {
        let sources = volume.member("sources");
        let source = sources.element(i, value);
        let mut count = 0;
        for (member, block, item_block) in SOURCES {
            let Some(found) = value.get(member) else {
                continue;
            };
            count += 1;
            let projection = source.member(member);
            projection.check(block, errors);
            for (i, item) in list(found, "items").enumerate() {
                let path = text(item, "path");
                // Errors don't tell which file of the downward API they mean.
                let shown = if member == "downwardAPI" {
                    projection.instead(item).check(item_block, errors);
                    path
                } else {
                    let items = projection.member("items");
                    items.element(i, item).check(item_block, errors);
                    text(found, "name")
                };
                if paths.contains(&path) {
                    let detail = "conflicting duplicate paths";
                    errors.push(volume.invalid_as(&json!(shown), detail));
                } else if !path.is_empty() {
                    paths.push(path);
                }
            }
        }
        if count > 1 {
            errors.push(source.forbidden("may not specify more than 1 volume type per source"));
        }
    }
}

/// Checks the name of a bundle, which begins with that of its signer if it has one.
///
/// Upstream: `ValidateClusterTrustBundleName`.
pub(in crate::validation) fn bundle_name(name: &Place<'_>, errors: &mut Errors) {
    let rest = name.text().rsplit(':').next().unwrap_or_default();
    let wrong = names::dns_subdomain(rest);
    let wrong = wrong
        .iter()
        .map(|why| format!("not a valid clustertrustbundlename: {why}"));
    name.invalid_for(wrong, errors);
}
