//! Admission policies.

use http::Method;
use kube_test_control_plane::TestControlPlane;
use kube_test_control_plane::auth::Identity;
use kube_test_control_plane::faults::{RequestMatcher, View, ViewRule};
use serde_json::{Value, json};

use crate::custom_resources::{WIDGETS, widget};
use crate::support::{Plane, define_widgets, exchange, pod};

const ADMISSION: &str = "/apis/admissionregistration.k8s.io/v1";
const MAPS: &str = "/api/v1/namespaces/default/configmaps";
const PODS: &str = "/api/v1/namespaces/default/pods";

async fn plane() -> Plane {
    Plane::new(TestControlPlane::builder().start().await)
}

/// Creates a policy for a resource of the core group, and its binding.
async fn bind(plane: &Plane, kind: &str, resource: &str, spec: Value, binding: Value) {
    let mut spec = spec;
    spec["matchConstraints"] = json!({"resourceRules": [{
        "apiGroups": [""], "apiVersions": ["v1"], "operations": ["*"], "resources": [resource],
    }]});
    let plural = kind.to_lowercase();
    let policy = json!({"metadata": {"name": "p"}, "spec": spec});
    plane
        .create(
            &format!("{ADMISSION}/{}ies", &plural[..plural.len() - 1]),
            &policy,
        )
        .await;
    let mut of = binding;
    of["policyName"] = json!("p");
    let binding = json!({"metadata": {"name": "b"}, "spec": of});
    plane
        .create(&format!("{ADMISSION}/{plural}bindings"), &binding)
        .await;
}

fn map(name: &str, data: &Value) -> Value {
    json!({"metadata": {"name": name}, "data": data})
}

#[tokio::test(start_paused = true)]
async fn policies_deny_warn_and_audit() {
    let plane = plane().await;
    let spec = json!({
        "validations": [{"expression": "object.data.a == '1'", "messageExpression": "'a is ' + object.data.a"}],
        "auditAnnotations": [{"key": "a", "valueExpression": "'' + object.data.a"}],
    });
    let actions = json!({"validationActions": ["Warn", "Audit"]});
    bind(
        &plane,
        "ValidatingAdmissionPolicy",
        "configmaps",
        spec,
        actions,
    )
    .await;
    let server = plane.0.server();
    server.audit().clear();
    let body = serde_json::to_vec(&map("x", &json!({"a": "2"}))).unwrap();
    let json = [("Content-Type", "application/json")];
    let answer = exchange(server, Method::POST, MAPS, &json, body).await;
    assert_eq!(answer.code, 201);
    let warning =
        "299 - \"Validation failed for ValidatingAdmissionPolicy 'p' with binding 'b': a is 2\"";
    assert_eq!(answer.header("warning"), warning);
    let entries = server.audit().entries();
    let annotations = &entries[0].annotations;
    assert_eq!(annotations["p/a"], "2");
    let failure = &annotations["validation.policy.admission.k8s.io/validation_failure"];
    assert!(failure.contains("\"message\":\"a is 2\""), "{failure}");

    let path = format!("{ADMISSION}/validatingadmissionpolicybindings/b");
    assert_eq!(plane.call(Method::DELETE, &path, &Value::Null).await.0, 200);
    let spec = json!({"policyName": "p", "validationActions": ["Deny"]});
    let binding = json!({"metadata": {"name": "b"}, "spec": spec});
    let bindings = format!("{ADMISSION}/validatingadmissionpolicybindings");
    plane.create(&bindings, &binding).await;
    let (code, answer) = plane
        .call(Method::POST, MAPS, &map("y", &json!({"a": "2"})))
        .await;
    assert_eq!(code, 422, "{answer}");
    let wanted = "ValidatingAdmissionPolicy 'p' with binding 'b' denied request: a is 2";
    assert!(
        answer["message"].as_str().unwrap().contains(wanted),
        "{answer}"
    );
    plane.create(MAPS, &map("z", &json!({"a": "1"}))).await;

    assert_eq!(plane.call(Method::DELETE, &path, &Value::Null).await.0, 200);
    plane.create(MAPS, &map("y", &json!({"a": "2"}))).await;
    plane.stop().await;
}

