//! Rules of limit ranges and resource quotas.

use std::collections::{BTreeMap, BTreeSet};

use kube_apimachinery::quantity::Quantity;
use serde_json::{Map, Value, json};

use super::Subject;
use super::engine::Errors;
use super::resource_names::{self, NamedFor, parsed};
use crate::go::names;
use crate::members::{at, list_at, text_at};
use crate::status::FieldError;

const SCOPES: [&str; 7] = [
    "BestEffort",
    "CrossNamespacePodAffinity",
    "NotBestEffort",
    "NotTerminating",
    "PriorityClass",
    "Terminating",
    "VolumeAttributesClass",
];

const CONFLICTS: [[&str; 2]; 2] = [
    ["BestEffort", "NotBestEffort"],
    ["Terminating", "NotTerminating"],
];

/// The resources that a scope can measure, besides the number of pods.
const COMPUTE: [&str; 6] = [
    "cpu",
    "limits.cpu",
    "limits.memory",
    "memory",
    "requests.cpu",
    "requests.memory",
];

/// Upstream: `ValidateResourceQuota` and its updates.
pub(super) fn resource_quota(subject: Subject<'_>, errors: &mut Errors) {
    let quota = &subject.new.value;
    for member in ["/spec/hard", "/status/hard", "/status/used"] {
        let path = member.trim_start_matches('/').replace('/', ".");
        for (name, amount) in resources(quota, member) {
            let field = format!("{path}[{name}]");
            resource_names::validate(name, NamedFor::Quotas, &field, errors);
            resource_names::of_quantity(name, amount, &field, errors);
        }
    }
    scopes(quota, errors);
    let of =
        |object: &Value| -> BTreeSet<String> { scope_names(object).map(str::to_owned).collect() };
    if let Some(old) = subject.old
        && of(&old.value) != of(quota)
    {
        refuse_scopes(quota, "field is immutable", errors);
    }
}

/// Upstream: `validateResourceQuotaScopes`.
fn scopes(quota: &Value, errors: &mut Errors) {
    let found: BTreeSet<&str> = scope_names(quota).collect();
    for scope in scope_names(quota) {
        if !SCOPES.contains(&scope) {
            refuse_scopes(quota, "unsupported scope", errors);
        }
        for (name, _) in resources(quota, "/spec/hard") {
            if resource_names::is_of_quotas(name) && !measures(scope, name) {
                refuse_scopes(quota, "unsupported scope applied to resource", errors);
            }
        }
    }
    for pair in CONFLICTS {
        if pair.iter().all(|scope| found.contains(scope)) {
            refuse_scopes(quota, "conflicting scopes", errors);
        }
    }
}

/// Upstream: `IsResourceQuotaScopeValidForResource`.
fn measures(scope: &str, resource: &str) -> bool {
    match scope {
        "BestEffort" => resource == "pods",
        "VolumeAttributesClass" => {
            matches!(resource, "persistentvolumeclaims" | "requests.storage")
        }
        _ if SCOPES.contains(&scope) => resource == "pods" || COMPUTE.contains(&resource),
        _ => true,
    }
}

fn scope_names(quota: &Value) -> impl Iterator<Item = &str> {
    list_at(quota, "/spec/scopes").filter_map(Value::as_str)
}

fn refuse_scopes(quota: &Value, why: &str, errors: &mut Errors) {
    let scopes = at(quota, "/spec/scopes").cloned().unwrap_or_default();
    errors.push(FieldError::invalid("spec.scopes", &scopes, why));
}

fn resources<'a>(
    value: &'a Value,
    pointer: &str,
) -> impl Iterator<Item = (&'a str, &'a Value)> + use<'a> {
    let map: Option<&Map<String, Value>> = at(value, pointer).and_then(Value::as_object);
    map.into_iter()
        .flatten()
        .map(|(name, amount)| (name.as_str(), amount))
}

/// Upstream: `ValidateLimitRange`.
pub(super) fn limit_range(subject: Subject<'_>, errors: &mut Errors) {
    let mut seen = BTreeSet::new();
    for (i, limit) in list_at(&subject.new.value, "/spec/limits").enumerate() {
        let path = format!("spec.limits[{i}]");
        let kind = text_at(limit, "/type");
        let field = format!("{path}.type");
        type_name(kind, &field, errors);
        if !seen.insert(kind) {
            errors.push(FieldError::duplicate(field, &json!(kind)));
        }
        Limit {
            kind,
            members: limit,
            path,
        }
        .validate(errors);
    }
}

fn type_name(kind: &str, field: &str, errors: &mut Errors) {
    let wrong = names::qualified_name(kind);
    let known = ["Container", "PersistentVolumeClaim", "Pod"];
    if wrong.is_empty() && !kind.contains('/') && !known.contains(&kind) {
        let detail = "must be a standard limit type or fully qualified";
        errors.push(FieldError::invalid(field, &json!(kind), detail));
    }
    let wrong = wrong.iter();
    errors.extend(wrong.map(|why| FieldError::invalid(field, &json!(kind), why)));
}

/// One limit of a range.
struct Limit<'a> {
    kind: &'a str,
    members: &'a Value,
    path: String,
}

