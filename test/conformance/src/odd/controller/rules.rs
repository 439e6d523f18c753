//! Expectations of the controller, and named rules for permitted differences.
//!
//! If upstream fails permanently, the product may do better, never worse. Otherwise the
//! outcome must be the recorded one.

use std::collections::BTreeSet;

use kube_apimachinery::json::{Document, RawObject};
use serde_json::value::RawValue;

use super::left::EndState;
use crate::odd::case::{Case, ControllerRecord, Step};

/// A rule that permits a difference from the record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rule {
    /// Upstream was still building pods in memory when its recording ended.
    RecordCut,
    /// Upstream can't parse, or write, a time that its server printed.
    YearsOutOfRange,
    /// Upstream can't apply revision data without the structure of a set.
    RevisionDataShape,
    /// Upstream takes a set's name and labels from revision data.
    RevisionDataBeyondTemplate,
    /// Upstream's revision numbers overflow.
    RevisionNumberEnd,
    /// Upstream rounds an integer to one out of range.
    RoundedByDouble,
    /// Upstream treats a pod without a phase as missing.
    EmptyPodPhase,
    /// Upstream renames pods with ordinals beyond 32 bits.
    OrdinalPastInt32,
    /// Upstream counts pods with leading zeros in their ordinals.
    NonCanonicalName,
    /// Upstream sees whitespace in revision data, which no JSON response shows.
    SpacingInRevisionData,
}

impl Rule {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::RecordCut => "record-cut-at-work",
            Self::YearsOutOfRange => "years-out-of-range",
            Self::RevisionDataShape => "revision-data-shape",
            Self::RevisionDataBeyondTemplate => "revision-data-beyond-template",
            Self::RevisionNumberEnd => "revision-number-end",
            Self::RoundedByDouble => "rounded-by-double",
            Self::EmptyPodPhase => "empty-pod-phase",
            Self::OrdinalPastInt32 => "ordinal-past-int32",
            Self::NonCanonicalName => "non-canonical-names",
            Self::SpacingInRevisionData => "spacing-in-revision-data",
        }
    }

    /// Rule for a case, if any.
    fn of(case: &Case, record: &ControllerRecord) -> Option<Self> {
        let error = record.log_error.as_deref().unwrap_or("");
        let by_error = [
            ("parsing time ", Self::YearsOutOfRange),
            ("json: cannot unmarshal number", Self::RoundedByDouble),
            ("json: cannot unmarshal", Self::RevisionDataShape),
            ("unknown patch type: ", Self::RevisionDataShape),
            ("revision: Invalid value: -", Self::RevisionNumberEnd),
            (
                "resourceVersion should not be set on objects to be created",
                Self::EmptyPodPhase,
            ),
            ("Pod \\\"web--1\\\" is invalid", Self::OrdinalPastInt32),
        ];
        if let Some((_, rule)) = by_error.iter().find(|(text, _)| error.contains(text)) {
            return Some(*rule);
        }
        if record.observed == Some(false) && sets(case).any(|set| replicas(&set) >= REPLICAS_MANY) {
            return Some(Self::RecordCut);
        }
        if error.contains("already exists")
            && revision_data(case).any(|data| has_beyond_template(&data))
        {
            return Some(Self::RevisionDataBeyondTemplate);
        }
        if record.pods.iter().any(|pod| has_leading_zero(pod)) {
            return Some(Self::NonCanonicalName);
        }
        sent_revision_data(case)
            .any(|data| has_spacing(&data))
            .then_some(Self::SpacingInRevisionData)
    }
}

/// Number of replicas from which upstream takes longer than its recording lasts.
const REPLICAS_MANY: i64 = 100_000;

/// Adds differences from the record that are not improvements; names the rule if one was needed.
pub(super) fn judge(
    case: &Case,
    record: &ControllerRecord,
    left: &EndState,
    is_endless: bool,
    differences: &mut Vec<String>,
) -> Option<Rule> {
    let recorded = EndState::recorded(record);
    let found = left.differences(&recorded);
    if found.is_empty() {
        return None;
    }
    let rule = Rule::of(case, record);
    match rule {
        Some(Rule::RecordCut) if is_endless => rule,
        Some(by) if !is_endless && is_better(case, by, left, &recorded) => rule,
        _ => {
            differences.extend(found);
            None
        }
    }
}

/// Returns true if an outcome is at least as good as a permanent failure: nothing is lost or
/// terminating that wasn't, no less is done, and no new failures are reported. Two rules permit
/// useless work: a revision without new content, and claims of an impossible pod.
fn is_better(case: &Case, rule: Rule, left: &EndState, recorded: &EndState) -> bool {
    let stored: BTreeSet<&str> = case
        .recorded()
        .filter_map(|object| object.path.rsplit('/').next())
        .collect();
    let keeps = |recorded: &BTreeSet<String>, found: &BTreeSet<String>| {
        let mut there = recorded
            .iter()
            .filter(|name| stored.contains(name.as_str()));
        there.all(|name| found.contains(name))
    };
    let is_failure = |reason: &&String| reason.starts_with("Failed");
    left.observed >= recorded.observed
        && left.pods.len() >= recorded.pods.len()
        && (left.claims.len() >= recorded.claims.len() || rule == Rule::OrdinalPastInt32)
        && (left.revisions.len() >= recorded.revisions.len() || rule == Rule::SpacingInRevisionData)
        && keeps(&recorded.pods, &left.pods)
        && keeps(&recorded.claims, &left.claims)
        && keeps(&recorded.revisions, &left.revisions)
        && left.terminating.is_subset(&recorded.terminating)
        && left
            .event_reasons
            .iter()
            .filter(is_failure)
            .all(|reason| recorded.event_reasons.contains(reason))
}

