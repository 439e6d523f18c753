//! Tests of the table: completeness and consistency.

use std::collections::{BTreeMap, BTreeSet};

use super::*;
use crate::schema::table::parse_block;

const VERSIONS: [Version; 2] = [Version::V1_36, Version::V1_37];

fn types_of(version: Version) -> impl Iterator<Item = &'static Type> {
    let names: BTreeSet<&str> = version.table().types.keys().copied().collect();
    names
        .into_iter()
        .map(move |name| version.find_type(name).unwrap())
}

fn types() -> impl Iterator<Item = &'static Type> {
    VERSIONS.into_iter().flat_map(types_of)
}

fn members() -> impl Iterator<Item = (&'static Type, &'static Field)> {
    types().flat_map(|found| found.fields.iter().map(move |field| (found, field)))
}

#[test]
fn every_line_parses_and_every_type_exists() {
    for version in VERSIONS {
        assert_eq!(version.table().types.len(), sources::blocks().count());
        for block in sources::blocks() {
            assert_eq!(parse_block(block, version).err(), None);
        }
    }
    for (holder, field) in members() {
        if let Kind::Struct(inner) = field.kind {
            assert_eq!(inner.version, holder.version);
            let found = inner.find().is_some();
            assert!(found, "{}.{}: {inner:?}", holder.name, field.name);
        }
    }
    assert!(Version::V1_36.table().types.len() > 250);
    assert!(members().count() > 2400);
}

#[test]
fn later_version_only_adds_members() {
    let [older, newer] = VERSIONS.map(|version| {
        let names =
            types_of(version).flat_map(|of| of.fields.iter().map(|field| (of.name, field.name)));
        names.collect::<Vec<_>>()
    });
    assert!(older.iter().all(|member| newer.contains(member)));
    let added = newer.iter().filter(|member| !older.contains(member));
    let mut added: Vec<String> = added.map(|(of, name)| format!("{of}.{name}")).collect();
    added.sort();
    let expected = [
        "ClusterTrustBundleProjection.user",
        "ConfigMapVolumeSource.defaultUser",
        "DownwardAPIVolumeFile.user",
        "DownwardAPIVolumeSource.defaultUser",
        "EmptyDirVolumeSource.mode",
        "GRPCAction.mode",
        "HTTPGetAction.protocol",
        "KeyToPath.user",
        "PersistentVolumeClaimStatus.healthStatus",
        "PodCertificateProjection.user",
        "PodSpec.evictionResponders",
        "PodStatus.volumeHealth",
        "ProjectedVolumeSource.defaultUser",
        "SecretVolumeSource.defaultUser",
        "ServiceAccountTokenProjection.user",
        "VolumeMount.bindMountOptions",
    ];
    assert_eq!(added, expected);
    let kinds = VERSIONS.map(|version| version.table().kinds.len());
    assert_eq!(kinds[0], kinds[1]);
}

#[test]
fn versions_drop_members_of_later_ones() {
    let spec = json!({
        "containers": [{"name": "c", "resources": {}, "future": 1,
            "volumeMounts": [{"name": "v", "mountPath": "/v", "bindMountOptions": ["noexec"]}]}],
        "evictionResponders": [{"name": "a.example/b", "priority": 1}],
        "volumes": [{"name": "v", "emptyDir": {"mode": 448}}],
    });
    let in_version = |minor| {
        let version = Version::of_minor(minor);
        let of = version.find_type("PodSpec").unwrap();
        let known = normalize(of, &spec, UnknownMembers::Drop, "").unwrap();
        let mut dropped = spec.clone();
        assert!(drop_unknown_members(of, &mut dropped));
        assert_eq!(known, dropped, "{minor}");
        let unknown = unknown_members(of, &spec);
        (known, unknown.len())
    };
    let mut expected = spec.clone();
    let container = expected["containers"][0].as_object_mut().unwrap();
    container.remove("future");
    assert_eq!(in_version(37), (expected.clone(), 1));
    expected
        .as_object_mut()
        .unwrap()
        .remove("evictionResponders");
    expected["volumes"][0]["emptyDir"] = json!({});
    let mount = &mut expected["containers"][0]["volumeMounts"][0];
    mount.as_object_mut().unwrap().remove("bindMountOptions");
    for minor in [33, 36] {
        assert_eq!(in_version(minor), (expected.clone(), 4));
    }
    let wrong = json!({"volumes": [{"name": "v", "emptyDir": {"mode": "x"}}]});
    let of = Version::V1_37.find_type("PodSpec").unwrap();
    assert!(normalize(of, &wrong, UnknownMembers::Drop, "").is_err());
    assert!(normalize("PodSpec", &wrong, UnknownMembers::Drop, "").is_ok());
}

