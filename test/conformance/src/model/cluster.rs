//! Caches, and the API: an object tracker with rule-based failures.

use std::collections::BTreeMap;

use anyhow::Context;
use kube_apimachinery::json::{numbers_as_doubles, to_go_string};
use kube_apimachinery::schema::{UnknownMembers, normalize};
use serde_json::value::RawValue;
use serde_json::{Value, json};
use statefulset_client::fake::{CallError, CallFault, Verb};

use super::failure::Failure;
use super::object::{name, owners, set_owners, text, uid};
use super::rules::Rules;
use crate::sync_case::{Case, LiveReadFault, another_uid};

/// Kinds of objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Set,
    Revision,
    Pod,
    Claim,
}

impl Kind {
    const ALL: [Self; 4] = [Self::Set, Self::Revision, Self::Pod, Self::Claim];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Set => "StatefulSet",
            Self::Revision => "ControllerRevision",
            Self::Pod => "Pod",
            Self::Claim => "PersistentVolumeClaim",
        }
    }

    pub(super) fn resource(self) -> &'static str {
        match self {
            Self::Set => "statefulsets",
            Self::Revision => "controllerrevisions",
            Self::Pod => "pods",
            Self::Claim => "persistentvolumeclaims",
        }
    }

    /// Resource with its group, as in the tracker's own errors.
    fn qualified(self) -> &'static str {
        match self {
            Self::Set => "statefulsets.apps",
            Self::Revision => "controllerrevisions.apps",
            Self::Pod | Self::Claim => self.resource(),
        }
    }
}

/// Initial state of a case.
pub(super) struct InitialState {
    pub(super) set: Option<Value>,
    pub(super) pods: Vec<Value>,
    pub(super) claims: BTreeMap<String, Value>,
    pub(super) revisions: Vec<Value>,
    pub(super) api: Tracker,
}

/// Fills caches and API; the caches contain only the set's namespace.
pub(super) fn load(case: &Case, rules: Rules) -> anyhow::Result<InitialState> {
    let (namespace, set_name) = case.key.split_once('/').context("the case's key")?;
    let mut cluster = InitialState {
        set: None,
        pods: Vec::new(),
        claims: BTreeMap::new(),
        revisions: Vec::new(),
        api: Tracker {
            namespace: namespace.to_owned(),
            objects: BTreeMap::new(),
            faults: case.faults.clone(),
            live_read_fault: case.live_read_fault,
            requests: Vec::new(),
        },
    };
    for raw in &case.objects {
        let (kind, object) = read(raw, rules)?;
        match (kind, &case.live_set) {
            (Kind::Set, _) if case.live_set_absent => {}
            (Kind::Set, Some(live)) => cluster.api.insert(Kind::Set, read(live, rules)?.1),
            _ => cluster.api.insert(kind, object.clone()),
        }
        if text(&object, "/metadata/namespace") != namespace {
            continue;
        }
        match kind {
            Kind::Set if name(&object) == set_name => cluster.set = Some(object),
            Kind::Set => {}
            Kind::Revision => cluster.revisions.push(object),
            Kind::Pod => cluster.pods.push(object),
            Kind::Claim => {
                cluster.claims.insert(name(&object).to_owned(), object);
            }
        }
    }
    for raw in &case.live_pods {
        cluster.api.insert(Kind::Pod, read(raw, rules)?.1);
    }
    Ok(cluster)
}

/// Parses an object. A revision's data becomes text, to keep every byte. Upstream decodes into
/// types, which drops unknown fields.
fn read(raw: &RawValue, rules: Rules) -> anyhow::Result<(Kind, Value)> {
    let mut object: Value = serde_json::from_str(raw.get())?;
    let kind = Kind::ALL
        .into_iter()
        .find(|kind| object["kind"] == kind.name());
    let kind = kind.with_context(|| format!("{} is not supported in a case", object["kind"]))?;
    if kind == Kind::Revision {
        let members: BTreeMap<String, &RawValue> = serde_json::from_str(raw.get())?;
        object["data"] = members
            .get("data")
            .map_or(Value::Null, |data| Value::from(data.get()));
    }
    if !rules.unknown_members {
        drop_unknown(kind, &mut object);
    }
    Ok((kind, object))
}

