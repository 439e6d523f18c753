//! Revisions: their data, the current and the update revision, and history truncation.

use std::cmp::Ordering;
use std::collections::BTreeSet;
use std::rc::Rc;

use jiff::Timestamp;
use kube_apimachinery::defaults::set_pod_template_defaults;
use kube_apimachinery::hash::{FNV1_32_OFFSET, fnv1_32, safe_encode_string};
use kube_apimachinery::json::{numbers_as_doubles, to_go_string};
use kube_apimachinery::schema::{
    PathStep, TypeName, UnknownMembers, Version, get_path, normalize, unknown_members,
};
use kube_apimachinery::selector::Selector;
use serde_json::{Map, Value, json};

use super::cluster::Kind;
use super::failure::Failure;
use super::object::{controller, label, map, name, number, text};
use super::set::REVISION;
use super::sync::Sync;

/// Type of the recorded templates.
const TEMPLATE: &str = "PodTemplateSpec";
/// Path of the template in a set.
const TEMPLATE_PLACE: &str = "spec.template";
/// Maximum number of attempts at a renumbering.
const RENUMBERING_TRIES_MAX: usize = 4;
/// Length of the set's name in revision names, in bytes.
const NAME_PREFIX_MAX: usize = 223;

/// Revisions of a sync.
pub(super) struct Chosen {
    pub(super) current: Value,
    pub(super) update: Value,
    pub(super) collision_count: i64,
}

/// The text of a revision's data.
fn data(revision: &Value) -> &str {
    text(revision, "/data")
}

/// Recorded data of a template.
fn blob(template: &Value) -> String {
    let mut template = template.clone();
    numbers_as_doubles(&mut template);
    template["$patch"] = Value::from("replace");
    to_go_string(&json!({"spec": {"template": template}}))
}

/// Adds an empty creation time to the template and its ephemeral claims, as 1.33 records it.
fn with_creation_times(mut template: Value) -> Value {
    let claims = template.pointer("/spec/volumes").and_then(Value::as_array);
    for index in 0..claims.map_or(0, Vec::len) {
        let claim = format!("/spec/volumes/{index}/ephemeral/volumeClaimTemplate");
        if let Some(claim) = template
            .pointer_mut(&claim)
            .filter(|claim| claim.is_object())
        {
            add_creation_time(claim);
        }
    }
    add_creation_time(&mut template);
    template
}

fn add_creation_time(object: &mut Value) {
    let metadata = &mut object["metadata"];
    if metadata.get("creationTimestamp").is_none() {
        metadata["creationTimestamp"] = Value::Null;
    }
}

/// Returns true if the unknown fields of both a recorded template and the set's have equal values.
fn unknown_values_stay(of: TypeName<'_>, recorded: &Value, template: &Value) -> bool {
    unknown_members(of, recorded)
        .into_iter()
        .all(|(path, value)| {
            let present = get_path(template, &path).unwrap_or(&Value::Null);
            present.is_null() || value.is_null() || present == value
        })
}

/// Returns true if recorded data without its unknown fields equals upstream's data of the
/// template, in one of its forms.
fn holds(of: TypeName<'_>, data: &str, template: &Value, known: &[String]) -> bool {
    let Ok(mut data) = serde_json::from_str::<Value>(data) else {
        return false;
    };
    let mut recorded = data["spec"]["template"].clone();
    let Some(members) = recorded.as_object_mut() else {
        return false;
    };
    members.remove("$patch");
    let unknown = unknown_members(of, &recorded);
    for (path, _) in &unknown {
        remove(&mut data["spec"]["template"], path.steps());
    }
    !unknown.is_empty()
        && unknown_values_stay(of, &recorded, template)
        && known.contains(&to_go_string(&data))
}

/// Removes the field at a path.
fn remove(value: &mut Value, path: &[PathStep]) {
    match path {
        [PathStep::Member(name)] => {
            if let Some(members) = value.as_object_mut() {
                members.remove(name);
            }
        }
        [PathStep::Member(name), rest @ ..] => remove(&mut value[name], rest),
        [PathStep::Index(index), rest @ ..] => remove(&mut value[index], rest),
        [] => {}
    }
}

