//! Tests of decoding, encoding and unknown fields.

mod table;

use serde_json::json;

use super::*;

fn normal(type_name: &str, value: &Value) -> Value {
    normalize(type_name, value, UnknownMembers::Drop, "").unwrap()
}

fn template_error(template: &Value) -> String {
    normalize(
        "PodTemplateSpec",
        template,
        UnknownMembers::Drop,
        "spec.template",
    )
    .unwrap_err()
    .to_string()
}

#[test]
fn empty_template_gets_the_always_written_members() {
    let expected = json!({"metadata": {}, "spec": {"containers": null}});
    assert_eq!(normal("PodTemplateSpec", &json!({})), expected);
    assert_eq!(normal("PodTemplateSpec", &Value::Null), expected);
    assert_eq!(
        normal("PodTemplateSpec", &json!({"spec": null, "metadata": null})),
        expected
    );
}

#[test]
fn zero_values_are_dropped_except_for_pointers() {
    let value = json!({
        "hostNetwork": false, "nodeName": "", "volumes": [], "nodeSelector": {}, "priority": 0,
        "containers": [], "automountServiceAccountToken": false, "securityContext": {},
        "affinity": null, "runtimeClassName": "", "tolerations": null, "os": {},
    });
    let expected = json!({
        "priority": 0, "containers": [], "automountServiceAccountToken": false,
        "securityContext": {}, "runtimeClassName": "", "os": {"name": ""},
    });
    assert_eq!(normal("PodSpec", &value), expected);
}

#[test]
fn null_elements_become_zero_values() {
    let value = json!({
        "containers": [null], "nodeSelector": {"a": null}, "overhead": {"cpu": null},
        "volumes": [{"name": "v", "scaleIO": {"secretRef": null, "gateway": null}}],
    });
    let expected = json!({
        "containers": [{"name": "", "resources": {}}],
        "nodeSelector": {"a": ""}, "overhead": {"cpu": "0"},
        "volumes": [{"name": "v", "scaleIO": {"secretRef": null, "gateway": "", "system": ""}}],
    });
    assert_eq!(normal("PodSpec", &value), expected);
}

#[test]
fn quantities_ports_and_times_are_canonicalised() {
    let value = json!({
        "metadata": {
            "creationTimestamp": "2024-02-29T23:30:05.999+01:30",
            "deletionTimestamp": "0001-01-01T00:00:00Z",
        },
        "spec": {"containers": [{
            "name": "c",
            "resources": {"limits": {"cpu": 0.5, "memory": " 1024Mi ", "pods": 1000}},
            "env": [{"name": "E", "valueFrom": {"resourceFieldRef": {"resource": "limits.cpu"}}}],
            "livenessProbe": {"httpGet": {"port": null}, "tcpSocket": {"port": "http"}},
        }]},
    });
    let resource = json!({"resource": "limits.cpu", "divisor": "0"});
    let expected = json!({
        "metadata": {"creationTimestamp": "2024-02-29T22:00:05Z", "deletionTimestamp": null},
        "spec": {"containers": [{
            "name": "c",
            "resources": {"limits": {"cpu": "500m", "memory": "1Gi", "pods": "1k"}},
            "env": [{"name": "E", "valueFrom": {"resourceFieldRef": resource}}],
            "livenessProbe": {"httpGet": {"port": 0}, "tcpSocket": {"port": "http"}},
        }]},
    });
    assert_eq!(normal("PodTemplateSpec", &value), expected);
    let zero = json!({"metadata": {"creationTimestamp": null}, "spec": {"containers": null}});
    assert_eq!(normal("PodTemplateSpec", &zero)["metadata"], json!({}));
}