fn drop_unknown(kind: Kind, object: &mut Value) {
    match kind {
        Kind::Set | Kind::Claim => typed(kind.name(), object),
        Kind::Revision => typed("ObjectMeta", &mut object["metadata"]),
        Kind::Pod => {
            typed("ObjectMeta", &mut object["metadata"]);
            typed("PodSpec", &mut object["spec"]);
        }
    }
}

/// Normalizes a value like Go's type; an invalid one stays unchanged.
fn typed(type_name: &str, value: &mut Value) {
    if let Ok(known) = normalize(type_name, value, UnknownMembers::Drop, "") {
        *value = known;
    }
}

/// Object tracker: stores objects, reports taken and unknown names, and fails by rules.
pub(super) struct Tracker {
    namespace: String,
    objects: BTreeMap<(String, &'static str, String), Value>,
    faults: Vec<CallFault>,
    live_read_fault: Option<LiveReadFault>,
    /// Requests: verb, kind, subresource, name and body.
    pub(super) requests: Vec<Asked>,
}

/// A request of the model.
pub(super) struct Asked {
    pub(super) verb: Verb,
    pub(super) kind: Kind,
    pub(super) subresource: String,
    pub(super) name: String,
    pub(super) body: Value,
}

impl Tracker {
    fn insert(&mut self, kind: Kind, object: Value) {
        let namespace = text(&object, "/metadata/namespace").to_owned();
        let key = (namespace, kind.name(), name(&object).to_owned());
        self.objects.insert(key, object);
    }

    fn key(&self, kind: Kind, name: &str) -> (String, &'static str, String) {
        (self.namespace.clone(), kind.name(), name.to_owned())
    }

    /// All stored objects.
    pub(super) fn objects(&self) -> impl Iterator<Item = &Value> {
        self.objects.values()
    }

    /// Reads an object; never fails by a rule.
    pub(super) fn peek(&self, kind: Kind, name: &str) -> Result<&Value, Failure> {
        let not_found = || {
            let text = format!("{} \"{name}\" not found", kind.qualified());
            Failure::api(CallError::NotFound, text)
        };
        self.objects
            .get(&self.key(kind, name))
            .ok_or_else(not_found)
    }

    /// Makes a live read that upstream doesn't make. Its result equals the cache.
    pub(super) fn look(&self, kind: Kind, name: &str) -> Result<(), Failure> {
        match self.live_read_fault {
            Some(fault) if fault.resource == kind.resource() => {
                Err(fault_failure(fault.error, kind, name))
            }
            _ => Ok(()),
        }
    }

    pub(super) fn get(&mut self, kind: Kind, name: &str) -> Result<Value, Failure> {
        self.inject_fault(Verb::Get, kind, "", name, Value::Null)?;
        self.peek(kind, name).cloned()
    }

    pub(super) fn create(&mut self, kind: Kind, object: Value) -> Result<(), Failure> {
        self.inject_fault(Verb::Create, kind, "", name(&object), object.clone())?;
        if self.peek(kind, name(&object)).is_ok() {
            let text = format!("{} \"{}\" already exists", kind.qualified(), name(&object));
            return Err(Failure::api(CallError::AlreadyExists, text));
        }
        self.insert(kind, object);
        Ok(())
    }

    /// Replaces the whole object, also for a subresource.
    pub(super) fn put(
        &mut self,
        kind: Kind,
        subresource: &str,
        object: Value,
    ) -> Result<(), Failure> {
        self.inject_fault(
            Verb::Update,
            kind,
            subresource,
            name(&object),
            object.clone(),
        )?;
        self.peek(kind, name(&object))?;
        self.insert(kind, object);
        Ok(())
    }