/// A limit's amounts per resource, as written and as numbers.
type Amounts<'a> = BTreeMap<&'static str, (&'a Value, Quantity)>;

impl Limit<'_> {
    fn validate(&self, errors: &mut Errors) {
        let is_pod = self.kind == "Pod";
        let mut names = BTreeSet::new();
        for member in [
            "max",
            "min",
            "default",
            "defaultRequest",
            "maxLimitRequestRatio",
        ] {
            let mut found = resources(self.members, &format!("/{member}")).peekable();
            if is_pod && matches!(member, "default" | "defaultRequest") {
                if found.peek().is_some() {
                    let field = format!("{}.{member}", self.path);
                    let detail = "may not be specified when `type` is 'Pod'";
                    errors.push(FieldError::forbidden(field, detail));
                }
                continue;
            }
            if member == "maxLimitRequestRatio" {
                self.storage(errors);
            }
            for (name, _) in found {
                let of = match self.kind {
                    "Pod" | "Container" => NamedFor::Containers,
                    _ => NamedFor::Anything,
                };
                resource_names::validate(name, of, &self.field(member, name), errors);
                names.insert(name);
            }
        }
        for name in names {
            let mut amounts = Amounts::new();
            for member in [
                "max",
                "min",
                "default",
                "defaultRequest",
                "maxLimitRequestRatio",
            ] {
                let given = self
                    .members
                    .get(member)
                    .and_then(|amounts| amounts.get(name));
                let is_read = !(is_pod && member.starts_with("default"));
                if let Some(given) = given.filter(|_| is_read)
                    && let Some(number) = parsed(given)
                {
                    amounts.insert(member, (given, number));
                }
            }
            self.relations(name, &amounts, errors);
        }
    }

    fn field(&self, member: &str, name: &str) -> String {
        format!("{}.{member}[{name}]", self.path)
    }

    fn storage(&self, errors: &mut Errors) {
        let limits_storage = ["/min/storage", "/max/storage"]
            .iter()
            .any(|pointer| at(self.members, pointer).is_some());
        if self.kind == "PersistentVolumeClaim" && !limits_storage {
            let detail = "either minimum or maximum storage value is required, but neither was \
                          provided";
            let field = format!("{}.limits", self.path);
            errors.push(FieldError::required(field, detail));
        }
    }

    /// Rejects amounts in the wrong order. Each row has the smaller and the larger amount, and the
    /// field, the value and the words of the error.
    fn relations(&self, name: &str, amounts: &Amounts<'_>, errors: &mut Errors) {
        for (less, more, field, shown, words) in [
            ("min", "max", "min", "min", ["min value", "max value"]),
            (
                "min",
                "defaultRequest",
                "defaultRequest",
                "defaultRequest",
                ["min value", "default request value"],
            ),
            (
                "defaultRequest",
                "max",
                "defaultRequest",
                "defaultRequest",
                ["default request value", "max value"],
            ),
            (
                "defaultRequest",
                "default",
                "defaultRequest",
                "defaultRequest",
                ["default request value", "default limit value"],
            ),
            (
                "min",
                "default",
                "default",
                "min",
                ["min value", "default value"],
            ),
            (
                "default",
                "max",
                "default",
                "max",
                ["default value", "max value"],
            ),
        ] {
            let (Some(lesser), Some(greater)) = (amounts.get(less), amounts.get(more)) else {
                continue;
            };
            if lesser.1 > greater.1
                && let Some((shown, _)) = amounts.get(shown)
            {
                let [first, second] = words;
                let texts = [lesser.0, greater.0].map(|value| value.as_str().unwrap_or_default());
                let [lesser, greater] = texts;
                let detail = format!("{first} {lesser} is greater than {second} {greater}");
                errors.push(FieldError::invalid(self.field(field, name), shown, &detail));
            }
        }
        self.ratio(name, amounts, errors);
        let defaults = (amounts.get("default"), amounts.get("defaultRequest"));
        if let (Some(limit), Some(request)) = defaults
            && !resource_names::can_be_overcommitted(name)
            && limit.1 != request.1
        {
            let texts = [limit.0, request.0].map(|value| value.as_str().unwrap_or_default());
            let [limit, wanted] = texts;
            let detail = format!(
                "default value {limit} must equal to defaultRequest value {wanted} in {name}"
            );
            let field = self.field("defaultRequest", name);
            errors.push(FieldError::invalid(field, request.0, &detail));
        }
    }

    fn ratio(&self, name: &str, amounts: &Amounts<'_>, errors: &mut Errors) {
        let Some((given, ratio)) = amounts.get("maxLimitRequestRatio") else {
            return;
        };
        let text = given.as_str().unwrap_or_default();
        let mut refuse = |detail: String| {
            let field = self.field("maxLimitRequestRatio", name);
            errors.push(FieldError::invalid(field, given, &detail));
        };
        let thousandths = ratio.milli_value();
        if thousandths < 1000 {
            refuse(format!("ratio {text} is less than 1"));
        }
        if let (Some((_, min)), Some((_, max))) = (amounts.get("min"), amounts.get("max")) {
            let most = as_float(max.milli_value()) / as_float(min.milli_value());
            if as_float(thousandths) / 1000.0 > most {
                refuse(format!("ratio {text} is greater than max/min = {most:.6}"));
            }
        }
    }
}

/// Converts a number to the float that Go divides.
#[expect(
    clippy::cast_precision_loss,
    reason = "upstream divides floats as well, and amounts are small"
)]
fn as_float(number: i64) -> f64 {
    number as f64
}