fn is_one_of(data: &str, forms: &[String]) -> bool {
    forms.iter().any(|form| form == data)
}

/// Hash of a revision's data and the collision count.
fn hash(data: &str, collision_count: i64) -> String {
    let hash = fnv1_32(data.as_bytes(), FNV1_32_OFFSET);
    safe_encode_string(&fnv1_32(collision_count.to_string().as_bytes(), hash).to_string())
}

fn by_age(a: &Value, b: &Value) -> Ordering {
    let created = |revision: &Value| {
        text(revision, "/metadata/creationTimestamp")
            .parse::<Timestamp>()
            .ok()
    };
    number(a, "/revision")
        .cmp(&number(b, "/revision"))
        .then_with(|| created(a).cmp(&created(b)))
        .then_with(|| name(a).cmp(name(b)))
}

/// Applies data that doesn't replace the whole template: objects are merged, null removes, and
/// lists of named objects are merged by name. No controller records such data.
fn merged(base: Value, patch: Value) -> Value {
    match (base, patch) {
        (Value::Object(mut base), Value::Object(patch)) => {
            for (name, change) in patch {
                match base.remove(&name) {
                    _ if change.is_null() => {}
                    Some(old) => {
                        base.insert(name, merged(old, change));
                    }
                    None => {
                        base.insert(name, merged(Value::Object(Map::new()), change));
                    }
                }
            }
            Value::Object(base)
        }
        (Value::Array(mut base), Value::Array(patch))
            if base
                .iter()
                .chain(&patch)
                .all(|element| element["name"].is_string()) =>
        {
            for change in patch {
                match base
                    .iter_mut()
                    .find(|element| element["name"] == change["name"])
                {
                    Some(element) => *element = merged(element.take(), change),
                    None => base.push(change),
                }
            }
            Value::Array(base)
        }
        (_, patch) => patch,
    }
}

/// Selected revisions, controlled by the set or without a controller, sorted.
pub(super) fn list_revisions(sync: &Sync, selector: &Selector) -> Vec<Value> {
    let set = &sync.set;
    let is_ours = |revision: &&Value| {
        controller(revision).is_none_or(|owner| {
            owner["kind"] == "StatefulSet"
                && owner["name"] == set.name.as_str()
                && owner["uid"] == set.uid.as_str()
        }) && selector.matches(&map(revision, "/metadata/labels"))
    };
    let mut listed: Vec<Value> = sync.revisions.iter().filter(is_ours).cloned().collect();
    listed.sort_by(by_age);
    listed
}

/// Finds, renumbers or creates the revision of the set's template, and finds the current one.
pub(super) fn choose(sync: &mut Sync, revisions: &[Value]) -> Result<Chosen, Failure> {
    let set = Rc::clone(&sync.set);
    let template = &set.value["spec"]["template"];
    let known = forms(sync, &without_unknown(sync, template));
    let whole = if sync.rules.unknown_members {
        forms(sync, template)
    } else {
        known.clone()
    };
    let next = revisions
        .last()
        .map_or(1, |last| number(last, "/revision") + 1);
    let mut collision_count = number(&set.value, "/status/collisionCount");

    let position = find_equal(sync, revisions, template, &whole, &known);
    let update = match (position, revisions.last()) {
        (Some(at), Some(last)) if at + 1 == revisions.len() => last.clone(),
        (Some(at), _) => renumber(sync, &revisions[at], next)?,
        (None, _) => create_revision(sync, &whole[0], next, &mut collision_count)?,
    };
    let current_name = text(&set.value, "/status/currentRevision");
    let current = revisions
        .iter()
        .find(|revision| name(revision) == current_name);
    let current = current.unwrap_or(&update).clone();
    Ok(Chosen {
        current,
        update,
        collision_count,
    })
}

