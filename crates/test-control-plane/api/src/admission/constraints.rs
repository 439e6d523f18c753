//! The requests that a policy, a binding or a webhook applies to.
//!
//! Upstream: `k8s.io/apiserver/pkg/admission/plugin/policy/matching`, and the predicates of webhooks

use kube_apimachinery::selector::{LabelSelector, Selector};
use serde_json::{Map, Value};

use super::attributes::{Attributes, GroupVersionKind, GroupVersionResource, Operation};
use crate::members::text;
use crate::status::{ApiError, ApiResult};

/// `matchConstraints` of a policy, `matchResources` of a binding, or the rules and selectors of a
/// webhook.
#[derive(Debug)]
pub struct Constraints {
    namespace_selector: Result<Selector, String>,
    object_selector: Result<Selector, String>,
    /// `None` if any resource matches.
    rules: Option<Vec<Rule>>,
    exclude_rules: Vec<Rule>,
    is_exact: bool,
}

/// A rule for resources, with operations and names.
#[derive(Debug)]
struct Rule {
    operations: Vec<String>,
    groups: Vec<String>,
    versions: Vec<String>,
    resources: Vec<String>,
    scope: String,
    names: Vec<String>,
}

/// The same resource in another version or group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Equivalent {
    /// The resource.
    pub resource: GroupVersionResource,
    /// The kind of its objects.
    pub kind: GroupVersionKind,
}

/// The namespace of a request.
pub trait Namespace {
    /// Returns its labels.
    ///
    /// # Errors
    ///
    /// There is no such namespace.
    fn labels(&self) -> ApiResult<Map<String, Value>>;
}

impl Constraints {
    /// Reads the constraints of a policy or a binding; absent ones allow everything.
    pub fn read(value: Option<&Value>) -> Self {
        let null = Value::Null;
        let value = value.unwrap_or(&null);
        let rules = Rule::read_all(value.get("resourceRules"));
        Self {
            rules: Some(rules).filter(|rules| !rules.is_empty()),
            exclude_rules: Rule::read_all(value.get("excludeResourceRules")),
            ..Self::of_webhook(value)
        }
    }

    /// Reads the rules and selectors of a webhook.
    pub fn of_webhook(value: &Value) -> Self {
        Self {
            namespace_selector: selector(value.get("namespaceSelector")),
            object_selector: selector(value.get("objectSelector")),
            rules: Some(Rule::read_all(value.get("rules"))),
            exclude_rules: Vec::new(),
            is_exact: text(value, "matchPolicy") != "Equivalent",
        }
    }

    /// Returns false if no request to a resource of this name meets the constraints, in any version and
    /// group.
    pub fn names_resource(&self, plural: &str) -> bool {
        let is_named = |known: &String| {
            let (known, _) = resource_and_part(known);
            known == "*" || known == plural
        };
        let names = |rule: &Rule| rule.resources.iter().any(is_named);
        self.rules
            .as_ref()
            .is_none_or(|rules| rules.iter().any(names))
    }

    /// Returns the resource and the kind in which a request meets the constraints, if it does.
    ///
    /// # Errors
    ///
    /// A selector can't be used, or there is no such namespace.
    pub fn matches(
        &self,
        attributes: &Attributes<'_>,
        namespace: &dyn Namespace,
        equivalents: &[Equivalent],
    ) -> ApiResult<Option<Equivalent>> {
        let in_namespace = self.matches_namespace(attributes, namespace);
        if matches!(in_namespace, Ok(false)) {
            return Ok(None);
        }
        let of_object = self.matches_object(attributes);
        if matches!(of_object, Ok(false)) {
            return Ok(None);
        }
        let is_exact = self.is_exact;
        if find(&self.exclude_rules, is_exact, attributes, equivalents).is_some() {
            return Ok(None);
        }
        let found = match &self.rules {
            None => Some(own(attributes)),
            Some(rules) => find(rules, is_exact, attributes, equivalents),
        };
        if found.is_some() {
            in_namespace?;
            of_object?;
        }
        Ok(found)
    }

    /// Upstream: `MatchNamespaceSelector`
    fn matches_namespace(
        &self,
        attributes: &Attributes<'_>,
        namespace: &dyn Namespace,
    ) -> ApiResult<bool> {
        let is_namespace = attributes.resource.resource == "namespaces";
        if attributes.namespace.is_empty() && !is_namespace {
            return Ok(true);
        }
        let selector = usable(&self.namespace_selector)?;
        if selector.is_empty() {
            return Ok(true);
        }
        let is_written = matches!(attributes.operation, Operation::Create | Operation::Update);
        if is_namespace && attributes.subresource.is_empty() && is_written {
            return Ok(selector.matches(&labels(attributes.object)));
        }
        Ok(selector.matches(&namespace.labels()?))
    }

