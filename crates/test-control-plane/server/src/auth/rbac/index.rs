//! Bindings by subject, with their rules.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use kube_apimachinery::labels::Labels;
use kube_apimachinery::selector::{LabelSelector, Selector};
use kube_test_control_plane_api::kinds::{self, Kind};
use kube_test_control_plane_api::object::{Key, Object};
use kube_test_control_plane_api::status::ApiError;
use kube_test_control_plane_store::store::StoreReader;
use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::PolicyRule;
use crate::auth::attributes::Attributes;
use crate::auth::decision::Decision;
use crate::auth::identity::{Identity, service_account_user};

/// An index of the roles and bindings at one revision.
#[derive(Debug, Default)]
pub(crate) struct RbacIndex {
    /// The revision of the last indexed change.
    pub(crate) revision: u64,
    cluster: Bindings,
    namespaces: HashMap<Arc<str>, Bindings>,
    roles: BTreeMap<Key, Arc<Role>>,
}

/// Grants by subject.
#[derive(Debug, Default)]
struct Bindings {
    users: HashMap<String, Vec<Arc<Grant>>>,
    groups: HashMap<String, Vec<Arc<Grant>>>,
}

/// A binding's grant to one subject.
#[derive(Debug)]
pub(crate) struct Grant {
    /// Order among the bindings of the same scope, and of the subject in its binding.
    order: (usize, usize),
    /// Reason for allowed requests.
    pub(crate) reason: String,
    /// The rules of the role, or the reason for their absence.
    pub(crate) rules: Result<Arc<[PolicyRule]>, NoRules>,
}