/// Index of the recorded revision that equals the template: byte-equal, or the latest if
/// semantically equal. With unknown fields kept, the latest precedes older ones that equal the
/// template except for such fields.
fn find_equal(
    sync: &Sync,
    revisions: &[Value],
    template: &Value,
    whole: &[String],
    known: &[String],
) -> Option<usize> {
    let exact = revisions
        .iter()
        .rposition(|revision| is_one_of(data(revision), whole));
    let last = revisions.last()?;
    let is_equal = |revision: &Value| {
        is_one_of(data(revision), known)
            || sync.rules.unknown_members
                && holds(template_type(sync), data(revision), template, known)
    };
    let latest = || {
        let is_latest = is_equal(last) || means_the_same(sync, last, template, known);
        is_latest.then(|| revisions.len() - 1)
    };
    exact
        .or_else(latest)
        .or_else(|| revisions.iter().rposition(is_equal))
}

/// Returns true if the latest revision, decoded and defaulted by this version, equals the
/// template.
fn means_the_same(sync: &Sync, latest: &Value, template: &Value, known: &[String]) -> bool {
    if !sync.semantic_gate {
        return false;
    }
    let Ok(recorded) = recorded_template(sync, latest) else {
        return false;
    };
    let of = template_type(sync);
    if sync.rules.unknown_members && !unknown_values_stay(of, &recorded, template) {
        return false;
    }
    let mut meant = without_unknown(sync, &recorded);
    set_pod_template_defaults(&mut meant);
    known.contains(&blob(&without_unknown(sync, &meant)))
}

/// The type of templates in the emulated version.
fn template_type(sync: &Sync) -> TypeName<'static> {
    let (name, version) = (TEMPLATE, Version::of_minor(sync.minor));
    TypeName { name, version }
}

/// The template without unknown fields, as upstream would encode it.
fn without_unknown(sync: &Sync, template: &Value) -> Value {
    let drop = UnknownMembers::Drop;
    let known = normalize(template_type(sync), template, drop, TEMPLATE_PLACE);
    known.unwrap_or_else(|_| template.clone())
}

/// Recorded data of a template in the forms that count as equal, that of new revisions first.
fn forms(sync: &Sync, template: &Value) -> Vec<String> {
    let mut forms = vec![blob(template)];
    if sync.minor < 34 {
        forms.insert(0, blob(&with_creation_times(template.clone())));
    }
    forms
}

/// Sets the number of a recorded revision.
fn renumber(sync: &mut Sync, revision: &Value, number: i64) -> Result<Value, Failure> {
    let mut renumbered = revision.clone();
    renumbered["revision"] = Value::from(number);
    let tries = if sync.rules.retry_renumbering {
        RENUMBERING_TRIES_MAX
    } else {
        1
    };
    let mut result = Ok(());
    for _ in 0..tries {
        result = sync.api.put(Kind::Revision, "", renumbered.clone());
        if !result.as_ref().is_err_and(Failure::is_conflict) {
            break;
        }
    }
    if !sync.rules.retry_renumbering && result.as_ref().is_err_and(Failure::is_conflict) {
        result = renumber_nothing(sync, number);
    }
    result.map(|()| renumbered)
}

/// Upstream's request after a conflict: the failed call has left an empty revision.
fn renumber_nothing(sync: &mut Sync, number: i64) -> Result<(), Failure> {
    let nothing = json!({
        "apiVersion": "apps/v1",
        "kind": "ControllerRevision",
        "metadata": {},
        "data": "null",
        "revision": number,
    });
    let mut result = Ok(());
    for _ in 1..RENUMBERING_TRIES_MAX {
        result = sync.api.put(Kind::Revision, "", nothing.clone());
        if !result.as_ref().is_err_and(Failure::is_conflict) {
            break;
        }
    }
    result
}