#[test]
fn unknown_members_are_dropped_or_kept() {
    let value = json!({
        "$patch": "replace", "metadata": {"Labels": {"a": "b"}},
        "spec": {"containers": [{"name": "c", "new": {"b": null, "a": 1.0}}], "x": [1]},
    });
    let dropped = json!({
        "metadata": {}, "spec": {"containers": [{"name": "c", "resources": {}}]},
    });
    let kept = json!({
        "$patch": "replace", "metadata": {"Labels": {"a": "b"}},
        "spec": {
            "containers": [{"name": "c", "resources": {}, "new": {"b": null, "a": 1.0}}],
            "x": [1],
        },
    });
    assert_eq!(normal("PodTemplateSpec", &value), dropped);
    assert_eq!(
        normalize("PodTemplateSpec", &value, UnknownMembers::Keep, "").unwrap(),
        kept
    );
    let found = unknown_members("PodTemplateSpec", &value);
    let listed: Vec<_> = found
        .iter()
        .map(|(path, value)| (path.to_string(), *value))
        .collect();
    assert_eq!(
        listed,
        [
            (String::from("$patch"), &json!("replace")),
            (String::from("metadata.Labels"), &json!({"a": "b"})),
            (
                String::from("spec.containers[0].new"),
                &json!({"b": null, "a": 1.0})
            ),
            (String::from("spec.x"), &json!([1])),
        ]
    );
    for (path, unknown) in &found {
        assert_eq!(get_path(&value, path), Some(*unknown));
        assert_eq!(get_path(&dropped, path), None);
    }
    assert!(is_known("PodSpec", "containers"));
    assert!(!is_known("PodSpec", "Containers"));
    assert!(!is_known("Nothing", "containers"));
}

#[test]
fn dropping_unknown_members_keeps_the_rest() {
    let mut value = json!({
        "$patch": "replace", "metadata": {"creationTimestamp": null, "labels": {"new": "x"}},
        "spec": {
            "containers": [{"name": "c", "new": 1}, null, 7],
            "hostNetwork": false, "overhead": {"cpu": "0.5"}, "x": [1],
            "securityContext": {"new": {}},
        },
    });
    assert!(drop_unknown_members("PodTemplateSpec", &mut value));
    let rest = json!({
        "metadata": {"creationTimestamp": null, "labels": {"new": "x"}},
        "spec": {
            "containers": [{"name": "c"}, null, 7],
            "hostNetwork": false, "overhead": {"cpu": "0.5"},
            "securityContext": {},
        },
    });
    assert_eq!(value, rest);
    assert!(!drop_unknown_members("PodTemplateSpec", &mut value));
    assert_eq!(value, rest);
    assert!(!drop_unknown_members("Nothing", &mut value));
}

#[test]
fn unknown_members_agree_where_both_have_them() {
    let agree = |a: Value, b: Value| {
        let equal = |a: &Value, b: &Value| a == b;
        let agree = |a: &Value, b: &Value| unknown_members_agree("PodSpec", a, b, &equal);
        assert_eq!(agree(&a, &b), agree(&b, &a), "both ways");
        agree(&a, &b)
    };
    assert!(agree(json!({"new": 1}), json!({"new": 1})));
    assert!(!agree(json!({"new": 1}), json!({"new": 2})));
    assert!(agree(json!({"new": 1}), json!({})));
    assert!(agree(json!({"new": 1}), json!({"new": null})));
    assert!(agree(json!({"new": 1}), json!({"other": 2})));
    assert!(agree(
        json!({"hostNetwork": true}),
        json!({"hostNetwork": false})
    ));
    let containers = |first: Value, second: Value| json!({"containers": [first, second]});
    let (one, two) = (json!({"new": 1}), json!({"new": 2}));
    assert!(agree(
        containers(one.clone(), json!({})),
        containers(json!({}), two.clone())
    ));
    assert!(!agree(
        containers(json!({}), one.clone()),
        containers(json!({}), two.clone())
    ));
    let nested = |value: &Value| json!({"securityContext": {"seLinuxOptions": value}});
    assert!(agree(nested(&one), nested(&one)));
    assert!(!agree(nested(&one), nested(&two)));
    let wrong = json!({"containers": 7, "securityContext": []});
    assert!(agree(wrong, containers(one, two)));
}

