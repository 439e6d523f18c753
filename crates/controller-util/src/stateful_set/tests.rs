//! Tests of the set's decoding and of its status encoding.

use kube_apimachinery::labels::Labels;

use super::*;

const SET: &str = r#"{"kind":"StatefulSet","metadata":{"name":"web","namespace":"ns","uid":"u",
    "resourceVersion":"9","generation":4,"managedFields":[{"manager":"x"}],"future":{"b":1,"a":2},
    "annotations":{"k":"v"}},
    "spec":{"replicas":3,"selector":{"matchLabels":{"app":"web"}},"serviceName":"svc",
      "template":{"metadata":{"labels":{"app":"web"}},"spec":{"containers":null,"future":1.0}},
      "volumeClaimTemplates":[{"metadata":{"name":"data"},"spec":{"future":true}}],
      "updateStrategy":{"type":"RollingUpdate","rollingUpdate":{"maxUnavailable":"25%"}},
      "persistentVolumeClaimRetentionPolicy":{"whenScaled":"Delete","whenDeleted":"Later"}},
    "status":{"replicas":2,"collisionCount":0,"conditions":[{"type":"X"}],"future":7}}"#;

#[test]
fn templates_and_metadata_stay_verbatim() {
    let set = StatefulSet::decode(SET).unwrap();
    let template =
        r#"{"metadata":{"labels":{"app":"web"}},"spec":{"containers":null,"future":1.0}}"#;
    assert_eq!(set.spec.template.to_json(), template);
    assert_eq!(&*set.spec.claim_templates[0].name, "data");
    let text = set.with_status(&StatefulSetStatus::default()).unwrap();
    assert!(text.contains(r#""future":{"b":1,"a":2}"#), "{text}");
    assert!(!text.contains("managedFields"), "{text}");
}

#[test]
fn unparsable_template_is_an_error_when_read() {
    for value in ["1e400", r#""\ud800""#] {
        let set = SET.replace("1.0", value).replace("true", value);
        let set = StatefulSet::decode(&set).unwrap();
        assert!(set.spec.template.to_value().is_err(), "{value}");
        assert!(set.spec.claim_templates[0].to_value().is_err(), "{value}");
    }
}

#[test]
fn last_claim_template_of_a_name_wins() {
    let template = |name: &str, size: u32| serde_json::json!({"metadata": {"name": name}, "spec": {"size": size}});
    let templates = [template("a", 1), template("b", 2), template("a", 3)];
    let set = serde_json::json!({
        "metadata": {"name": "web"}, "spec": {"volumeClaimTemplates": templates},
    });
    let set = StatefulSet::decode(&set.to_string()).unwrap();
    let sizes: Vec<_> = set
        .spec
        .claim_templates
        .iter()
        .map(|t| t.to_value().unwrap())
        .collect();
    assert_eq!(sizes, [template("b", 2), template("a", 3)]);
}

#[test]
fn selector_is_compiled_or_keeps_its_error() {
    let set = |selector: &str| {
        let text = format!(r#"{{"metadata":{{"name":"web"}},"spec":{{"selector":{selector}}}}}"#);
        StatefulSet::decode(&text).unwrap().spec.selector
    };
    let selector = set(r#"{"matchLabels":{"app":"web"}}"#);
    assert_eq!(selector.match_labels()["app"], "web");
    let labels: Labels = [("app", "web")].into_iter().collect();
    assert!(selector.compiled().unwrap().matches(&labels));
    let wrong = set(r#"{"matchExpressions":[{"key":"app","operator":"Near"}]}"#);
    let error = wrong.compiled().unwrap_err().to_string();
    assert_eq!(error, r#""Near" is not a valid label selector operator"#);
    assert!(!set("null").compiled().unwrap().matches(&labels));
}

#[test]
fn events_reference_the_set_as_read() {
    let reference = StatefulSet::decode(SET).unwrap().object_reference();
    let expected = ObjectReference {
        kind: "StatefulSet".to_owned(),
        namespace: "ns".to_owned(),
        name: "web".to_owned(),
        uid: "u".to_owned(),
        api_version: "apps/v1".to_owned(),
        resource_version: "9".to_owned(),
    };
    assert_eq!(reference, expected);
}

#[test]
fn typed_view_sets_missing_defaults() {
    let set = StatefulSet::decode(SET).unwrap();
    assert_eq!(set.spec.revision_history_limit, 10);
    assert_eq!(
        set.spec
            .update_strategy
            .rolling_update
            .as_ref()
            .unwrap()
            .partition,
        0
    );
    assert_eq!(
        set.spec.claim_retention_policy.when_scaled,
        ClaimRetentionPolicyType::Delete
    );
    assert_eq!(
        set.spec.claim_retention_policy.when_deleted,
        ClaimRetentionPolicyType::Other
    );
    assert!(!set.spec.allows_burst());
    let empty = StatefulSet::decode(r#"{"metadata":{"name":"web"},"spec":{}}"#).unwrap();
    assert_eq!(empty.spec.replicas, 1);
    assert!(
        !empty
            .spec
            .selector
            .compiled()
            .unwrap()
            .matches(&Labels::default())
    );
    assert_eq!(
        empty.spec.claim_retention_policy,
        ClaimRetentionPolicy::default()
    );
}

#[test]
fn status_encodes_like_go_and_keeps_conditions() {
    let set = StatefulSet::decode(SET).unwrap();
    assert_eq!(
        serde_json::to_string(&*set.status).unwrap(),
        r#"{"replicas":2,"collisionCount":0,"availableReplicas":0,"conditions":[{"type":"X"}]}"#
    );
}

#[test]
fn typed_set_encodes_like_go() {
    let typed: k8s_openapi::api::apps::v1::StatefulSet =
        serde_json::from_str(r#"{"metadata":{"name":"web"},"spec":{"selector":{},"template":{"spec":{"containers":[{"name":"c","tty":false}]}}}}"#)
            .unwrap();
    let set = StatefulSet::try_from(&typed).unwrap();
    assert_eq!(
        set.spec.template.to_value().unwrap(),
        serde_json::json!({"metadata":{},"spec":{"containers":[{"name":"c","resources":{}}]}})
    );
}

#[test]
fn typed_claim_templates_encode_like_go() {
    let mut typed: k8s_openapi::api::apps::v1::StatefulSet = serde_json::from_str(
        r#"{"metadata":{"name":"web"},"spec":{"selector":{},"template":{},"volumeClaimTemplates":[{"metadata":{"name":"data"},"spec":{"volumeName":""}}]}}"#,
    )
    .unwrap();
    let set = StatefulSet::try_from(&typed).unwrap();
    assert_eq!(
        set.spec.claim_templates[0].to_value().unwrap(),
        serde_json::json!({
            "apiVersion": "v1", "kind": "PersistentVolumeClaim",
            "metadata": {"name": "data"}, "spec": {"resources": {}}, "status": {},
        })
    );
    typed.spec = None;
    let set = StatefulSet::try_from(&typed).unwrap();
    assert_eq!(set.spec.replicas, 1);
    assert!(set.spec.claim_templates.is_empty());
}

#[test]
fn full_status_round_trips() {
    let text = concat!(
        r#"{"observedGeneration":4,"replicas":5,"readyReplicas":3,"currentReplicas":2,"#,
        r#""updatedReplicas":1,"currentRevision":"web-1","updateRevision":"web-2","#,
        r#""collisionCount":7,"availableReplicas":6}"#
    );
    let status: StatefulSetStatus = serde_json::from_str(text).unwrap();
    assert_eq!(serde_json::to_string(&status).unwrap(), text);
}

#[test]
fn with_template_changes_only_the_template() {
    let set = StatefulSet::decode(SET).unwrap();
    let template = PodTemplate::from_value(&serde_json::json!({"spec": {}}));
    let changed = set.with_template(template);
    assert_eq!(changed.spec.template.to_json(), r#"{"spec":{}}"#);
    assert_eq!(changed.key(), set.key());
    assert_eq!(changed.spec.replicas, 3);
}

#[test]
fn sharing_text_does_not_change_a_large_set() {
    let image = "x".repeat(100_000);
    let text = SET.replace(
        r#""containers":null"#,
        &format!(r#""containers":"{image}""#),
    );
    let whole = StatefulSet::decode(&text).unwrap();
    let mut shared = whole.clone();
    let pool = SharedParts::default();
    shared.share_parts(&pool);
    assert!(!shared.spec_text.is_same(&whole.spec_text));
    let (spec, expected) = (&shared.spec, &whole.spec);
    assert_eq!(spec.template.to_json(), expected.template.to_json());
    assert_eq!(spec.template.json_len(), expected.template.json_len());
    let claim = |spec: &StatefulSetSpec| spec.claim_templates[0].to_value().unwrap();
    assert_eq!(claim(spec), claim(expected));
    let body = |set: &StatefulSet| set.with_status(&StatefulSetStatus::default()).unwrap();
    assert_eq!(body(&shared), body(&whole));
    drop(whole);
    assert!(shared.text_len() > 100_000);
    // All `x` except at the ends.
    assert!((2..20).contains(&pool.texts.len()), "{}", pool.texts.len());
}

#[test]
fn set_without_a_template_can_share_its_text() {
    let odd = "x".repeat(100_000);
    let text = format!(r#"{{"metadata":{{"name":"web"}},"spec":{{"future":"{odd}"}}}}"#);
    let mut set = StatefulSet::decode(&text).unwrap();
    set.share_parts(&SharedParts::default());
    assert_eq!(set.spec.template.to_json(), "{}");
}
