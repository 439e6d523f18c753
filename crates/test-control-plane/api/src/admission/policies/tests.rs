//! Tests of policies without a server.

use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::*;
use crate::admission::*;
use crate::status::ApiError;

/// A namespace with the label `tier: prod`.
#[derive(Debug)]
struct Prod;

impl Namespace for Prod {
    fn labels(&self) -> Result<Map<String, Value>, ApiError> {
        Ok(Map::from_iter([("tier".to_owned(), json!("prod"))]))
    }
}

/// Allows the verb `get` alone.
#[derive(Debug)]
struct Readers;

impl Authorizer for Readers {
    fn decide(&self, question: &Question) -> AuthorizerDecision {
        AuthorizerDecision {
            is_allowed: question.verb == "get",
            reason: String::new(),
            error: None,
        }
    }
}

fn kind() -> GroupVersionKind {
    GroupVersionKind {
        group: String::new(),
        version: "v1".to_owned(),
        kind: "ConfigMap".to_owned(),
    }
}

fn resource(name: &str) -> GroupVersionResource {
    GroupVersionResource {
        group: String::new(),
        version: "v1".to_owned(),
        resource: name.to_owned(),
    }
}

fn creation(object: &Value) -> Attributes<'_> {
    Attributes {
        operation: Operation::Create,
        kind: kind(),
        resource: resource("configmaps"),
        subresource: "",
        namespace: "default",
        name: "a",
        object: Some(object),
        old_object: None,
        options: None,
        dry_run: false,
        user: User::default(),
    }
}

fn inputs(object: &Value) -> Inputs {
    let authorizer: Arc<dyn Authorizer> = Arc::new(Readers);
    let resource = resource("configmaps");
    Inputs::new(&creation(object), &kind(), &resource, None, &authorizer)
}

fn rule(changes: &Value) -> Value {
    let mut rule = json!({
        "apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"],
        "resources": ["configmaps"],
    });
    for (name, value) in changes.as_object().into_iter().flatten() {
        rule[name] = value.clone();
    }
    rule
}

#[test]
fn constraints_narrow_requests() {
    let object = json!({"metadata": {"labels": {"a": "b"}}});
    let selector = |name: &str, value: &str| json!({"matchLabels": {name: value}});
    for (constraints, expected) in [
        (json!({"resourceRules": [rule(&json!({}))]}), true),
        (
            json!({"resourceRules": [rule(&json!({"operations": ["UPDATE"]}))]}),
            false,
        ),
        (
            json!({"resourceRules": [rule(&json!({"resources": ["*"]}))]}),
            true,
        ),
        (
            json!({"resourceRules": [rule(&json!({"resources": ["*/status"]}))]}),
            false,
        ),
        (
            json!({"resourceRules": [rule(&json!({"resourceNames": ["b"]}))]}),
            false,
        ),
        (
            json!({"resourceRules": [rule(&json!({"scope": "Cluster"}))]}),
            false,
        ),
        (json!({"excludeResourceRules": [rule(&json!({}))]}), false),
        (json!({"namespaceSelector": selector("tier", "prod")}), true),
        (
            json!({"namespaceSelector": selector("tier", "test")}),
            false,
        ),
        (json!({"objectSelector": selector("a", "b")}), true),
        (json!({"objectSelector": selector("a", "c")}), false),
    ] {
        let read = Constraints::read(Some(&constraints));
        let found = read.matches(&creation(&object), &Prod, &[]);
        assert_eq!(
            found.map(|found| found.is_some()),
            Ok(expected),
            "{constraints}"
        );
    }
}

#[test]
fn constraints_name_resources_in_any_group_and_version() {
    let of = |resources: &[&str]| {
        let changes = json!({"resources": resources, "apiGroups": ["apps"], "scope": "Cluster"});
        json!({"resourceRules": [rule(&changes)]})
    };
    for (constraints, expected) in [
        (of(&["pods", "configmaps"]), true),
        (of(&["configmaps/status"]), true),
        (of(&["*"]), true),
        (of(&["*/*"]), true),
        (of(&["*/scale"]), true),
        (of(&["pods", "secrets/status"]), false),
        (of(&["configmap", "configmapsets"]), false),
        (json!({}), true),
        (json!({"excludeResourceRules": [rule(&json!({}))]}), true),
    ] {
        let read = Constraints::read(Some(&constraints));
        assert_eq!(read.names_resource("configmaps"), expected, "{constraints}");
    }
    assert!(!Constraints::of_webhook(&json!({})).names_resource("configmaps"));
}