#[test]
fn errors_match_go() {
    let seconds = json!({"spec": {"terminationGracePeriodSeconds": 9_223_372_036_854_776_000_u64}});
    assert_eq!(
        template_error(&seconds),
        "json: cannot unmarshal number 9223372036854776000 into Go struct field \
         PodSpec.spec.template.spec.terminationGracePeriodSeconds of type int64"
    );
    let port = json!({"spec": {"containers": [{"ports": [{"containerPort": 2_147_483_648_u32}]}]}});
    assert_eq!(
        template_error(&port),
        "json: cannot unmarshal number 2147483648 into Go struct field \
         ContainerPort.spec.template.spec.containers.ports.containerPort of type int32"
    );
    let labels = json!({"metadata": {"labels": {"a": 1}}});
    assert_eq!(
        template_error(&labels),
        "json: cannot unmarshal number into Go struct field \
         ObjectMeta.spec.template.metadata.labels of type string"
    );
    let policy = json!({"spec": {"dnsPolicy": true, "volumes": {}}});
    assert_eq!(
        template_error(&policy),
        "json: cannot unmarshal bool into Go struct field \
         PodSpec.spec.template.spec.dnsPolicy of type v1.DNSPolicy"
    );
    assert_eq!(
        template_error(&json!("x")),
        "json: cannot unmarshal string into Go struct field \
         StatefulSetSpec.spec.template of type v1.PodTemplateSpec"
    );
    assert_eq!(
        normalize("PodSpec", &json!([]), UnknownMembers::Drop, "")
            .unwrap_err()
            .to_string(),
        "json: cannot unmarshal array into Go value of type v1.PodSpec"
    );
    let get = json!({"spec": {"containers": [{"livenessProbe": {"httpGet": {"port": 1.5}}}]}});
    assert_eq!(
        template_error(&get),
        "json: cannot unmarshal number 1.5 into Go struct field HTTPGetAction.spec.template.spec.\
         containers.livenessProbe.ProbeHandler.httpGet.port of type int32"
    );
    assert!(matches!(
        normalize("Nothing", &json!({}), UnknownMembers::Drop, ""),
        Err(DecodeError::UnknownType(name)) if name == "Nothing"
    ));
}

#[test]
fn invalid_quantity_or_time_stops_decoding() {
    let value = json!({"hostNetwork": 1, "overhead": {"cpu": "x"}});
    let err = normalize("PodSpec", &value, UnknownMembers::Drop, "").unwrap_err();
    assert!(
        err.to_string()
            .starts_with("quantities must match the regular expression"),
        "{err}"
    );
    let time = |text: &str| {
        let value = json!({"creationTimestamp": text});
        match normalize("ObjectMeta", &value, UnknownMembers::Drop, "") {
            Ok(meta) => meta["creationTimestamp"].as_str().unwrap_or("-").to_owned(),
            Err(err) => err.to_string(),
        }
    };
    let layout = r#"as "2006-01-02T15:04:05Z07:00": cannot parse"#;
    assert_eq!(
        time(""),
        format!(r#"parsing time "" {layout} "" as "2006""#)
    );
    assert_eq!(
        time("now"),
        format!(r#"parsing time "now" {layout} "now" as "2006""#)
    );
    let short = "2024-01-01T00:00:00";
    assert_eq!(
        time(short),
        format!(r#"parsing time "{short}" {layout} "" as "Z07:00""#)
    );
    assert_eq!(
        time("2024-01-01T00:00:00Zx"),
        r#"parsing time "2024-01-01T00:00:00Zx": extra text: "x""#
    );
    assert_eq!(
        time("2024-13-01T00:00:00Z"),
        r#"parsing time "2024-13-01T00:00:00Z": month out of range"#
    );
    assert_eq!(
        time("2023-02-29T00:00:00Z"),
        r#"parsing time "2023-02-29T00:00:00Z": day out of range"#
    );
    assert_eq!(time("2024-01-01T1:00:00,5-00:30"), "2024-01-01T01:30:00Z");
    assert_eq!(
        time("é"),
        format!(r#"parsing time "é" {layout} "é" as "2006""#)
    );
}