#[test]
fn names_and_numbers_are_unique_per_type() {
    for found in types() {
        let mut names = BTreeMap::new();
        let mut numbers = BTreeMap::new();
        for field in &found.fields {
            let before = names.insert(field.name, field);
            assert_eq!(before, None, "{}.{}", found.name, field.name);
            let Some(tag) = field.tag else { continue };
            let before = numbers.insert(tag, field);
            assert_eq!(before, None, "{}.{}", found.name, field.name);
            // The number of an embedded struct must not be a field's.
            let [outer, inner] = tag.outer;
            let around = [
                outer.map(|number| ([None, None], number)),
                inner.map(|number| ([outer, None], number)),
            ];
            for (outer, number) in around.into_iter().flatten() {
                let clash = numbers.get(&Tag { outer, number });
                assert_eq!(clash, None, "{}.{}", found.name, field.name);
            }
            assert!(outer.is_none() || field.embedded.is_some());
        }
    }
}

#[test]
fn lists_of_objects_have_valid_merge_keys() {
    for (holder, field) in members() {
        let name = format!("{}.{}", holder.name, field.name);
        let elements = field.object_type();
        let is_list = field.shape == Shape::List;
        assert!(
            !is_list || elements.is_none() || field.topology.is_some(),
            "{name}"
        );
        if let Topology::Keyed(keys) = field.topology() {
            let elements = elements.expect("elements with keys are objects");
            for key in keys {
                assert!(elements.field(key.name).is_some(), "{name}: {}", key.name);
            }
        }
        if let PatchStrategy::MergeBy(key) = field.patch_strategy() {
            let elements = elements.expect("elements with keys are objects");
            assert!(is_list && elements.field(key).is_some(), "{name}: {key}");
        }
        let is_set = field.topology() == &Topology::Set;
        assert!(!is_set || is_list && elements.is_none(), "{name}");
    }
}

#[test]
fn kinds_have_type_and_object_metadata() {
    for ((api_version, kind), type_name) in &Version::V1_36.table().kinds {
        let found = type_of_kind(api_version, kind).unwrap();
        assert_eq!((found.name, found.go_name()), (*type_name, *kind));
        assert_eq!(found.api_version, Some(*api_version));
        let is_options = *kind == "DeleteOptions";
        for member in ["kind", "apiVersion", "metadata"] {
            let known = found.field(member).is_some();
            assert!(
                known || is_options && member == "metadata",
                "{kind}.{member}"
            );
        }
    }
    assert_eq!(type_of_kind("v1", "Event").unwrap().name, "Event");
    let newer = type_of_kind("events.k8s.io/v1", "Event").unwrap();
    assert_eq!(newer.name, "events/Event");
    assert!(type_of_kind("policy/v1", "DeleteOptions").is_some());
    assert!(type_of_kind("apps/v1", "Pod").is_none());
}

fn field(type_name: &str, member: &str) -> &'static Field {
    find_type(type_name).unwrap().field(member).unwrap()
}