    /// A connection has options instead of an object, and these have no labels to match.
    ///
    /// Upstream: `MatchObjectSelector`
    fn matches_object(&self, attributes: &Attributes<'_>) -> ApiResult<bool> {
        let selector = usable(&self.object_selector)?;
        if selector.is_empty() {
            return Ok(true);
        }
        if attributes.operation == Operation::Connect {
            return Ok(false);
        }
        let mut objects = [attributes.object, attributes.old_object]
            .into_iter()
            .flatten();
        Ok(objects.any(|object| selector.matches(&labels(Some(object)))))
    }
}

fn usable(selector: &Result<Selector, String>) -> ApiResult<&Selector> {
    let selector = selector.as_ref();
    selector.map_err(|error| ApiError::internal_error(error))
}

fn labels(object: Option<&Value>) -> Map<String, Value> {
    let labels = object.and_then(|object| object.pointer("/metadata/labels"));
    labels
        .and_then(Value::as_object)
        .cloned()
        .unwrap_or_default()
}

fn selector(value: Option<&Value>) -> Result<Selector, String> {
    let Some(value) = value.filter(|value| !value.is_null()) else {
        return Ok(Selector::everything());
    };
    let selector: LabelSelector =
        serde_json::from_value(value.clone()).map_err(|error| error.to_string())?;
    Selector::from_label_selector(Some(&selector)).map_err(|error| error.to_string())
}

fn own(attributes: &Attributes<'_>) -> Equivalent {
    Equivalent {
        resource: attributes.resource.clone(),
        kind: attributes.kind.clone(),
    }
}

/// Returns the resource and the kind in which a request meets a rule.
///
/// Upstream: `matchesResourceRules`
fn find(
    rules: &[Rule],
    is_exact: bool,
    attributes: &Attributes<'_>,
    equivalents: &[Equivalent],
) -> Option<Equivalent> {
    let is_named = |rule: &Rule| {
        rule.names.is_empty() || rule.names.iter().any(|name| name == attributes.name)
    };
    let mut own_rules = rules.iter();
    if own_rules.any(|rule| rule.matches(attributes, &attributes.resource) && is_named(rule)) {
        return Some(own(attributes));
    }
    let others = equivalents.iter().filter(|_| !is_exact);
    let others = others.filter(|other| other.resource != attributes.resource);
    let mut pairs = rules
        .iter()
        .flat_map(|rule| others.clone().map(move |other| (rule, other)));
    let found =
        pairs.find(|(rule, other)| rule.matches(attributes, &other.resource) && is_named(rule));
    found.map(|(_, other)| other.clone())
}

/// Returns the resource and the subresource in a rule; the latter may be empty.
fn resource_and_part(text: &str) -> (&str, &str) {
    text.split_once('/').unwrap_or((text, ""))
}

fn has(list: &[String], wanted: &str) -> bool {
    list.iter().any(|known| known == "*" || known == wanted)
}

impl Rule {
    fn read_all(rules: Option<&Value>) -> Vec<Self> {
        let rules = rules.and_then(Value::as_array).into_iter().flatten();
        rules.map(Self::read).collect()
    }

    fn read(rule: &Value) -> Self {
        let texts = |name: &str| {
            let list = rule.get(name).and_then(Value::as_array);
            let texts = list.into_iter().flatten().filter_map(Value::as_str);
            texts.map(str::to_owned).collect()
        };
        Self {
            operations: texts("operations"),
            groups: texts("apiGroups"),
            versions: texts("apiVersions"),
            resources: texts("resources"),
            scope: text(rule, "scope").to_owned(),
            names: texts("resourceNames"),
        }
    }

    /// Upstream: `rules.Matcher`
    fn matches(&self, attributes: &Attributes<'_>, resource: &GroupVersionResource) -> bool {
        let of_namespaces = attributes.is_of_namespaces();
        let in_scope = match self.scope.as_str() {
            "" | "*" => true,
            "Namespaced" => !of_namespaces && !attributes.namespace.is_empty(),
            "Cluster" => of_namespaces || attributes.namespace.is_empty(),
            _ => false,
        };
        in_scope
            && has(&self.operations, attributes.operation.name())
            && has(&self.groups, &resource.group)
            && has(&self.versions, &resource.version)
            && self.resources.iter().any(|known| {
                let (known, part) = resource_and_part(known);
                (known == "*" || known == resource.resource)
                    && (part == "*" || part == attributes.subresource)
            })
    }
}
