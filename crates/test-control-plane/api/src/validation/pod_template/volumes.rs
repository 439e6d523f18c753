//! Rules of volumes.

use std::collections::BTreeSet;

use kube_apimachinery::schema;
use serde_json::json;

use crate::members::{list, text};
use crate::status::FieldError;
use crate::validation::place::{Errors, Place};
use crate::validation::{names, rules};

/// Validates the volumes and returns the names of the valid ones.
///
/// Upstream: `ValidateVolumes`.
pub(super) fn validate<'a>(spec: &Place<'a>, errors: &mut Errors) -> BTreeSet<&'a str> {
    let mut names = BTreeSet::new();
    let volumes = spec.member("volumes");
    for (volume, value) in volumes.elements().zip(list(spec.value, "volumes")) {
        let before = errors.len();
        source(&volume, errors);
        let name = volume.member("name");
        if name.is_empty() {
            errors.push(name.required(""));
        } else {
            name.invalid_for(names::dns_label(name.text()), errors);
        }
        if names.contains(name.text()) {
            errors.push(name.duplicate());
        }
        if errors.len() == before {
            names.insert(text(value, "name"));
        }
    }
    names
}

/// Upstream: `validateVolumeSource`.
fn source(volume: &Place<'_>, errors: &mut Errors) {
    let members = volume.value.as_object().into_iter().flatten();
    let mut sources = members.filter(|(member, found)| *member != "name" && !found.is_null());
    let Some((member, _)) = sources.next() else {
        errors.push(volume.required("must specify a volume type"));
        return;
    };
    check_source("Volume", &volume.member(member), member, errors);
    for (member, _) in sources {
        let detail = "may not specify more than 1 volume type";
        errors.push(volume.member(member).forbidden(detail));
    }
}

/// Applies the rules for the type of a member that is a source.
fn check_source(holder: &str, source: &Place<'_>, member: &str, errors: &mut Errors) {
    let holder = schema::find_type(holder);
    let field = holder.and_then(|holder| holder.field(member));
    if let Some(found) = field.and_then(schema::Field::object_type) {
        rules::check(found.name, source, errors);
    }
}

/// Validates the files of the downward API. Their errors don't tell which file they mean.
///
/// Upstream: `validateDownwardAPIVolumeFile`.
pub(in crate::validation) fn downward_files(source: &Place<'_>, errors: &mut Errors) {
    for file in list(source.value, "items") {
        rules::check("DownwardAPIVolumeFile", &source.instead(file), errors);
    }
}

/// Upstream: `validateProjectionSources`.
pub(in crate::validation) fn projections(volume: &Place<'_>, errors: &mut Errors) {
    let mut taken = BTreeSet::new();
    let sources = volume.member("sources");
    for (source, value) in sources.elements().zip(list(volume.value, "sources")) {
        let members = value.as_object().into_iter().flatten();
        let found: Vec<_> = members.filter(|(_, found)| !found.is_null()).collect();
        for (member, found) in &found {
            check_source("VolumeProjection", &source.member(member), member, errors);
            if *member == "serviceAccountToken" {
                // Errors about the path name the volume.
                let block = "ServiceAccountTokenProjection/path";
                rules::check(block, &volume.instead(found), errors);
            }
            for target in list(found, "items").map(|item| text(item, "path")) {
                if !target.is_empty() && !taken.insert(target) {
                    let shown = match member.as_str() {
                        "downwardAPI" => target,
                        _ => text(found, "name"),
                    };
                    let detail = "conflicting duplicate paths";
                    errors.push(FieldError::invalid(volume.path(), &json!(shown), detail));
                }
            }
        }
        if found.len() > 1 {
            errors.push(source.forbidden("may not specify more than 1 volume type"));
        }
    }
}