/// Upstream trims the namespace for rules and messages alone.
#[tokio::test(start_paused = true)]
async fn annotations_read_the_whole_namespace() {
    let plane = plane().await;
    let owner = json!([{"apiVersion": "v1", "kind": "ConfigMap", "name": "o", "uid": "u"}]);
    let owned = json!({"metadata": {"name": "owned", "ownerReferences": owner}});
    plane.create("/api/v1/namespaces", &owned).await;
    let has = |member: &str| format!("string(has(dyn(namespaceObject).{member}))");
    let spec = json!({
        "validations": [{
            "expression": "false",
            "messageExpression": has("metadata.ownerReferences"),
        }],
        "auditAnnotations": [
            {"key": "owners", "valueExpression": has("metadata.ownerReferences")},
            {"key": "managers", "valueExpression": has("metadata.managedFields")},
            {"key": "kind", "valueExpression": has("kind")},
        ],
    });
    let actions = json!({"validationActions": ["Audit"]});
    bind(
        &plane,
        "ValidatingAdmissionPolicy",
        "configmaps",
        spec,
        actions,
    )
    .await;
    let maps = "/api/v1/namespaces/owned/configmaps";
    plane.create(maps, &map("x", &json!({}))).await;
    let entries = plane.0.server().audit().entries();
    let annotations = &entries.last().unwrap().annotations;
    assert_eq!(
        annotations["validation.policy.admission.k8s.io/validation_failure"],
        r#"[{"message":"false","policy":"p","binding":"b","expressionIndex":0,"validationActions":["Audit"]}]"#
    );
    for (key, wanted) in [("owners", "true"), ("managers", "false"), ("kind", "false")] {
        assert_eq!(annotations[&format!("p/{key}")], wanted, "{key}");
    }
    plane.stop().await;
}

#[tokio::test(start_paused = true)]
async fn constants_of_policies_need_values() {
    let plane = plane().await;
    let spec = json!({
        "matchConstraints": {"resourceRules": [{
            "apiGroups": [""], "apiVersions": ["v1"], "operations": ["*"], "resources": ["pods"],
        }]},
        "validations": [{"expression": "object.metadata.name.find('(') == ''"}],
        "auditAnnotations": [{"key": "a", "valueExpression": "string(int('x'))"}],
    });
    let policy = json!({"metadata": {"name": "p"}, "spec": spec});
    let path = format!("{ADMISSION}/validatingadmissionpolicies");
    let errors = plane.refused(Method::POST, &path, &policy).await;
    let failed = "Internal error: program instantiation failed";
    assert_eq!(
        errors,
        [
            format!(
                "spec.validations[0].expression: {failed}: error parsing regexp: missing closing ): `(`"
            ),
            format!(
                "spec.auditAnnotations[0].valueExpression: {failed}: type conversion error from \
                 'string' to 'int'"
            ),
        ]
    );
    plane.stop().await;
}

#[tokio::test(start_paused = true)]
async fn names_of_made_types_have_no_value() {
    let plane = plane().await;
    let path = format!("{ADMISSION}/mutatingadmissionpolicies");
    for (expression, wanted) in [
        (
            "Object",
            "Invalid value: \"Object\": must evaluate to Object but got type(Object)",
        ),
        (
            "Object.spec",
            "Invalid value: \"Object.spec\": must evaluate to Object but got type(Object.spec)",
        ),
        (
            "JSONPatch == JSONPatch ? Object{} : Object{}",
            "Internal error: program instantiation failed: reference to undefined type: JSONPatch",
        ),
    ] {
        let spec = json!({
            "matchConstraints": {"resourceRules": [{
                "apiGroups": [""], "apiVersions": ["v1"], "operations": ["*"], "resources": ["pods"],
            }]},
            "reinvocationPolicy": "Never",
            "mutations": [{
                "patchType": "ApplyConfiguration", "applyConfiguration": {"expression": expression},
            }],
        });
        let policy = json!({"metadata": {"name": "p"}, "spec": spec});
        let errors = plane.refused(Method::POST, &path, &policy).await;
        let field = "spec.mutations[0].applyConfiguration.expression";
        assert_eq!(errors, [format!("{field}: {wanted}")]);
    }
    let shadowed = "[1].map(Object, Object).size() == 1 ? Object{} : Object{}";
    let spec = json!({"reinvocationPolicy": "Never", "mutations": [{
        "patchType": "ApplyConfiguration", "applyConfiguration": {"expression": shadowed},
    }]});
    bind(&plane, "MutatingAdmissionPolicy", "pods", spec, json!({})).await;
    plane.stop().await;
}

