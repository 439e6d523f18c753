//! Defaults of volumes.

use serde_json::Map;
use serde_json::Value;

use super::claim::set_claim_spec_defaults;
use super::container::set_field_ref_defaults;
use super::member::Object;
use super::member::child;
use super::member::child_or_new;
use super::member::elements;
use super::member::set_if_absent;
use super::member::set_if_zero;
use super::member::text;
use crate::image::default_pull_policy;

/// File mode of volumes built from API objects: 0644.
const FILE_MODE: i32 = 420;

/// Sets the defaults of a volume.
///
/// A volume without any source becomes an empty directory. Fields unknown to this version count as
/// sources.
///
/// Upstream: `SetDefaults_Volume` and the functions for each source.
pub(super) fn set_volume_defaults(volume: &mut Object) {
    if !volume
        .iter()
        .any(|(name, source)| name != "name" && !source.is_null())
    {
        volume.insert(String::from("emptyDir"), Value::Object(Map::new()));
    }
    for source in ["secret", "configMap", "downwardAPI", "projected"] {
        if let Some(source) = child(volume, source) {
            set_if_absent(source, "defaultMode", FILE_MODE);
        }
    }
    if let Some(downward) = child(volume, "downwardAPI") {
        elements(downward, "items").for_each(set_field_ref_defaults);
    }
    if let Some(projected) = child(volume, "projected") {
        elements(projected, "sources").for_each(set_projection_defaults);
    }
    if let Some(host_path) = child(volume, "hostPath") {
        set_if_absent(host_path, "type", "");
    }
    if let Some(image) = child(volume, "image") {
        let pull_policy = default_pull_policy(text(image, "reference"));
        set_if_zero(image, "pullPolicy", pull_policy);
    }
    if let Some(template) =
        child(volume, "ephemeral").and_then(|source| child(source, "volumeClaimTemplate"))
        && let Some(spec) = child_or_new(template, "spec")
    {
        set_claim_spec_defaults(spec);
    }
    set_disk_defaults(volume);
}

fn set_projection_defaults(projection: &mut Object) {
    if let Some(downward) = child(projection, "downwardAPI") {
        elements(downward, "items").for_each(set_field_ref_defaults);
    }
    if let Some(token) = child(projection, "serviceAccountToken") {
        set_if_absent(token, "expirationSeconds", 3600);
    }
}

/// Sets the defaults of vendor-specific disk sources.
fn set_disk_defaults(volume: &mut Object) {
    if let Some(iscsi) = child(volume, "iscsi") {
        set_if_zero(iscsi, "iscsiInterface", "default");
    }
    if let Some(rbd) = child(volume, "rbd") {
        set_if_zero(rbd, "pool", "rbd");
        set_if_zero(rbd, "user", "admin");
        set_if_zero(rbd, "keyring", "/etc/ceph/keyring");
    }
    if let Some(disk) = child(volume, "azureDisk") {
        set_if_absent(disk, "cachingMode", "ReadWrite");
        set_if_absent(disk, "kind", "Shared");
        set_if_absent(disk, "fsType", "ext4");
        set_if_absent(disk, "readOnly", false);
    }
    if let Some(scale_io) = child(volume, "scaleIO") {
        set_if_zero(scale_io, "storageMode", "ThinProvisioned");
        set_if_zero(scale_io, "fsType", "xfs");
    }
}