#[test]
fn members_merge_as_documented() {
    let ports = field("Container", "ports");
    let keys = vec![
        ListKey {
            name: "containerPort",
            default: None,
        },
        ListKey {
            name: "protocol",
            default: Some("TCP"),
        },
    ];
    assert_eq!(ports.topology(), &Topology::Keyed(keys));
    assert_eq!(
        ports.patch_strategy(),
        PatchStrategy::MergeBy("containerPort")
    );
    for (type_name, member, topology, patch) in [
        (
            "ObjectMeta",
            "finalizers",
            Topology::Set,
            PatchStrategy::Merge,
        ),
        (
            "ObjectMeta",
            "labels",
            Topology::Granular,
            PatchStrategy::Merge,
        ),
        (
            "PodSpec",
            "nodeSelector",
            Topology::Atomic,
            PatchStrategy::Merge,
        ),
        (
            "PodSpec",
            "tolerations",
            Topology::Atomic,
            PatchStrategy::Replace,
        ),
        (
            "PodSpec",
            "hostNetwork",
            Topology::Atomic,
            PatchStrategy::Replace,
        ),
        (
            "PodSpec",
            "securityContext",
            Topology::Granular,
            PatchStrategy::Merge,
        ),
        (
            "PodStatus",
            "hostIPs",
            Topology::Atomic,
            PatchStrategy::MergeBy("ip"),
        ),
        (
            "StatefulSetSpec",
            "selector",
            Topology::Atomic,
            PatchStrategy::Merge,
        ),
        (
            "StatefulSetSpec",
            "volumeClaimTemplates",
            Topology::Atomic,
            PatchStrategy::Replace,
        ),
        (
            "PodDisruptionBudgetSpec",
            "selector",
            Topology::Atomic,
            PatchStrategy::Replace,
        ),
        (
            "PersistentVolumeSpec",
            "claimRef",
            Topology::Granular,
            PatchStrategy::Merge,
        ),
        (
            "ServiceSpec",
            "clusterIPs",
            Topology::Atomic,
            PatchStrategy::Replace,
        ),
    ] {
        let found = field(type_name, member);
        assert_eq!(found.topology(), &topology, "{type_name}.{member}");
        assert_eq!(found.patch_strategy(), patch, "{type_name}.{member}");
    }
    assert!(field("PodSpec", "volumes").retain_keys);
    let claims = field("ResourceRequirements", "claims");
    assert!(matches!(claims.topology(), Topology::Keyed(_)));
    assert_eq!(claims.patch_strategy(), PatchStrategy::Replace);
}

#[test]
fn embedded_structs_are_separate_messages() {
    let tag = |type_name, member| field(type_name, member).tag.unwrap();
    let nested = |outer, number| Tag {
        outer: [Some(outer), None],
        number,
    };
    assert_eq!(tag("Volume", "name").number, 1);
    assert_eq!(tag("Volume", "configMap"), nested(2, 19));
    assert_eq!(tag("Probe", "httpGet"), nested(1, 2));
    assert_eq!(tag("SecretKeySelector", "name"), nested(1, 1));
    assert_eq!(tag("EphemeralContainer", "image"), nested(1, 2));
    let twice = tag("NamedRuleWithOperations", "resources");
    assert_eq!(twice.path(), [2, 2, 3]);
    assert_eq!(field("Pod", "kind").tag, None);
}

#[test]
fn bytes_micro_times_and_lists_in_maps_are_canonicalised() {
    let secret = json!({"metadata": {}, "data": {"a": "YR\n==", "b": null}});
    assert_eq!(
        normal("Secret", &secret)["data"],
        json!({"a": "YQ==", "b": ""})
    );
    let lease = json!({"spec": {"renewTime": "2024-01-01T01:00:00.120000+01:00"}});
    let renewed = &normal("Lease", &lease)["spec"]["renewTime"];
    assert_eq!(renewed, "2024-01-01T00:00:00.120000Z");
    let user = json!({"extra": {"a": ["b"], "c": null}});
    assert_eq!(normal("UserInfo", &user), user);
    let error = |type_name, value: &Value| {
        let result = normalize(type_name, value, UnknownMembers::Drop, "");
        result.unwrap_err().to_string()
    };
    assert_eq!(
        error("Secret", &json!({"data": {"a": "!"}})),
        "illegal base64 data at input byte 0"
    );
    let layout = r#"as "2006-01-02T15:04:05.000000Z07:00": cannot parse"#;
    for (text, rest, element) in [
        ("2024-01-01T00:00:00Z", "Z", ".000000"),
        ("2024-01-01T00:00:00.123Z", ".123Z", ".000000"),
        ("2024-01-01T00:00:00.1234567Z", "7Z", "Z07:00"),
    ] {
        assert_eq!(
            error("LeaseSpec", &json!({"renewTime": text})),
            format!(r#"parsing time "{text}" {layout} "{rest}" as "{element}""#)
        );
    }
    let event = json!({"metadata": {}, "involvedObject": {}, "eventTime": null});
    let event = normal("Event", &event);
    assert_eq!(event["eventTime"], Value::Null);
    assert_eq!(event["source"], json!({}));
}