    pub(super) fn delete(
        &mut self,
        kind: Kind,
        name: &str,
        preconditions: Value,
    ) -> Result<(), Failure> {
        let wanted = preconditions["uid"].as_str().map(str::to_owned);
        self.inject_fault(Verb::Delete, kind, "", name, preconditions)?;
        let live = uid(self.peek(kind, name)?);
        if let Some(wanted) = wanted.filter(|wanted| wanted != live) {
            let text = another_uid(kind.resource(), name, &wanted, live);
            return Err(Failure::api(CallError::Conflict, text));
        }
        self.objects.remove(&self.key(kind, name));
        Ok(())
    }

    /// Adds `owner` to the object with a strategic merge patch that has the object's uid.
    pub(super) fn adopt(
        &mut self,
        kind: Kind,
        object: &Value,
        owner: &Value,
    ) -> Result<(), Failure> {
        let patch = json!({"metadata": {"ownerReferences": [owner], "uid": uid(object)}});
        self.patch_owners(kind, object, patch, |owners| {
            match owners.iter_mut().find(|other| other["uid"] == owner["uid"]) {
                Some(other) => *other = owner.clone(),
                None => owners.push(owner.clone()),
            }
        })
    }

    /// Removes the owner with this uid from the object.
    pub(super) fn release(
        &mut self,
        kind: Kind,
        object: &Value,
        owner: &str,
    ) -> Result<(), Failure> {
        let release = json!([{"$patch": "delete", "uid": owner}]);
        let patch = json!({"metadata": {"ownerReferences": release, "uid": uid(object)}});
        self.patch_owners(kind, object, patch, |owners| {
            owners.retain(|other| other["uid"] != owner);
        })
    }

    fn patch_owners(
        &mut self,
        kind: Kind,
        object: &Value,
        patch: Value,
        edit: impl FnOnce(&mut Vec<Value>),
    ) -> Result<(), Failure> {
        self.inject_fault(Verb::Patch, kind, "", name(object), patch)?;
        let mut patched = self.peek(kind, name(object))?.clone();
        let mut references = owners(&patched).to_vec();
        edit(&mut references);
        set_owners(&mut patched, references);
        patched["metadata"]["uid"] = Value::from(uid(object));
        if kind == Kind::Revision {
            reencode(&mut patched["data"]);
        }
        self.insert(kind, patched);
        Ok(())
    }

    fn inject_fault(
        &mut self,
        verb: Verb,
        kind: Kind,
        subresource: &str,
        name: &str,
        body: Value,
    ) -> Result<(), Failure> {
        self.requests.push(Asked {
            verb,
            kind,
            subresource: subresource.to_owned(),
            name: name.to_owned(),
            body,
        });
        let fault = self.faults.iter_mut().find(|fault| {
            fault.times > 0
                && fault.verb == verb
                && fault.resource == kind.resource()
                && fault.subresource == subresource
        });
        let Some(fault) = fault else { return Ok(()) };
        fault.times -= 1;
        Err(fault_failure(fault.error, kind, name))
    }
}

/// Failure of a call by a fault rule.
fn fault_failure(fault: CallError, kind: Kind, name: &str) -> Failure {
    Failure::api(fault, fault_text(fault, kind.resource(), name))
}

/// Re-encodes a revision's data when the revision is patched: Go decodes the whole object and
/// encodes it again.
fn reencode(data: &mut Value) {
    let Some(text) = data.as_str() else { return };
    let Ok(mut decoded) = serde_json::from_str(text) else {
        return;
    };
    numbers_as_doubles(&mut decoded);
    *data = Value::from(to_go_string(&decoded));
}

fn fault_text(fault: CallError, resource: &str, name: &str) -> String {
    match fault {
        CallError::InternalError => String::from("Internal error occurred: boom"),
        CallError::Conflict => {
            format!(
                "Operation cannot be fulfilled on {resource} \"{name}\": object has been modified"
            )
        }
        CallError::Forbidden => format!("{resource} \"{name}\" is forbidden: exceeded quota"),
        CallError::Invalid => format!("X \"{name}\" is invalid"),
        CallError::Timeout => format!(
            "The op operation against {resource} could not be completed at this time, please try \
             again."
        ),
        CallError::AlreadyExists => format!("{resource} \"{name}\" already exists"),
        CallError::NotFound => format!("{resource} \"{name}\" not found"),
    }
}
