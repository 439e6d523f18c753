//! The compiled admission policies with their bindings.

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock};

use kube_apimachinery::selector::{LabelSelector, Selector};
use kube_test_control_plane_api::admission::Constraints;
use kube_test_control_plane_api::admission::policies::{MutatingPolicy, ValidatingPolicy};
use kube_test_control_plane_api::members::{list, text};
use kube_test_control_plane_store::store::StoreReader;
use serde_json::Value;

use super::Phase;
use super::stored::objects;

/// The compiled policies of a server. They are rebuilt only after a change of a policy or a binding.
#[derive(Debug, Default)]
pub(crate) struct Policies(RwLock<Arc<PolicyIndex>>);

/// The policies at one revision.
#[derive(Debug, Default)]
pub(crate) struct PolicyIndex {
    revision: u64,
    /// The mutating policies with bindings, by name.
    pub(crate) mutating: Vec<BoundPolicy<MutatingPolicy>>,
    /// The validating policies with bindings, by name.
    pub(crate) validating: Vec<BoundPolicy<ValidatingPolicy>>,
}

/// A policy with its bindings.
#[derive(Debug)]
pub(crate) struct BoundPolicy<P> {
    /// The resource version of the policy, which no other object has.
    version: u64,
    pub(crate) policy: Arc<P>,
    /// By name.
    pub(crate) bindings: Vec<Arc<Binding>>,
}

/// A binding of a policy.
#[derive(Debug)]
pub(crate) struct Binding {
    pub(crate) name: String,
    /// The requests that it narrows the policy to, if it does.
    pub(crate) constraints: Option<Constraints>,
    pub(crate) params: Option<ParamReference>,
    /// `validationActions`.
    pub(crate) actions: Vec<String>,
}

/// The parameters of a binding.
#[derive(Debug)]
pub(crate) struct ParamReference {
    pub(crate) name: String,
    pub(crate) namespace: String,
    /// The selector, or the reason why it can't be used.
    pub(crate) selector: Option<Result<Selector, String>>,
    /// True if a request without parameters is denied.
    pub(crate) is_required: bool,
}

impl Policies {
    /// Returns the index of the stored policies at a revision, `None` being the newest.
    pub(crate) fn index(&self, store: &StoreReader, at: Option<u64>) -> Arc<PolicyIndex> {
        let changes = store.admission_revision();
        let index = Arc::clone(&self.0.read().unwrap_or_else(PoisonError::into_inner));
        if at.is_some() {
            return Arc::new(index.rebuilt(store, changes, at));
        }
        if index.revision == changes {
            return index;
        }
        let index = Arc::new(index.rebuilt(store, changes, None));
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = Arc::clone(&index);
        index
    }
}

impl PolicyIndex {
    /// Returns false if no policy reviews requests to a resource of this name in a phase.
    pub(crate) fn reviews(&self, phase: Phase, plural: &str) -> bool {
        let names = |constraints: &Constraints| constraints.names_resource(plural);
        match phase {
            Phase::Mutating => self.mutating.iter().any(|it| names(&it.policy.constraints)),
            Phase::Validating => self
                .validating
                .iter()
                .any(|it| names(&it.policy.constraints)),
        }
    }

    fn rebuilt(&self, store: &StoreReader, revision: u64, at: Option<u64>) -> Self {
        Self {
            revision,
            mutating: bound(
                (store, at),
                (
                    "mutatingadmissionpolicies",
                    "mutatingadmissionpolicybindings",
                ),
                &self.mutating,
                MutatingPolicy::compile,
            ),
            validating: bound(
                (store, at),
                (
                    "validatingadmissionpolicies",
                    "validatingadmissionpolicybindings",
                ),
                &self.validating,
                ValidatingPolicy::compile,
            ),
        }
    }
}

/// Returns the stored policies with bindings. Unchanged ones stay compiled.
fn bound<P>(
    (store, at): (&StoreReader, Option<u64>),
    (policies, of_bindings): (&str, &str),
    known: &[BoundPolicy<P>],
    compile: fn(&Value) -> P,
) -> Vec<BoundPolicy<P>> {
    let mut bindings: BTreeMap<String, Vec<Arc<Binding>>> = BTreeMap::new();
    for object in objects(store, (of_bindings, ""), at) {
        let value = object.value();
        let policy = member(&value, "spec").map_or("", |spec| text(spec, "policyName"));
        let binding = Arc::new(Binding::read(&object.key.name, &value));
        bindings.entry(policy.to_owned()).or_default().push(binding);
    }
    let objects = objects(store, (policies, ""), at);
    let bound = objects.iter().filter_map(|object| {
        let bindings = bindings.remove(&*object.key.name)?;
        let version = object.resource_version;
        let known = known.iter().find(|known| known.version == version);
        let policy = known.map(|known| Arc::clone(&known.policy));
        Some(BoundPolicy {
            version,
            policy: policy.unwrap_or_else(|| Arc::new(compile(&object.value()))),
            bindings,
        })
    });
    bound.collect()
}

fn member<'a>(value: &'a Value, name: &str) -> Option<&'a Value> {
    value.get(name).filter(|value| value.is_object())
}

impl Binding {
    fn read(name: &str, value: &Value) -> Self {
        let null = Value::Null;
        let spec = value.get("spec").unwrap_or(&null);
        let actions = list(spec, "validationActions").filter_map(Value::as_str);
        Self {
            name: name.to_owned(),
            constraints: member(spec, "matchResources").map(|of| Constraints::read(Some(of))),
            params: member(spec, "paramRef").map(ParamReference::read),
            actions: actions.map(str::to_owned).collect(),
        }
    }
}

impl ParamReference {
    fn read(reference: &Value) -> Self {
        let selector = member(reference, "selector").map(|selector| {
            let selector: LabelSelector =
                serde_json::from_value(selector.clone()).map_err(|error| error.to_string())?;
            Selector::from_label_selector(Some(&selector)).map_err(|error| error.to_string())
        });
        Self {
            name: text(reference, "name").to_owned(),
            namespace: text(reference, "namespace").to_owned(),
            selector,
            is_required: text(reference, "parameterNotFoundAction") == "Deny",
        }
    }
}
