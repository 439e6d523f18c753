//! The comparison of the stored fence with the shipped one.

use std::fmt;

use serde_json::{Map, Value};

use crate::policies::FencePolicies;
use crate::stored_part::StoredPart;

/// The kinds of the fence's objects.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PartKind {
    /// A `ValidatingAdmissionPolicy`.
    Policy,
    /// A `ValidatingAdmissionPolicyBinding`.
    Binding,
}

impl PartKind {
    /// Returns the kind's name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Policy => "ValidatingAdmissionPolicy",
            Self::Binding => "ValidatingAdmissionPolicyBinding",
        }
    }
}

/// The first reason why the fence doesn't stand as shipped. Formats as a sentence.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Gap {
    /// The kind of the object.
    pub kind: PartKind,
    /// Its name.
    pub name: String,
    /// The problem.
    pub problem: Problem,
}

/// The problem with an object of the fence.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Problem {
    /// It doesn't exist.
    Missing,
    /// It is being deleted.
    Deleting,
    /// A field of its spec isn't as shipped.
    Different {
        /// The field of the spec.
        field: String,
    },
    /// The server has not checked its latest spec yet.
    NotObserved,
    /// The server's type checks found a mistake in an expression.
    TypeWarnings,
}

impl fmt::Display for Gap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} ", self.kind.as_str(), self.name)?;
        match &self.problem {
            Problem::Missing => f.write_str("does not exist"),
            Problem::Deleting => f.write_str("is being deleted"),
            Problem::Different { field } => {
                write!(f, "is not as shipped: spec.{field} differs")
            }
            Problem::NotObserved => f.write_str("was changed and is not checked yet"),
            Problem::TypeWarnings => {
                f.write_str("has expressions that do not fit this API server, see its status")
            }
        }
    }
}

/// Returns the first reason why the stored fence isn't the shipped one; `stored` finds an object by
/// kind and name.
pub fn gap<'a>(
    policies: &FencePolicies,
    stored: impl Fn(PartKind, &str) -> Option<&'a StoredPart>,
) -> Option<Gap> {
    policies.objects().into_iter().find_map(|object| {
        let kind = match object.pointer("/kind").and_then(Value::as_str) {
            Some("ValidatingAdmissionPolicy") => PartKind::Policy,
            _ => PartKind::Binding,
        };
        let name = object.pointer("/metadata/name").and_then(Value::as_str);
        let name = name.unwrap_or_default();
        let problem = match stored(kind, name) {
            None => Problem::Missing,
            Some(part) => problem(object.get("spec"), part)?,
        };
        Some(Gap {
            kind,
            name: name.to_owned(),
            problem,
        })
    })
}

fn problem(shipped: Option<&Value>, part: &StoredPart) -> Option<Problem> {
    if part.is_deleting {
        return Some(Problem::Deleting);
    }
    if let Some(field) = different_field(shipped, &part.spec) {
        return Some(Problem::Different { field });
    }
    if part.has_warnings {
        return Some(Problem::TypeWarnings);
    }
    let is_old = |observed: i64| observed < part.generation;
    part.observed_generation
        .is_some_and(is_old)
        .then_some(Problem::NotObserved)
}

/// Returns the first field that only one of two objects has, or that differs.
fn different_field(shipped: Option<&Value>, stored: &Value) -> Option<String> {
    let none = Map::new();
    let shipped = shipped.and_then(Value::as_object).unwrap_or(&none);
    let stored = stored.as_object().unwrap_or(&none);
    let mut fields = shipped.keys().chain(stored.keys());
    fields
        .find(|field| shipped.get(*field) != stored.get(*field))
        .cloned()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::names::{FENCE, MIRROR};
    use crate::policies::FenceSettings;

    fn policies() -> FencePolicies {
        FencePolicies::new(&FenceSettings::default()).unwrap()
    }

    fn stored(object: &Value) -> (PartKind, StoredPart) {
        let kind = match object["kind"].as_str().unwrap() {
            "ValidatingAdmissionPolicy" => PartKind::Policy,
            _ => PartKind::Binding,
        };
        let part = StoredPart {
            name: object["metadata"]["name"].as_str().unwrap().into(),
            uid: "u".into(),
            resource_version: "1".into(),
            generation: 1,
            is_deleting: false,
            spec: object["spec"].clone(),
            observed_generation: None,
            has_warnings: false,
        };
        (kind, part)
    }

    /// The gap after a change of one stored object.
    fn after(kind: PartKind, name: &str, change: impl FnOnce(&mut StoredPart)) -> Option<String> {
        let policies = policies();
        let mut all = policies.objects().map(stored);
        let changed = all
            .iter_mut()
            .find(|(of, part)| *of == kind && &*part.name == name);
        change(&mut changed.unwrap().1);
        let find = |kind: PartKind, name: &str| {
            let found = all
                .iter()
                .find(|(of, part)| *of == kind && &*part.name == name);
            found.map(|(_, part)| part)
        };
        gap(&policies, find).map(|gap| gap.to_string())
    }

    #[test]
    fn fence_as_shipped_has_no_gap() {
        assert_eq!(after(PartKind::Policy, FENCE, |_| {}), None);
        let observed = |part: &mut StoredPart| part.observed_generation = Some(1);
        assert_eq!(after(PartKind::Policy, FENCE, observed), None);
    }

    #[test]
    fn every_change_of_a_spec_is_a_gap() {
        let (policy, binding) = (PartKind::Policy, PartKind::Binding);
        let gap = after(binding, FENCE, |it| {
            it.spec["validationActions"] = json!(["Audit"]);
        });
        let expected = "ValidatingAdmissionPolicyBinding statefulset-controller-manager-fence is not as shipped: spec.validationActions differs";
        assert_eq!(gap.as_deref(), Some(expected));
        let gap = after(policy, MIRROR, |it| {
            it.spec["failurePolicy"] = json!("Ignore");
        });
        assert!(gap.unwrap().ends_with("spec.failurePolicy differs"));
        let gap = after(policy, FENCE, |it| {
            it.spec["matchConstraints"]["excludeResourceRules"] = json!([{}]);
        });
        assert!(gap.unwrap().ends_with("spec.matchConstraints differs"));
        let gap = after(binding, MIRROR, |it| {
            it.spec["matchResources"] = json!({"namespaceSelector": {}});
        });
        assert!(gap.unwrap().ends_with("spec.matchResources differs"));
    }

    #[test]
    fn states_of_an_object_are_gaps() {
        let (policy, name) = (PartKind::Policy, MIRROR);
        let gap = after(policy, name, |it| it.is_deleting = true);
        assert!(gap.unwrap().ends_with("is being deleted"));
        let gap = after(policy, name, |it| it.has_warnings = true);
        assert!(gap.unwrap().contains("do not fit this API server"));
        let gap = after(policy, name, |it| {
            (it.generation, it.observed_generation) = (2, Some(1));
        });
        assert!(gap.unwrap().ends_with("is not checked yet"));
        let missing = gap_of_nothing();
        assert_eq!(
            missing,
            "ValidatingAdmissionPolicy statefulset-controller-manager-mirror does not exist"
        );
    }

    fn gap_of_nothing() -> String {
        gap(&policies(), |_, _| None).unwrap().to_string()
    }
}
