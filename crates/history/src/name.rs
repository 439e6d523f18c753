//! Hash and name of a revision.

use kube_apimachinery::hash::{FNV1_32_OFFSET, fnv1_32, safe_encode_string};

/// Bytes of the parent's name that fit into a revision's name.
const PARENT_NAME_BYTES_MAX: usize = 223;

/// Returns the hash of revision data: FNV-1 over the data's bytes and the decimal digits of the
/// probe, if any, in the safe alphabet (1 to 10 characters).
///
/// Upstream: `HashControllerRevision`.
pub fn hash_controller_revision(data: &str, probe: Option<i32>) -> String {
    let mut hash = fnv1_32(data.as_bytes(), FNV1_32_OFFSET);
    if let Some(probe) = probe {
        hash = fnv1_32(probe.to_string().as_bytes(), hash);
    }
    safe_encode_string(&hash.to_string())
}

/// Returns the name of a revision: the parent's name, cut to 223 bytes, a dash, and the hash.
///
/// Upstream: `ControllerRevisionName`.
pub fn controller_revision_name(parent: &str, hash: &str) -> String {
    let end_max = parent.len().min(PARENT_NAME_BYTES_MAX);
    let cut = (0..=end_max).rev().find_map(|end| parent.get(..end));
    format!("{}-{hash}", cut.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hash_equals_the_references_hash() {
        let data = r#"{"spec":{"template":{"$patch":"replace","metadata":{},"spec":{"containers":null}}}}"#;
        for (probe, hash) in [
            (Some(0), "56fdcc77f7"),
            (Some(1), "56fdcc77f6"),
            (Some(10), "5d799d9f64"),
        ] {
            assert_eq!(hash_controller_revision(data, probe), hash);
        }
        assert_eq!(hash_controller_revision("", None), "65bb57b6b5");
        assert_eq!(hash_controller_revision("", Some(100)), "5fb45d88cd");
    }

    #[test]
    fn hash_above_int32_has_no_sign() {
        // A signed number would give -2128831035.
        let hash = fnv1_32(b"", FNV1_32_OFFSET);
        assert!(i32::try_from(hash).is_err());
        assert_eq!(safe_encode_string("2166136261"), "65bb57b6b5");
        assert_eq!(hash_controller_revision("", None), "65bb57b6b5");
    }

    #[test]
    fn long_parent_names_are_cut() {
        assert_eq!(
            controller_revision_name(&"x".repeat(300), "hash").len(),
            228
        );
        assert_eq!(controller_revision_name("web", "hash"), "web-hash");
        let wide = format!("{}-hash", "é".repeat(111));
        assert_eq!(controller_revision_name(&"é".repeat(200), "hash"), wide);
    }
}