#[test]
fn equivalent_resources_match_unless_the_policy_is_exact() {
    let object = json!({});
    let other = Equivalent {
        resource: resource("others"),
        kind: kind(),
    };
    for (policy, expected) in [("Equivalent", true), ("Exact", false)] {
        let constraints = json!({
            "matchPolicy": policy, "resourceRules": [rule(&json!({"resources": ["others"]}))],
        });
        let read = Constraints::read(Some(&constraints));
        let found = read.matches(&creation(&object), &Prod, std::slice::from_ref(&other));
        let found = found.unwrap().map(|found| found.resource.resource);
        assert_eq!(found.as_deref(), expected.then_some("others"), "{policy}");
    }
}

fn messages(spec: &Value, object: &Value) -> Vec<String> {
    let policy = ValidatingPolicy::compile(&json!({"metadata": {"name": "p"}, "spec": spec}));
    let verdict = policy.validate(&inputs(object), None);
    verdict
        .denials
        .into_iter()
        .map(|denial| denial.message)
        .collect()
}

#[test]
fn failed_validations_have_their_messages() {
    let object = json!({"data": {"a": "1"}});
    let one = |validation: Value| messages(&json!({"validations": [validation]}), &object);
    assert_eq!(one(json!({"expression": "object.data.a == '1'"})), [""; 0]);
    assert_eq!(
        one(json!({"expression": "object.data.a == '2'"})),
        ["failed expression: object.data.a == '2'"]
    );
    assert_eq!(one(json!({"expression": "false", "message": "no"})), ["no"]);
    let composed = json!({"expression": "false", "messageExpression": "'a' + object.data.a"});
    assert_eq!(one(composed), ["a1"]);
    let authorized = "authorizer.group('').resource('pods').check('get').allowed()";
    assert_eq!(one(json!({"expression": authorized})), [""; 0]);
    let denied = one(json!({"expression": "object.data.b == '1'"}));
    assert_eq!(
        denied,
        ["expression 'object.data.b == '1'' resulted in error: no such key: b"]
    );
}

#[test]
fn variables_are_evaluated_once_they_are_read() {
    let spec = json!({
        "variables": [
            {"name": "wrong", "expression": "object.none"},
            {"name": "a", "expression": "object.data.a"},
            {"name": "twice", "expression": "variables.a + variables.a"},
        ],
        "validations": [{"expression": "variables.twice == '11'"}],
    });
    assert_eq!(messages(&spec, &json!({"data": {"a": "1"}})), [""; 0]);
}

#[test]
fn ignored_failures_deny_nothing() {
    let spec = json!({"failurePolicy": "Ignore", "validations": [{"expression": "object.none"}]});
    assert_eq!(messages(&spec, &json!({})), [""; 0]);
}

#[test]
fn mutations_make_configurations_and_patches() {
    let policy =
        MutatingPolicy::compile(&json!({"metadata": {"name": "p"}, "spec": {"mutations": [
            {"patchType": "ApplyConfiguration", "applyConfiguration": {
                "expression": "Object{metadata: Object.metadata{labels: {'a': object.data.a}}}"}},
            {"patchType": "JSONPatch", "jsonPatch": {
                "expression": "[JSONPatch{op: 'add', path: '/data/b', value: object.data.a}]"}},
        ]}}));
    let object = json!({"data": {"a": "1"}});
    assert_eq!(policy.changes(), 2);
    let Ok(Change::Apply(config)) = policy.change(0, &inputs(&object), None) else {
        panic!("no configuration");
    };
    assert_eq!(config, json!({"metadata": {"labels": {"a": "1"}}}));
    let operation = json!({"op": "add", "path": "/data/b", "value": "1"});
    assert_eq!(
        policy.change(1, &inputs(&object), None),
        Ok(Change::Patch(vec![operation]))
    );
}
