//! The two policies and their bindings, as they are shipped.

use serde_json::{Value, json};

use crate::names::{
    BUILT_IN_USER, FENCE, FENCE_MESSAGE, FENCE_PROBE, MIRROR, MIRROR_MESSAGE, MIRROR_PROBE,
    SYSTEM_NAMESPACE, USER_DEFAULT,
};
use crate::namespace_selector::NamespaceSelector;

/// Group and version of the policies.
const API_VERSION: &str = "admissionregistration.k8s.io/v1";

/// The beginning of the condition of a policy, before the user's name.
const USER_IS: &str = "request.userInfo.username == ";
/// The part after the user's name, before the probe's.
const OR_PROBE: &str = " || has(request.name) && request.name == ";

/// What the policies of an installation state.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct FenceSettings {
    /// The namespaces that this program serves.
    pub selector: NamespaceSelector,
    /// The user as which this program writes.
    pub user: String,
}

impl Default for FenceSettings {
    /// The shipped label, and the shipped account in `kube-system`.
    fn default() -> Self {
        Self {
            selector: NamespaceSelector::default(),
            user: USER_DEFAULT.to_owned(),
        }
    }
}

impl FenceSettings {
    /// Sets the namespaces that this program serves.
    #[must_use]
    pub fn selector(mut self, selector: NamespaceSelector) -> Self {
        self.selector = selector;
        self
    }

    /// Sets the user as which this program writes.
    #[must_use]
    pub fn user(mut self, user: impl Into<String>) -> Self {
        self.user = user.into();
        self
    }
}

impl FenceSettings {
    /// Reads the settings from a stored fence and mirror; none if they don't look like shipped ones.
    /// Compare the objects with the settings' policies: everything else may differ.
    pub fn of_stored(fence: &Value, mirror: &Value) -> Option<Self> {
        let label = "/spec/matchConstraints/namespaceSelector/matchExpressions/0";
        let label = fence.pointer(label)?;
        let key = label.get("key")?.as_str()?;
        let value = label.pointer("/values/0")?.as_str()?;
        let condition = mirror.pointer("/spec/matchConditions/0/expression")?;
        let condition = condition.as_str()?.strip_prefix(USER_IS)?;
        let (user, _) = condition.split_once(OR_PROBE)?;
        Some(Self {
            selector: format!("{key}={value}").parse().ok()?,
            user: text_of(user)?,
        })
    }
}

/// This program writes as the user of the built-in controller, so no policy can tell them apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "this program writes as {BUILT_IN_USER}, like the built-in controller, so that no policy can \
     tell them apart; give it its own account"
)]
pub struct SameUser;

/// The policies and bindings of one installation, as JSON with the server's defaults.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct FencePolicies {
    /// Denies the built-in controller's writes in the served namespaces.
    pub fence: Value,
    /// Binds [`Self::fence`].
    pub fence_binding: Value,
    /// Denies this program's writes in all other namespaces.
    pub mirror: Value,
    /// Binds [`Self::mirror`].
    pub mirror_binding: Value,
}

impl FencePolicies {
    /// Renders the objects.
    ///
    /// # Errors
    ///
    /// The user is that of the built-in controller.
    pub fn new(settings: &FenceSettings) -> Result<Self, SameUser> {
        if settings.user == BUILT_IN_USER {
            return Err(SameUser);
        }
        Ok(Self {
            fence: fence(&settings.selector),
            fence_binding: binding(FENCE),
            mirror: mirror(settings),
            mirror_binding: binding(MIRROR),
        })
    }

    /// Returns the objects in the order of an installation: a policy without a binding denies
    /// nothing, and the mirror comes first, so that there is never more than one writer.
    pub fn objects(&self) -> [&Value; 4] {
        [
            &self.mirror,
            &self.mirror_binding,
            &self.fence,
            &self.fence_binding,
        ]
    }
}

/// Denies the built-in controller's writes in labelled namespaces: of everything that it writes, and
/// of its events, because each denied write would leave one.
fn fence(selector: &NamespaceSelector) -> Value {
    let events = |group: &str| rule(group, &["events"]);
    policy(
        FENCE,
        &json!({
            "matchExpressions": [
                {"key": selector.key(), "operator": "In", "values": [selector.value()]},
                {"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": [SYSTEM_NAMESPACE]},
            ],
        }),
        &[core(), apps(), events(""), events("events.k8s.io")],
        &json!({
            "name": "built-in-controller-or-probe",
            "expression": user_or_probe(BUILT_IN_USER, FENCE_PROBE),
        }),
        &json!({"expression": "false", "message": FENCE_MESSAGE, "reason": "Forbidden"}),
    )
}

/// Denies this program's writes in all other namespaces, except its events.
fn mirror(settings: &FenceSettings) -> Value {
    let (key, value) = (settings.selector.key(), settings.selector.value());
    let (key, value) = (literal(key), literal(value));
    let is_served = [
        format!("namespaceObject.metadata.name != '{SYSTEM_NAMESPACE}'"),
        "has(namespaceObject.metadata.labels)".to_owned(),
        format!("{key} in namespaceObject.metadata.labels"),
        format!("namespaceObject.metadata.labels[{key}] == {value}"),
    ];
    policy(
        MIRROR,
        &json!({}),
        &[core(), apps()],
        &json!({
            "name": "this-program-or-probe",
            "expression": user_or_probe(&settings.user, MIRROR_PROBE),
        }),
        &json!({
            "expression": is_served.join(" && "),
            "message": MIRROR_MESSAGE,
            "reason": "Forbidden",
        }),
    )
}