/// Stored objects of a resource.
fn stored(case: &Case, resource: &str) -> impl Iterator<Item = RawObject<'static>> {
    let resource = format!("/{resource}/");
    let bodies = case
        .recorded()
        .filter(move |object| object.path.contains(&resource));
    bodies.filter_map(|object| parse(object.body.as_deref()?))
}

fn sets(case: &Case) -> impl Iterator<Item = RawObject<'static>> {
    stored(case, "statefulsets")
}

/// Stored data of the case's revisions.
fn revision_data(case: &Case) -> impl Iterator<Item = RawObject<'static>> {
    stored(case, "controllerrevisions").filter_map(|revision| member(&revision, "data"))
}

/// Data of the revisions in requests, as text.
fn sent_revision_data(case: &Case) -> impl Iterator<Item = String> {
    let requests = case.steps.iter().filter_map(|step| match step {
        Step::Request(request) => Some(request),
        Step::ControllerRuns(_) => None,
    });
    requests
        .filter(|request| request.path.contains("/controllerrevisions"))
        .filter_map(|request| Some(parse(&request.body)?.get("data")?.get().to_owned()))
}

fn parse(body: &[u8]) -> Option<RawObject<'static>> {
    let document = Document::new(body.to_vec());
    let object = RawObject::parse(document.text()).ok()?;
    Some(object.into_owned())
}

fn member(object: &RawObject<'_>, name: &str) -> Option<RawObject<'static>> {
    let member = RawObject::parse(object.get(name)?.get()).ok()?;
    Some(member.into_owned())
}

fn replicas(set: &RawObject<'_>) -> i64 {
    let spec = member(set, "spec");
    let replicas = spec.as_ref().and_then(|spec| spec.get("replicas"));
    let number = |replicas: &RawValue| replicas.get().parse().ok();
    replicas.and_then(number).unwrap_or(0)
}

/// Returns true if revision data contains more than a pod template.
fn has_beyond_template(data: &RawObject<'_>) -> bool {
    let beyond = |object: &RawObject<'_>, name: &str| object.iter().any(|(other, _)| other != name);
    beyond(data, "spec") || member(data, "spec").is_some_and(|spec| beyond(&spec, "template"))
}

fn has_leading_zero(pod: &str) -> bool {
    let ordinal = pod.rsplit_once('-').map_or("", |(_, ordinal)| ordinal);
    ordinal.len() > 1 && ordinal.starts_with('0')
}

/// Returns true if JSON contains whitespace outside of strings.
fn has_spacing(json: &str) -> bool {
    let (mut in_string, mut escaped) = (false, false);
    json.bytes().any(|byte| {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = in_string,
            b'"' => in_string = !in_string,
            _ => return !in_string && byte.is_ascii_whitespace(),
        }
        false
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spacing_inside_strings_is_ignored() {
        assert!(has_spacing(r#"{"a": 1}"#));
        assert!(!has_spacing(r#"{"a b":"c \" d"}"#));
    }

    #[test]
    fn data_beyond_the_template_is_detected() {
        for (data, beyond) in [
            (r#"{"spec":{"template":{}}}"#, false),
            (r#"{"spec":{"template":{},"replicas":3}}"#, true),
            (r#"{"metadata":{"name":"other"}}"#, true),
        ] {
            assert_eq!(
                has_beyond_template(&RawObject::parse(data).unwrap()),
                beyond,
                "{data}"
            );
        }
    }

    #[test]
    fn worse_outcomes_are_not_accepted() {
        let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        let case = Case::parse(
            r#"{"id": "001", "about": "", "steps": [], "stored": {"path": "/p/web-0", "status": 200}}"#,
        );
        let case = case.unwrap();
        let recorded = EndState {
            observed: Some(false),
            pods: names(&["web-0"]),
            claims: names(&["data-web-0"]),
            revisions: names(&["web-1", "web-2"]),
            event_reasons: names(&["FailedCreate"]),
            ..EndState::default()
        };
        let better = EndState {
            observed: Some(true),
            pods: names(&["web-0", "web-1"]),
            claims: names(&["data-web-0", "data-web-1"]),
            event_reasons: BTreeSet::new(),
            ..recorded.clone()
        };
        let is_better = |rule, left: &EndState| is_better(&case, rule, left, &recorded);
        let rule = Rule::EmptyPodPhase;
        assert!(is_better(rule, &better));
        let lost_pod = EndState {
            pods: names(&["web-1"]),
            ..better.clone()
        };
        let fewer_claims = EndState {
            claims: BTreeSet::new(),
            ..better.clone()
        };
        let dooms_pod = EndState {
            terminating: names(&["pods/web-0"]),
            ..better.clone()
        };
        let fails = EndState {
            event_reasons: names(&["FailedDelete"]),
            ..better.clone()
        };
        let unobserved = EndState {
            observed: None,
            ..better.clone()
        };
        let fewer_revisions = EndState {
            revisions: names(&["web-1"]),
            ..better
        };
        assert!(is_better(Rule::SpacingInRevisionData, &fewer_revisions));
        assert!(!is_better(Rule::SpacingInRevisionData, &fewer_claims));
        assert!(is_better(Rule::OrdinalPastInt32, &fewer_claims));
        assert!(!is_better(Rule::OrdinalPastInt32, &fewer_revisions));
        for worse in [
            lost_pod,
            fewer_claims,
            dooms_pod,
            fails,
            unobserved,
            fewer_revisions,
        ] {
            assert!(!is_better(rule, &worse), "{worse:?}");
        }
    }
}