/// Reason why a binding has no rules.
#[derive(Clone, Debug)]
pub(crate) enum NoRules {
    /// The role does not exist: its resource and name.
    Missing(&'static Kind, String),
    /// Upstream has this kind, which is no role.
    NoRole(String),
}

/// The bindings that apply to a user: those of the cluster, then those of a namespace, each ordered
/// by name.
pub(crate) struct Grants(Vec<Arc<Grant>>);

/// A parsed role.
#[derive(Debug)]
struct Role {
    resource_version: u64,
    labels: Labels,
    own: Arc<[PolicyRule]>,
    aggregates: Option<Vec<Selector>>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct RoleBody {
    rules: Option<Vec<PolicyRule>>,
    aggregation_rule: Option<AggregationRule>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct AggregationRule {
    cluster_role_selectors: Option<Vec<LabelSelector>>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct BindingBody {
    role_ref: RoleRef,
    subjects: Option<Vec<SubjectBody>>,
}

/// The role reference of a binding.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct RoleRef {
    pub(crate) api_group: String,
    pub(crate) kind: String,
    pub(crate) name: String,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct SubjectBody {
    kind: String,
    name: String,
    namespace: String,
}

impl RbacIndex {
    /// Decides by the rules. A request that no rule allows gets the errors of broken bindings as
    /// reason.
    ///
    /// Upstream: `RBACAuthorizer.Authorize`.
    pub(crate) fn decide(&self, user: &Identity, attributes: &Attributes<'_>) -> Decision {
        let grants = self.grants(user, attributes.namespace());
        let allowing = grants.iter().find(|grant| {
            let rules = grant.rules.as_ref().map_or(&[][..], |rules| rules);
            rules.iter().any(|rule| rule.allows(attributes))
        });
        if let Some(grant) = allowing {
            return Decision::Allowed(grant.reason.clone());
        }
        Decision::NoOpinion(match grants.errors(false) {
            Some(errors) => format!("RBAC: {errors}"),
            None => String::new(),
        })
    }

    /// Builds the index of the current store; unchanged roles are not parsed again.
    pub(crate) fn rebuilt(&self, store: &StoreReader, revision: u64) -> Self {
        let mut roles = BTreeMap::new();
        for storage in ["clusterroles", "roles"] {
            for object in store.list(storage, "").1 {
                let known = self.roles.get(&object.key);
                let known = known.filter(|r| r.resource_version == object.resource_version);
                let role = known.map_or_else(|| Arc::new(Role::read(&object)), Arc::clone);
                roles.insert(object.key.clone(), role);
            }
        }
        let mut index = Self {
            revision,
            roles,
            ..Self::default()
        };
        index.aggregate();
        for (order, object) in store.list("clusterrolebindings", "").1.iter().enumerate() {
            let grants = index.read_binding(order, object);
            index.cluster.add(grants);
        }
        for (order, object) in store.list("rolebindings", "").1.iter().enumerate() {
            let grants = index.read_binding(order, object);
            let namespace = Arc::clone(&object.key.namespace);
            index.namespaces.entry(namespace).or_default().add(grants);
        }
        index
    }

    /// Gives aggregated roles the rules of their selected roles.
    ///
    /// Upstream: `ClusterRoleAggregationController.syncClusterRole`.
    fn aggregate(&mut self) {
        let mut aggregated = Vec::new();
        for (key, role) in &self.roles {
            if role.aggregates.is_none() {
                continue;
            }
            let mut rules = Vec::new();
            collect(&self.roles, key, &mut vec![key], &mut rules);
            let role = Role {
                own: rules.into(),
                labels: role.labels.clone(),
                aggregates: role.aggregates.clone(),
                ..**role
            };
            aggregated.push((key.clone(), Arc::new(role)));
        }
        self.roles.extend(aggregated);
    }

    /// Returns a binding's grants by subject.
    fn read_binding(&self, order: usize, object: &Object) -> Vec<(Subject, Arc<Grant>)> {
        let body: BindingBody = body(object);
        let namespace = &*object.key.namespace;
        let rules = self.rules_of(&body.role_ref, namespace);
        let RoleRef { kind, name, .. } = &body.role_ref;
        let binding = if namespace.is_empty() {
            format!("ClusterRoleBinding {:?}", object.key.name)
        } else {
            format!(
                "RoleBinding {:?}",
                format!("{}/{namespace}", object.key.name)
            )
        };
        let mut grants = Vec::new();
        for (place, subject) in body.subjects.unwrap_or_default().into_iter().enumerate() {
            let Some((key, described)) = subject.resolved(namespace) else {
                continue;
            };
            let grant = Grant {
                order: (order, place),
                reason: format!(
                    "RBAC: allowed by {binding} of {kind} {name:?} to {} {described:?}",
                    subject.kind
                ),
                rules: rules.clone(),
            };
            grants.push((key, Arc::new(grant)));
        }
        grants
    }

    /// Returns the rules of the role referenced in `namespace`, or the reason for their absence.
    pub(crate) fn rules_of(
        &self,
        role: &RoleRef,
        namespace: &str,
    ) -> Result<Arc<[PolicyRule]>, NoRules> {
        let kind = role.resource().and_then(kinds::by_storage);
        let kind = kind.ok_or_else(|| NoRules::NoRole(role.kind.clone()))?;
        let namespace = if kind.namespaced { namespace } else { "" };
        let found = self.roles.get(&Key::new(kind, namespace, &role.name));
        let rules = found.map(|role| Arc::clone(&role.own));
        rules.ok_or_else(|| NoRules::Missing(kind, role.name.clone()))
    }

    /// Returns the bindings that apply to a user in a namespace, or at the cluster scope if it is
    /// empty.
    pub(crate) fn grants(&self, user: &Identity, namespace: &str) -> Grants {
        let mut all = self.cluster.of(user);
        if let Some(bindings) = self.namespaces.get(namespace) {
            all.extend(bindings.of(user));
        }
        Grants(all)
    }
}

impl RoleRef {
    /// Returns the resource of the role.
    pub(crate) fn resource(&self) -> Option<&'static str> {
        match self.kind.as_str() {
            "ClusterRole" => Some("clusterroles"),
            "Role" => Some("roles"),
            _ => None,
        }
    }
}

impl NoRules {
    /// Formats the error with the role's resource in the singular or plural.
    fn text(&self, plural: bool) -> String {
        match self {
            Self::Missing(kind, name) => {
                let resource = if plural { &kind.plural } else { &kind.singular };
                format!("{resource}.{} {name:?} not found", kind.group)
            }
            Self::NoRole(kind) => format!("unsupported role reference kind: {kind:?}"),
        }
    }
}

impl From<NoRules> for ApiError {
    fn from(why: NoRules) -> Self {
        match &why {
            NoRules::Missing(kind, name) => Self::not_found(kind, name),
            NoRules::NoRole(_) => Self::internal(why.text(true)),
        }
    }
}

impl Grants {
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Grant> {
        self.0.iter().map(|grant| &**grant)
    }

    /// Returns all rules that apply.
    pub(crate) fn rules(&self) -> impl Iterator<Item = &PolicyRule> {
        let rules = self.iter().filter_map(|grant| grant.rules.as_ref().ok());
        rules.flat_map(|rules| rules.iter())
    }

    /// Returns the distinct errors of broken bindings, with resources in the singular or plural.
    pub(crate) fn errors(&self, plural: bool) -> Option<String> {
        let mut errors: Vec<String> = Vec::new();
        for error in self.iter().filter_map(|grant| grant.rules.as_ref().err()) {
            let text = error.text(plural);
            if !errors.contains(&text) {
                errors.push(text);
            }
        }
        match errors.as_slice() {
            [] => None,
            [one] => Some(one.clone()),
            more => Some(format!("[{}]", more.join(", "))),
        }
    }
}

impl Bindings {
    fn add(&mut self, grants: Vec<(Subject, Arc<Grant>)>) {
        for (subject, grant) in grants {
            let (map, name) = match subject {
                Subject::User(name) => (&mut self.users, name),
                Subject::Group(name) => (&mut self.groups, name),
            };
            map.entry(name).or_default().push(grant);
        }
    }

    /// Returns a user's grants, one per binding, by the first matching subject.
    fn of(&self, user: &Identity) -> Vec<Arc<Grant>> {
        let mut found: Vec<Arc<Grant>> = Vec::new();
        let by_user = self.users.get(&user.name);
        let by_group = user
            .groups
            .iter()
            .filter_map(|group| self.groups.get(group));
        for grants in by_user.into_iter().chain(by_group) {
            found.extend(grants.iter().map(Arc::clone));
        }
        found.sort_by_key(|grant| grant.order);
        found.dedup_by_key(|grant| grant.order.0);
        found
    }
}

/// Subject of a binding.
enum Subject {
    User(String),
    Group(String),
}

impl SubjectBody {
    /// Returns the subject and its name for messages; `None` for an unknown kind or a missing
    /// namespace.
    fn resolved(&self, binding_namespace: &str) -> Option<(Subject, String)> {
        match self.kind.as_str() {
            "User" => Some((Subject::User(self.name.clone()), self.name.clone())),
            "Group" => Some((Subject::Group(self.name.clone()), self.name.clone())),
            "ServiceAccount" => {
                let namespace = match self.namespace.as_str() {
                    "" => binding_namespace,
                    named => named,
                };
                let user = service_account_user(namespace, &self.name);
                let described = format!("{}/{namespace}", self.name);
                (!namespace.is_empty()).then_some((Subject::User(user), described))
            }
            _ => None,
        }
    }
}

impl Role {
    fn read(object: &Object) -> Self {
        let body: RoleBody = body(object);
        let selectors = body.aggregation_rule.map(|aggregation| {
            let selectors = aggregation.cluster_role_selectors.unwrap_or_default();
            let parsed = selectors
                .iter()
                .map(|s| Selector::from_label_selector(Some(s)));
            parsed.filter_map(Result::ok).collect()
        });
        Self {
            resource_version: object.resource_version,
            labels: object.labels.clone(),
            own: body.rules.unwrap_or_default().into(),
            aggregates: selectors,
        }
    }
}

/// Adds the distinct rules of a role to `rules`; `open` holds the roles already on the path.
fn collect<'a>(
    roles: &'a BTreeMap<Key, Arc<Role>>,
    key: &'a Key,
    open: &mut Vec<&'a Key>,
    rules: &mut Vec<PolicyRule>,
) {
    let Some(role) = roles.get(key) else {
        return;
    };
    let Some(selectors) = &role.aggregates else {
        for rule in &*role.own {
            if !rules.contains(rule) {
                rules.push(rule.clone());
            }
        }
        return;
    };
    for (other, candidate) in roles {
        let selected =
            other.storage == key.storage && selectors.iter().any(|s| s.matches(&candidate.labels));
        if selected && !open.contains(&other) {
            open.push(other);
            collect(roles, other, open, rules);
            open.pop();
        }
    }
}

/// Parses a stored object. Unvalidated bodies that can't be parsed grant nothing.
fn body<T: DeserializeOwned + Default>(object: &Object) -> T {
    serde_json::from_slice(object.text()).unwrap_or_else(|err| {
        tracing::warn!(
            resource = %object.key.storage,
            namespace = %object.key.namespace,
            name = %object.key.name,
            %err,
            "failed to parse a role or binding, ignoring it"
        );
        T::default()
    })
}
