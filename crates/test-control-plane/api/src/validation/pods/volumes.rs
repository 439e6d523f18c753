//! Rules of volumes.

use std::sync::LazyLock;

use regex::Regex;
use serde_json::{Value, json};

use crate::go::{names, pattern};
use crate::members::{list, text, text_at};
use crate::validation::engine::{Errors, Place, Pod};

/// Maximum length of a volume's name and its portal, in bytes.
const PORTAL_MAX: usize = 64;

/// Maximum length of a tenant, in bytes.
const TENANT_MAX: usize = 64;

/// The forms of iSCSI names. It is immutable.
static ISCSI_NAME: LazyLock<Option<Regex>> = LazyLock::new(|| {
    let iqn = r"(iqn(?s:.*))?iqn\.\d{4}-\d{2}\.[[:alnum:].-]+:[^,;*&$|\s]+";
    let forms = format!("^(eui.[[:alnum:]]{{16}}|naa.[[:alnum:]]{{32}}|{iqn})$");
    pattern::compile(&forms).ok()
});

/// The kinds of iSCSI names.
const ISCSI_TYPES: [&str; 3] = ["iqn", "eui", "naa"];

/// Returns the volumes of a pod: those of the claims, and those of its spec that they don't replace.
fn all<'a>(pod: &Pod<'a>, claims: &'a [Value]) -> impl Iterator<Item = &'a Value> {
    let is_replaced = move |volume: &&Value| pod.claims.contains(&text(volume, "name"));
    let own = list(pod.spec, "volumes").filter(move |volume| !is_replaced(volume));
    claims.iter().chain(own.collect::<Vec<_>>())
}

/// Upstream: `volumesToAddForTemplates`.
fn of_claims(claims: &[&str]) -> Vec<Value> {
    let volume = |name: &&str| json!({"name": name, "persistentVolumeClaim": {"claimName": name}});
    claims.iter().map(volume).collect()
}

/// Upstream: `ValidateVolumes`.
pub(in crate::validation) fn volumes(volumes: &Place<'_>, errors: &mut Errors) {
    let Some(pod) = &volumes.context.pod else {
        return;
    };
    let claims = of_claims(pod.claims);
    let found: Vec<&Value> = all(pod, &claims).collect();
    let owner = text(pod.metadata, "name");
    let ephemeral = found
        .iter()
        .filter(|volume| volume.get("ephemeral").is_some());
    let created: Vec<String> = ephemeral
        .filter(|_| pod.is_whole && !owner.is_empty())
        .map(|volume| format!("{owner}-{}", text(volume, "name")))
        .collect();
    let mut names = Vec::new();
    for (i, value) in found.into_iter().enumerate() {
        let volume = volumes.element(i, value);
        let name = text(value, "name");
        let before = errors.len();
        volume.check("Volume", errors);
        if names.contains(&name) {
            errors.push(volume.member("name").duplicate());
        }
        if errors.len() == before {
            names.push(name);
        }
        let claim = volume.member("persistentVolumeClaim.claimName");
        if created.iter().any(|created| created == claim.text()) {
            let detail = "must not reference a PVC that gets created for an ephemeral volume";
            errors.push(claim.invalid(detail));
        }
    }
}

/// Returns true for a volume that is a claim, false for another one, and `None` if the pod has no
/// valid volume of this name.
fn is_claim(of: &Place<'_>, name: &str) -> Option<bool> {
    let pod = of.context.pod.as_ref()?;
    if pod.claims.contains(&name) {
        return names::dns_label(name).is_empty().then_some(true);
    }
    let mut same = list(pod.spec, "volumes").filter(|volume| text(volume, "name") == name);
    let volume = same.find(|volume| {
        let place = Place::root(of.context, volume, None, "");
        !of.context.rules.breaks("Volume", &place)
    })?;
    let kinds = ["persistentVolumeClaim", "ephemeral"];
    Some(kinds.iter().any(|kind| volume.get(*kind).is_some()))
}

/// Rejects the name of no volume.
pub(in crate::validation) fn known_volume(name: &Place<'_>, errors: &mut Errors) {
    if is_claim(name, name.text()).is_none() {
        errors.push(name.not_found());
    }
}

/// Rejects the name of a volume that can't be a block device.
pub(in crate::validation) fn block_volume(name: &Place<'_>, errors: &mut Errors) {
    match is_claim(name, name.text()) {
        None => errors.push(name.not_found()),
        Some(true) => {}
        Some(false) => {
            let detail = "can only use volume source type of PersistentVolumeClaim or Ephemeral \
                          for block mode";
            name.invalid_for([detail], errors);
        }
    }
}