fn policy(
    name: &str,
    namespaces: &Value,
    rules: &[Value],
    condition: &Value,
    validation: &Value,
) -> Value {
    json!({
        "apiVersion": API_VERSION,
        "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": name},
        "spec": {
            "failurePolicy": "Fail",
            "matchConstraints": {
                "matchPolicy": "Equivalent",
                "namespaceSelector": namespaces,
                "objectSelector": {},
                "resourceRules": rules,
            },
            "matchConditions": [condition],
            "validations": [validation],
        },
    })
}

fn binding(policy: &str) -> Value {
    json!({
        "apiVersion": API_VERSION,
        "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": {"name": policy},
        "spec": {"policyName": policy, "validationActions": ["Deny"]},
    })
}

/// Pods and claims, with all subresources: an eviction is one.
fn core() -> Value {
    let claims = "persistentvolumeclaims";
    rule("", &[claims, &format!("{claims}/*"), "pods", "pods/*"])
}

/// Sets, with their status and scale, and revisions.
fn apps() -> Value {
    let resources = ["controllerrevisions", "statefulsets", "statefulsets/*"];
    rule("apps", &resources)
}

fn rule(group: &str, resources: &[&str]) -> Value {
    json!({
        "apiGroups": [group],
        "apiVersions": ["*"],
        "operations": ["CREATE", "UPDATE", "DELETE"],
        "resources": resources,
        "scope": "Namespaced",
    })
}

/// A condition for the requests of a user, and for those of everybody that name the probe. The
/// deletion of a collection has no name.
fn user_or_probe(user: &str, probe: &str) -> String {
    format!("{USER_IS}{}{OR_PROBE}'{probe}'", literal(user))
}

/// Returns the text of a string literal of CEL.
fn text_of(literal: &str) -> Option<String> {
    let inner = literal.strip_prefix('\'')?.strip_suffix('\'')?;
    Some(inner.replace(r"\'", "'").replace(r"\\", "\\"))
}

/// Returns a string literal of CEL.
fn literal(text: &str) -> String {
    let escaped = text.replace('\\', r"\\").replace('\'', r"\'");
    format!("'{escaped}'")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn user_of_the_built_in_controller_is_refused() {
        let settings = FenceSettings::default().user(BUILT_IN_USER);
        assert_eq!(FencePolicies::new(&settings), Err(SameUser));
    }

    #[test]
    fn conditions_name_users_and_labels_as_literals() {
        let settings = FenceSettings::default()
            .user(r"o'brien\x")
            .selector("team=a.b".parse().unwrap());
        let policies = FencePolicies::new(&settings).unwrap();
        assert_eq!(
            policies.mirror["spec"]["matchConditions"][0]["expression"],
            r"request.userInfo.username == 'o\'brien\\x' || has(request.name) && request.name == 'statefulset-controller-manager-mirror-probe'"
        );
        assert_eq!(
            policies.mirror["spec"]["validations"][0]["expression"],
            "namespaceObject.metadata.name != 'kube-system' && has(namespaceObject.metadata.labels) && 'team' in namespaceObject.metadata.labels && namespaceObject.metadata.labels['team'] == 'a.b'"
        );
        let expressions = "/spec/matchConstraints/namespaceSelector/matchExpressions";
        assert_eq!(
            policies.fence.pointer(expressions).unwrap(),
            &json!([
                {"key": "team", "operator": "In", "values": ["a.b"]},
                {"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": ["kube-system"]},
            ])
        );
    }

    #[test]
    fn settings_are_read_from_the_policies() {
        for user in ["system:serviceaccount:ns:name", r"o'brien\x"] {
            let settings = FenceSettings::default()
                .user(user)
                .selector("team=a.b".parse().unwrap());
            let policies = FencePolicies::new(&settings).unwrap();
            let read = FenceSettings::of_stored(&policies.fence, &policies.mirror);
            assert_eq!(read, Some(settings));
        }
        assert_eq!(FenceSettings::of_stored(&json!({}), &json!({})), None);
    }

    #[test]
    fn mirror_is_installed_before_the_fence() {
        let policies = FencePolicies::new(&FenceSettings::default()).unwrap();
        let names = policies.objects().map(|object| {
            let names = [&object["kind"], &object["metadata"]["name"]];
            names.map(|name| name.as_str().unwrap()).join(" ")
        });
        assert_eq!(
            names,
            [
                "ValidatingAdmissionPolicy statefulset-controller-manager-mirror",
                "ValidatingAdmissionPolicyBinding statefulset-controller-manager-mirror",
                "ValidatingAdmissionPolicy statefulset-controller-manager-fence",
                "ValidatingAdmissionPolicyBinding statefulset-controller-manager-fence",
            ]
        );
    }
}