/// Records the template under a free name, or reuses a revision with the same data.
fn create_revision(
    sync: &mut Sync,
    data: &str,
    number: i64,
    collision_count: &mut i64,
) -> Result<Value, Failure> {
    let mut revision = new_revision(sync, data, number, *collision_count);
    loop {
        let prefix = sync
            .set
            .name
            .get(..NAME_PREFIX_MAX)
            .unwrap_or(&sync.set.name);
        let free = format!("{prefix}-{}", hash(data, *collision_count));
        revision["metadata"]["name"] = Value::from(free.as_str());
        match sync.api.create(Kind::Revision, revision.clone()) {
            Err(failure) if failure.is_already_exists() => {}
            result => return result.map(|()| revision),
        }
        let existing = sync.api.get(Kind::Revision, &free)?;
        if self::data(&existing) == data {
            return Ok(existing);
        }
        *collision_count += 1;
    }
}

/// Builds a revision without a name; its hash label is from the first attempt.
fn new_revision(sync: &Sync, data: &str, number: i64, collision_count: i64) -> Value {
    let set = &sync.set;
    let mut labels = map(&set.value, "/spec/template/metadata/labels");
    labels.insert(
        String::from("controller.kubernetes.io/hash"),
        hash(data, collision_count).into(),
    );
    let mut revision = json!({
        "apiVersion": "apps/v1",
        "kind": "ControllerRevision",
        "metadata": {
            "namespace": set.namespace,
            "labels": labels,
            "ownerReferences": [set.reference()],
        },
        "data": data,
        "revision": number,
    });
    let annotations = map(&set.value, "/metadata/annotations");
    if !annotations.is_empty() {
        revision["metadata"]["annotations"] = annotations.into();
    }
    revision
}

/// Template of a revision, as used for pods.
pub(super) fn template_of(sync: &Sync, revision: &Value) -> Result<Value, Failure> {
    let recorded = recorded_template(sync, revision)?;
    normalize(TEMPLATE, &recorded, sync.unknown(), TEMPLATE_PLACE)
        .map_err(|error| Failure::new(error.to_string()))
}

/// Recorded template; the set's own if the data has none.
fn recorded_template(sync: &Sync, revision: &Value) -> Result<Value, Failure> {
    let own = || sync.set.value["spec"]["template"].clone();
    let invalid = || Failure::new(String::from("invalid JSON document"));
    let text = data(revision);
    let recorded = if text.is_empty() {
        Value::Null
    } else {
        serde_json::from_str(text).map_err(|_| invalid())?
    };
    let template = match &recorded {
        Value::Null => return Ok(own()),
        Value::Object(_) => recorded.pointer("/spec/template").cloned(),
        _ => return Err(invalid()),
    };
    let Some(mut template) = template else {
        return Ok(own());
    };
    match template
        .as_object_mut()
        .and_then(|members| members.remove("$patch"))
    {
        Some(directive) if directive == "replace" => Ok(template),
        _ => Ok(merged(own(), template)),
    }
}

/// Deletes the oldest unused revisions, down to the limit.
pub(super) fn truncate(
    sync: &mut Sync,
    pods: &[Value],
    revisions: &[Value],
    chosen: Option<&Chosen>,
) -> Result<(), Failure> {
    let limit = sync.set.value["spec"]["revisionHistoryLimit"]
        .as_i64()
        .unwrap_or(10);
    let Ok(limit) = usize::try_from(limit) else {
        return Ok(());
    };
    let mut live: BTreeSet<&str> = pods.iter().map(|pod| label(pod, REVISION)).collect();
    if let Some(chosen) = chosen {
        live.extend([name(&chosen.current), name(&chosen.update)]);
    }
    let idle: Vec<&Value> = revisions
        .iter()
        .filter(|revision| !live.contains(name(revision)))
        .collect();
    for revision in &idle[..idle.len().saturating_sub(limit)] {
        let preconditions = sync.deletion_preconditions(revision, &["uid", "resourceVersion"]);
        sync.api
            .delete(Kind::Revision, name(revision), preconditions)?;
    }
    Ok(())
}