#[tokio::test(start_paused = true)]
async fn parameters_are_read_at_each_request() {
    let plane = plane().await;
    let spec = json!({
        "paramKind": {"apiVersion": "v1", "kind": "ConfigMap"},
        "validations": [{"expression": "size(object.spec.containers) <= int(params.data.max)"}],
    });
    let reference =
        json!({"name": "limits", "namespace": "default", "parameterNotFoundAction": "Deny"});
    let binding = json!({"validationActions": ["Deny"], "paramRef": reference});
    bind(&plane, "ValidatingAdmissionPolicy", "pods", spec, binding).await;
    assert_eq!(plane.call(Method::POST, PODS, &pod("a")).await.0, 422);
    plane
        .create(MAPS, &map("limits", &json!({"max": "1"})))
        .await;
    plane.create(PODS, &pod("a")).await;
    let patch = json!({"data": {"max": "0"}});
    crate::support::call_patch(&plane, &format!("{MAPS}/limits"), &patch).await;
    assert_eq!(plane.call(Method::POST, PODS, &pod("b")).await.0, 422);
    plane.stop().await;
}

#[tokio::test(start_paused = true)]
async fn lagging_servers_read_earlier_parameters() {
    let spec = json!({
        "paramKind": {"apiVersion": "v1", "kind": "ConfigMap"},
        "validations": [{"expression": "size(object.spec.containers) <= int(params.data.max)"}],
    });
    let named = json!({"name": "limits"});
    let selected = json!({"selector": {"matchLabels": {"limits": "pods"}}});
    for mut reference in [named, selected] {
        let plane = plane().await;
        reference["namespace"] = json!("default");
        reference["parameterNotFoundAction"] = json!("Deny");
        let binding = json!({"validationActions": ["Deny"], "paramRef": reference});
        let kind = "ValidatingAdmissionPolicy";
        bind(&plane, kind, "pods", spec.clone(), binding).await;
        let mut limits = map("limits", &json!({"max": "1"}));
        limits["metadata"]["labels"] = json!({"limits": "pods"});
        plane.create(MAPS, &limits).await;
        let server = plane.0.server();
        let frozen = View::FrozenAt(server.store().revision());
        let patch = json!({"data": {"max": "0"}});
        crate::support::call_patch(&plane, &format!("{MAPS}/limits"), &patch).await;
        assert_eq!(plane.call(Method::POST, PODS, &pod("a")).await.0, 422);
        let matcher = RequestMatcher::any().user_agent("test");
        let id = server
            .faults()
            .add_admission_view(ViewRule::new(matcher, frozen));
        plane.create(PODS, &pod("a")).await;
        let (code, _) = server
            .call_json(Method::POST, PODS, "other", &pod("b"))
            .await;
        assert_eq!(code, 422, "other clients reach a server that is up to date");
        assert!(server.faults().remove(id));
        assert_eq!(plane.call(Method::POST, PODS, &pod("b")).await.0, 422);
        plane.stop().await;
    }
}

#[tokio::test(start_paused = true)]
async fn policies_change_objects_before_validation() {
    let plane = plane().await;
    let sidecar = "Object{spec: Object.spec{containers: [\
                   Object.spec.containers{name: 'sidecar', image: 'proxy:1'}]}}";
    let spec = json!({
        "failurePolicy": "Fail", "reinvocationPolicy": "Never",
        "matchConditions": [{"name": "new", "expression": "oldObject == null"}],
        "mutations": [
            {"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": sidecar}},
            {"patchType": "JSONPatch", "jsonPatch": {"expression":
                "[JSONPatch{op: 'add', path: '/metadata/labels/' + jsonpatch.escapeKey('a/b'), value: 'c'}]"}},
        ],
    });
    // The policy is for pods alone: a rule for all operations may not include deletions.
    let mut spec = spec;
    spec["matchConstraints"] = json!({"resourceRules": [{
        "apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"],
    }]});
    let policy = json!({"metadata": {"name": "p"}, "spec": spec});
    plane
        .create(&format!("{ADMISSION}/mutatingadmissionpolicies"), &policy)
        .await;
    let binding = json!({"metadata": {"name": "b"}, "spec": {"policyName": "p"}});
    plane
        .create(
            &format!("{ADMISSION}/mutatingadmissionpolicybindings"),
            &binding,
        )
        .await;
    let created = plane.create(PODS, &pod("a")).await;
    let containers = created["spec"]["containers"].as_array().unwrap();
    let sidecar = containers
        .iter()
        .find(|it| it["name"] == "sidecar")
        .unwrap();
    assert_eq!(sidecar["imagePullPolicy"], "IfNotPresent");
    assert_eq!(created["metadata"]["labels"]["a/b"], "c");
    plane.stop().await;
}

