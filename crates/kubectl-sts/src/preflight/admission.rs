//! Webhooks and policies that recognise the built-in controller by its name.

use serde_json::Value;

use super::check::{Check, Verdict};
use super::shipped::SHIPPED;
use crate::server::{
    MUTATING_WEBHOOKS, Resource, Server, VALIDATING_POLICIES, VALIDATING_WEBHOOKS, is_not_served,
};

const NAME: &str = "admission";
/// Resources that the controller writes.
const WRITTEN: [&str; 5] = [
    "pods",
    "persistentvolumeclaims",
    "controllerrevisions",
    "statefulsets/status",
    "events",
];
/// Names by which admission may recognise the built-in controller.
const BUILT_IN: [&str; 2] = ["statefulset-controller", "system:kube-controller-manager"];

pub(super) async fn check(server: &Server) -> Check {
    let mut found = Vec::new();
    for resource in [
        &VALIDATING_WEBHOOKS,
        &MUTATING_WEBHOOKS,
        &VALIDATING_POLICIES,
    ] {
        match read(server, resource).await {
            Ok(objects) => found.extend(objects),
            // A server without the resource has no such objects.
            Err(error) if is_not_served(&error) => {}
            Err(error) => return Check::unread(NAME, &error),
        }
    }
    judge(&found)
}

async fn read(server: &Server, resource: &Resource) -> anyhow::Result<Vec<Hook>> {
    let keep = |text: &str| Ok(Some(crate::server::decode::<Value>(text)?));
    let objects = server.list(resource, None, keep).await?;
    Ok(objects.iter().flat_map(hooks).collect())
}

/// A webhook or a policy that sees writes of the controller.
#[derive(Debug, PartialEq, Eq)]
struct Hook {
    name: String,
    /// True if it recognises the built-in controller by its name, and not this one.
    exempts_built_in: bool,
}

/// The webhooks of a configuration, or the policy, if the controller's writes match.
fn hooks(object: &Value) -> Vec<Hook> {
    let text = |value: &Value, pointer: &str| {
        let found = value.pointer(pointer).and_then(Value::as_str);
        found.unwrap_or_default().to_owned()
    };
    let configuration = text(object, "/metadata/name");
    let list = |value: &Value, pointer: &str| -> Vec<Value> {
        let found = value.pointer(pointer).and_then(Value::as_array);
        found.cloned().unwrap_or_default()
    };
    let hook = |name: String, parts: &Value| Hook {
        name,
        exempts_built_in: recognises_built_in(&parts.to_string()),
    };
    let sees = |rules: &[Value]| rules.iter().any(matches_written);
    if object.get("webhooks").is_some() {
        let webhooks = list(object, "/webhooks");
        let seeing = webhooks.iter().filter(|it| sees(&list(it, "/rules")));
        return seeing
            .map(|it| {
                let name = format!("{configuration} ({})", text(it, "/name"));
                hook(name, it.get("matchConditions").unwrap_or(&Value::Null))
            })
            .collect();
    }
    let spec = object.get("spec").unwrap_or(&Value::Null);
    if sees(&list(spec, "/matchConstraints/resourceRules")) {
        vec![hook(configuration, spec)]
    } else {
        Vec::new()
    }
}

/// True if a rule matches a resource that the controller writes.
fn matches_written(rule: &Value) -> bool {
    let resources = rule.get("resources").and_then(Value::as_array);
    let mut resources = resources.into_iter().flatten().filter_map(Value::as_str);
    resources.any(|resource| {
        resource == "*" || resource == "*/*" || WRITTEN.contains(&resource) || {
            let of_all_parts = resource.strip_suffix("/*");
            of_all_parts.is_some_and(|of| of == "statefulsets" || WRITTEN.contains(&of))
        }
    })
}

fn recognises_built_in(expressions: &str) -> bool {
    let others = expressions.replace(SHIPPED, "");
    !expressions.contains(SHIPPED) && BUILT_IN.iter().any(|name| others.contains(name))
}

fn judge(hooks: &[Hook]) -> Check {
    let exempting: Vec<String> = hooks
        .iter()
        .filter(|hook| hook.exempts_built_in)
        .map(|hook| hook.name.clone())
        .collect();
    if !exempting.is_empty() {
        let text = format!(
            "webhooks and policies that name the built-in controller's account: {}; add {SHIPPED} \
             to them",
            exempting.len()
        );
        return Check::new(NAME, Verdict::Todo, text).with(exempting);
    }
    let text = match hooks.len() {
        0 => "no webhook or policy matches the controller's writes".to_owned(),
        count => format!(
            "webhooks and policies that match the controller's writes: {count}; none exempts only \
             the built-in controller"
        ),
    };
    Check::new(NAME, Verdict::Ok, text).with(hooks.iter().map(|hook| hook.name.clone()))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn configuration(resource: &str, condition: &str) -> Value {
        json!({
            "metadata": {"name": "guard"},
            "webhooks": [{
                "name": "pods.example.com",
                "rules": [{"apiGroups": ["*"], "resources": [resource], "operations": ["*"]}],
                "matchConditions": [{"name": "who", "expression": condition}],
            }],
        })
    }

    #[test]
    fn only_hooks_on_written_resources_count() {
        for (resource, is_seen) in [
            ("pods", true),
            ("pods/*", true),
            ("*", true),
            ("statefulsets/status", true),
            ("statefulsets/*", true),
            ("statefulsets", false),
            ("deployments", false),
            ("pods/exec", false),
        ] {
            let found = hooks(&configuration(resource, "true"));
            assert_eq!(!found.is_empty(), is_seen, "{resource}");
        }
    }

    #[test]
    fn hooks_must_exempt_this_controller_like_the_built_in_one() {
        let built_in = "request.userInfo.username != \
                        'system:serviceaccount:kube-system:statefulset-controller'";
        let check = judge(&hooks(&configuration("pods", built_in)));
        assert_eq!(check.verdict, Verdict::Todo);
        assert_eq!(check.details, ["guard (pods.example.com)"]);
        let both = format!("{built_in} && !request.userInfo.username.endsWith(':{SHIPPED}')");
        assert!(judge(&hooks(&configuration("pods", &both))).is_passed());
        let policy = json!({
            "metadata": {"name": "no-deletes"},
            "spec": {
                "matchConstraints": {"resourceRules": [{"resources": ["pods"]}]},
                "validations": [{"expression": built_in}],
            },
        });
        assert_eq!(judge(&hooks(&policy)).details, ["no-deletes"]);
        assert!(judge(&[]).is_passed());
    }
}