/// Rejects a volume whose claim can't have its name.
pub(in crate::validation) fn created_claim(name: &Place<'_>, errors: &mut Errors) {
    let Some(pod) = name.context.pod.filter(|pod| pod.is_whole) else {
        return;
    };
    let owner = text(pod.metadata, "name");
    if owner.is_empty() || name.is_empty() {
        return;
    }
    let claim = format!("{owner}-{}", name.text());
    let wrong = names::dns_subdomain(&claim).into_iter();
    name.invalid_for(
        wrong.map(|why| format!("PVC name {claim:?}: {why}")),
        errors,
    );
}

/// Rejects a file reference to another volume than an empty directory.
///
/// Upstream: `validateFileKeyRefVolumes`.
pub(in crate::validation) fn empty_directory(name: &Place<'_>, errors: &mut Errors) {
    let Some(pod) = &name.context.pod else {
        return;
    };
    let mut same = list(pod.spec, "volumes").filter(|volume| text(volume, "name") == name.text());
    // The last volume of a name counts.
    match same.next_back() {
        _ if pod.claims.contains(&name.text()) => {
            errors.push(name.invalid("referenced volume must be of type emptyDir"));
        }
        None => errors.push(name.not_found()),
        Some(volume) if volume.get("emptyDir").is_some() => {}
        Some(_) => errors.push(name.invalid("referenced volume must be of type emptyDir")),
    }
}

pub(in crate::validation) fn long_portal(name: &Place<'_>, errors: &mut Errors) {
    let volume = name.up().map_or(&Value::Null, |volume| volume.value);
    let portal = text_at(volume, "/iscsi/targetPortal");
    if name.text().len() + 1 + portal.len() > PORTAL_MAX {
        let detail = "Total length of <volume name>:<iscsi.targetPortal> must be under 64 \
                      characters if iscsi.initiatorName is specified.";
        name.invalid_for([detail], errors);
    }
}

pub(in crate::validation) fn iscsi_name(name: &Place<'_>, errors: &mut Errors) {
    let text = name.text();
    if !ISCSI_TYPES.iter().any(|kind| text.starts_with(kind)) {
        name.invalid_for(
            ["must be valid format starting with iqn, eui, or naa"],
            errors,
        );
    } else if !ISCSI_NAME.as_ref().is_some_and(|form| form.is_match(text)) {
        name.invalid_for(["must be valid format"], errors);
    }
}

/// Upstream: `validateQuobyteVolumeSource`, for a registry.
pub(in crate::validation) fn quobyte(volume: &Place<'_>, errors: &mut Errors) {
    let [tenant, registry] = ["tenant", "registry"].map(|member| volume.member(member));
    if tenant.text().len() > TENANT_MAX {
        let detail = "must be a UUID and may not exceed a length of 64 characters";
        errors.push(tenant.required(detail));
        return;
    }
    for pair in registry.text().split(',') {
        if !is_host_and_port(pair) {
            let detail = "must be a host:port pair or multiple pairs separated by commas";
            registry.invalid_for([detail], errors);
        }
    }
}

/// Upstream: `net.SplitHostPort`.
fn is_host_and_port(text: &str) -> bool {
    let Some((host, port)) = text.rsplit_once(':') else {
        return false;
    };
    let inner = match host.strip_prefix('[') {
        Some(rest) => rest.strip_suffix(']'),
        None => Some(host).filter(|host| !host.contains(':')),
    };
    let has_bracket = |text: &str| text.contains(['[', ']']);
    inner.is_some_and(|inner| !has_bracket(inner)) && !has_bracket(port)
}

pub(in crate::validation) fn reserved_options(options: &Place<'_>, errors: &mut Errors) {
    for (key, option) in options.entries() {
        let namespace = key.split('/').next().unwrap_or_default();
        let domain = format!(".{}", namespace.to_lowercase());
        if [".kubernetes.io", ".k8s.io"]
            .iter()
            .any(|end| domain.ends_with(end))
        {
            errors.push(option.invalid_as(
                &json!(key),
                "kubernetes.io and k8s.io namespaces are reserved",
            ));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::validation::tests::details;

    #[test]
    fn iscsi_names_have_one_of_three_forms() {
        for name in [
            "iqn.2001-04.com.example:storage.disk1",
            "eui.0123456789abcdef",
            "naa.0123456789abcdef0123456789abcdef",
        ] {
            assert_eq!(details(iscsi_name, &json!(name)), [""; 0], "{name}");
        }
        for name in [
            "iqn.2001-04.com.example",
            "iqn.2001-04.a:b c",
            "eui.0123",
            "naa.",
            "iqn",
        ] {
            assert_eq!(details(iscsi_name, &json!(name)).len(), 1, "{name}");
        }
    }

    #[test]
    fn pairs_have_a_host_and_a_port() {
        for pair in ["a:1", ":", "[::1]:80", "a:"] {
            assert!(is_host_and_port(pair), "{pair}");
        }
        for pair in ["", "a", "a:b:c", "::1", "[::1]", "[a:1"] {
            assert!(!is_host_and_port(pair), "{pair}");
        }
    }
}