#[tokio::test(start_paused = true)]
async fn policy_that_replaces_the_metadata_fails_the_request() {
    let plane = plane().await;
    define_widgets(&plane).await;
    let constraints = json!({"resourceRules": [{
        "apiGroups": ["example.com"], "apiVersions": ["v1"], "operations": ["CREATE"],
        "resources": ["widgets"],
    }]});
    let patch = "[JSONPatch{op: 'replace', path: '/metadata', value: 'none'}]";
    let spec = json!({
        "failurePolicy": "Fail", "reinvocationPolicy": "Never", "matchConstraints": constraints,
        "mutations": [{"patchType": "JSONPatch", "jsonPatch": {"expression": patch}}],
    });
    let policies = format!("{ADMISSION}/mutatingadmissionpolicies");
    let policy = json!({"metadata": {"name": "p"}, "spec": spec});
    plane.create(&policies, &policy).await;
    let bindings = format!("{ADMISSION}/mutatingadmissionpolicybindings");
    let binding = json!({"metadata": {"name": "b"}, "spec": {"policyName": "p"}});
    plane.create(&bindings, &binding).await;
    let widget = widget("a", &json!({}));
    let (code, refused) = plane.call(Method::POST, WIDGETS, &widget).await;
    assert_eq!(code, 500, "{refused}");
    let message = refused["message"].as_str().unwrap_or_default();
    let expected = "Internal error occurred: system metadata was not initialized";
    assert_eq!(message, expected);
    plane.stop().await;
}

#[tokio::test(start_paused = true)]
async fn authors_of_policies_need_to_read_the_parameters() {
    let plane = plane().await;
    let server = plane.0.server();
    let alice = Identity::user("alice").group("devs");
    let role = json!({"metadata": {"name": "r"}, "rules": [
        {"apiGroups": ["admissionregistration.k8s.io"], "resources": ["*"], "verbs": ["*"]},
    ]});
    plane
        .create("/apis/rbac.authorization.k8s.io/v1/clusterroles", &role)
        .await;
    let binding = json!({
        "metadata": {"name": "r"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "r"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "alice"}],
    });
    plane
        .create(
            "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
            &binding,
        )
        .await;
    let policy = json!({"metadata": {"name": "p"}, "spec": {
        "paramKind": {"apiVersion": "v1", "kind": "ConfigMap"},
        "matchConstraints": {"resourceRules": [{
            "apiGroups": [""], "apiVersions": ["v1"], "operations": ["*"], "resources": ["pods"],
        }]},
        "validations": [{"expression": "true"}],
    }});
    let path = format!("{ADMISSION}/validatingadmissionpolicies");
    let (code, answer) = server
        .call_json_as(&alice, Method::POST, &path, "test", &policy)
        .await;
    assert_eq!(code, 422, "{answer}");
    let wanted = "spec.paramKind: Forbidden: user &{alice  [devs system:authenticated] map[]} must have \"get\" permission \
                  on all objects of the referenced paramKind (kind=ConfigMap, apiVersion=v1)";
    assert!(
        answer["message"].as_str().unwrap().contains(wanted),
        "{answer}"
    );
    plane.create(&path, &policy).await;
    let binding = json!({"metadata": {"name": "b"}, "spec": {
        "policyName": "p", "validationActions": ["Deny"],
        "paramRef": {"name": "x", "namespace": "default", "parameterNotFoundAction": "Deny"},
    }});
    let path = format!("{ADMISSION}/validatingadmissionpolicybindings");
    let (code, answer) = server
        .call_json_as(&alice, Method::POST, &path, "test", &binding)
        .await;
    assert_eq!(code, 422, "{answer}");
    assert_eq!(answer["details"]["causes"][0]["field"], "spec.paramRef");
    plane.create(&path, &binding).await;
    plane.stop().await;
}

/// Creates a policy with its constraints, and its binding.
async fn bind_whole(plane: &Plane, kind: &str, spec: &Value, binding: &Value) {
    let policy = json!({"metadata": {"name": "p"}, "spec": spec});
    let policies = format!("{ADMISSION}/{kind}admissionpolicies");
    plane.create(&policies, &policy).await;
    let mut of = binding.clone();
    of["policyName"] = json!("p");
    let binding = json!({"metadata": {"name": "b"}, "spec": of});
    let bindings = format!("{ADMISSION}/{kind}admissionpolicybindings");
    plane.create(&bindings, &binding).await;
}

/// Returns constraints of one rule.
fn on(group: &str, version: &str, operation: &str, resource: &str) -> Value {
    json!({"resourceRules": [{
        "apiGroups": [group], "apiVersions": [version], "operations": [operation],
        "resources": [resource],
    }]})
}

#[tokio::test(start_paused = true)]
async fn patches_of_policies_may_not_add_unknown_fields() {
    let plane = plane().await;
    let patch = "[JSONPatch{op: 'add', path: '/more', value: 'x'}]";
    let spec = json!({
        "failurePolicy": "Ignore", "reinvocationPolicy": "Never",
        "matchConstraints": on("", "v1", "CREATE", "configmaps"),
        "mutations": [{"patchType": "JSONPatch", "jsonPatch": {"expression": patch}}],
    });
    bind_whole(&plane, "mutating", &spec, &json!({})).await;
    let sent = map("a", &json!({}));
    let (code, refused) = plane.call(Method::POST, MAPS, &sent).await;
    assert_eq!(code, 500, "{refused}");
    let expected = "Internal error occurred: strict decoding error: unknown field \"more\"";
    assert_eq!(refused["message"], expected);
    plane.stop().await;
}

#[tokio::test(start_paused = true)]
async fn conditions_read_the_sent_resource_and_the_matched_kind() {
    let plane = plane().await;
    let condition = "request.resource.version == 'v2' && request.kind.version == 'v1'";
    let rule = "request.resource.version == 'v1' && request.kind.version == 'v1'";
    let spec = json!({
        "matchConstraints": on("autoscaling", "v1", "CREATE", "horizontalpodautoscalers"),
        "matchConditions": [{"name": "c", "expression": condition}],
        "validations": [
            {"expression": rule, "message": "rules read the matched resource"},
            {"expression": "false", "message": "reached"},
        ],
    });
    let deny = json!({"validationActions": ["Deny"]});
    bind_whole(&plane, "validating", &spec, &deny).await;
    let scaler = json!({"metadata": {"name": "a"}, "spec": {
        "maxReplicas": 2, "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "d"},
    }});
    let path = "/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers";
    let (code, refused) = plane.call(Method::POST, path, &scaler).await;
    assert_eq!(code, 422, "{refused}");
    let message = refused["message"].as_str().unwrap();
    assert!(message.ends_with("denied request: reached"), "{message}");
    plane.stop().await;
}

#[tokio::test(start_paused = true)]
async fn options_of_connections_match_no_object_selector() {
    let plane = plane().await;
    plane.create(PODS, &pod("a")).await;
    let mut constraints = on("", "v1", "CONNECT", "pods/exec");
    constraints["objectSelector"] =
        json!({"matchExpressions": [{"key": "a", "operator": "DoesNotExist"}]});
    let spec = json!({
        "matchConstraints": constraints, "validations": [{"expression": "false"}],
    });
    let deny = json!({"validationActions": ["Deny"]});
    bind_whole(&plane, "validating", &spec, &deny).await;
    let path = format!("{PODS}/a/exec?command=ls");
    let (code, refused) = plane.call(Method::POST, &path, &Value::Null).await;
    assert_eq!(code, 400, "{refused}");
    assert_eq!(refused["message"], "pod a does not have a host assigned");
    plane.stop().await;
}
