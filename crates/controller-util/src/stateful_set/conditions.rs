//! Conditions in a set's status.

use jiff::Timestamp;
use kube_apimachinery::json::to_raw;
use kube_apimachinery::time::format_seconds;
use serde::de::Error as _;
use serde::ser::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::decode::or_default;

/// The conditions of a set, as sent by the server.
#[derive(Clone, Debug, PartialEq)]
pub struct Conditions(Box<str>);

/// A condition, to the extent that decisions need it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Condition {
    /// Type.
    #[serde(rename = "type", deserialize_with = "or_default")]
    pub condition_type: Box<str>,
    /// `True`, `False` or `Unknown`.
    #[serde(deserialize_with = "or_default")]
    pub status: Box<str>,
    /// Time of the last change of the status, as sent by the server.
    #[serde(deserialize_with = "or_default")]
    pub last_transition_time: Box<str>,
    /// Machine-readable reason.
    #[serde(deserialize_with = "or_default")]
    pub reason: Box<str>,
    /// Message for people.
    #[serde(deserialize_with = "or_default")]
    pub message: Box<str>,
}

/// Progress of an update under the strategy `Recreate`: a state of the condition `Progressing`.
///
/// Upstream: `StatefulSetProgressing`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecreateProgress {
    /// Pods of earlier revisions exist.
    DeletingOldPods,
    /// No pod of an earlier revision is left, and the update isn't complete.
    WaitingForNewPods,
    /// All pods are at the update revision and ready.
    Completed,
}

/// Type of the controller's condition.
const PROGRESSING: &str = "Progressing";
const IN_PROGRESS: &str = "RecreateInProgress";
const COMPLETED: &str = "RecreateCompleted";

impl RecreateProgress {
    /// Returns the condition's status, reason and message.
    const fn parts(self) -> [&'static str; 3] {
        match self {
            Self::DeletingOldPods => ["True", IN_PROGRESS, "Deleting old revision pods"],
            Self::WaitingForNewPods => {
                let message = "Waiting for new-revision pods to be created";
                ["True", IN_PROGRESS, message]
            }
            // Unlike a Deployment's, the condition is false after success.
            Self::Completed => ["False", COMPLETED, "All pods recreated successfully"],
        }
    }
}

impl Condition {
    /// Decodes a condition.
    ///
    /// # Errors
    ///
    /// The value is not a condition.
    pub fn of(value: &Value) -> Result<Self, serde_json::Error> {
        Self::deserialize(value)
    }

    fn is_progressing(&self) -> bool {
        *self.condition_type == *PROGRESSING
    }

    /// Returns true if this controller wrote the condition for the strategy `Recreate`.
    fn is_recreate_progress(&self) -> bool {
        self.is_progressing() && matches!(&*self.reason, IN_PROGRESS | COMPLETED)
    }

    fn is_of_type_of(&self, other: &Self) -> bool {
        self.condition_type == other.condition_type
    }

    /// Returns the condition's JSON, with the fields in the order of Go's type.
    fn text(&self) -> String {
        let quoted = |text: &str| to_raw(&Value::from(text));
        format!(
            r#"{{"type":{},"status":{},"lastTransitionTime":{},"reason":{},"message":{}}}"#,
            quoted(&self.condition_type),
            quoted(&self.status),
            quoted(&self.last_transition_time),
            quoted(&self.reason),
            quoted(&self.message)
        )
    }

    /// Returns what decides whether two conditions are equal: everything except the time.
    fn meaning(&self) -> [&str; 4] {
        [
            &self.condition_type,
            &self.status,
            &self.reason,
            &self.message,
        ]
    }
}

impl Conditions {
    /// Returns the conditions; none if the server's value is not a list of objects.
    pub fn list(&self) -> Vec<Condition> {
        serde_json::from_str(&self.0).unwrap_or_default()
    }

    /// Returns true if the text mentions a type, as it does if there is a condition of this type. Cheaper
    /// than [`Conditions::get`].
    pub fn mentions(&self, condition_type: &str) -> bool {
        self.0.contains(condition_type)
    }

    /// Returns the condition of a type.
    pub fn get(&self, condition_type: &str) -> Option<Condition> {
        let mut conditions = self.list().into_iter();
        conditions.find(|it| *it.condition_type == *condition_type)
    }

    /// Returns the conditions with the controller's own one in a new state. It keeps its time
    /// unless its status changes. Other conditions keep their bytes and their places.
    #[must_use]
    pub fn with_progress(
        conditions: Option<&Self>,
        progress: RecreateProgress,
        now: Timestamp,
    ) -> Self {
        let [status, reason, message] = progress.parts();
        let earlier = conditions.and_then(|it| it.get(PROGRESSING));
        let since = match earlier.filter(|it| *it.status == *status) {
            Some(earlier) if !earlier.last_transition_time.is_empty() => {
                earlier.last_transition_time
            }
            _ => format_seconds(now).into(),
        };
        let progressing = Condition {
            condition_type: PROGRESSING.into(),
            status: status.into(),
            last_transition_time: since,
            reason: reason.into(),
            message: message.into(),
        };
        Self::with(conditions, &progressing)
    }

    /// Returns the conditions with one in a new state: in its place, or at the end if there is none
    /// of its type. Other conditions keep their bytes and their places.
    #[must_use]
    pub fn with(conditions: Option<&Self>, condition: &Condition) -> Self {
        let mut items = entries(conditions);
        set(&mut items, condition.text(), condition);
        Self::of(&items)
    }

    /// Returns the conditions without those that `is_left_out` selects; `None` if no other is left.
    /// Conditions without such a one are returned unchanged.
    #[must_use]
    pub fn without(
        conditions: Option<&Self>,
        is_left_out: impl Fn(&Condition) -> bool,
    ) -> Option<Self> {
        let mut items = entries(conditions);
        let count = items.len();
        items.retain(|(_, condition)| !is_left_out(condition));
        match items.len() {
            left if left == count => conditions.cloned(),
            0 => None,
            _ => Some(Self::of(&items)),
        }
    }

    /// Returns the conditions without the one that the strategy `Recreate` left; `None` if no other
    /// is left. Conditions without it are returned unchanged.
    #[must_use]
    pub fn without_progress(conditions: Option<&Self>) -> Option<Self> {
        if !conditions.is_some_and(|it| it.mentions(PROGRESSING)) {
            return conditions.cloned();
        }
        Self::without(conditions, Condition::is_recreate_progress)
    }

    /// Repeats on `fresh` what a sync changed between `before` and `after`. All other conditions are
    /// taken from `fresh`.
    #[must_use]
    pub fn carried_over(
        before: Option<&Self>,
        after: Option<&Self>,
        fresh: Option<&Self>,
    ) -> Option<Self> {
        if before == after {
            return fresh.cloned();
        }
        let (before, after) = (entries(before), entries(after));
        let mut items = entries(fresh);
        let is_kept = |(_, it): &(String, Condition)| {
            let is_same = |(_, other): &(String, Condition)| other.is_of_type_of(it);
            after.iter().any(is_same)
        };
        let removed: Vec<&(String, Condition)> =
            before.iter().filter(|entry| !is_kept(entry)).collect();
        let has_changed = |(text, condition): &(String, Condition)| {
            let mut found = items.iter().filter(|(_, it)| it.is_of_type_of(condition));
            found.any(|(other, _)| other != text)
        };
        // A condition that another writer changed since then may be theirs, and the next sync decides
        // again. It recognizes those that belong together by each other, so all stay.
        if !removed.iter().any(|entry| has_changed(entry)) {
            items.retain(|entry| !removed.contains(&entry));
        }
        for (text, condition) in &after {
            if !before.iter().any(|(earlier, _)| earlier == text) {
                set(&mut items, text.clone(), condition);
            }
        }
        let is_recreate_progress = |(_, it): &(String, Condition)| it.is_recreate_progress();
        if !after.iter().any(is_recreate_progress) {
            items.retain(|entry| !is_recreate_progress(entry));
        }
        (!items.is_empty()).then(|| Self::of(&items))
    }

    /// Returns true if the conditions differ in more than their times.
    pub fn differ(one: Option<&Self>, other: Option<&Self>) -> bool {
        if one == other {
            return false;
        }
        let (one, other) = (entries(one), entries(other));
        let meanings = |items: &[(String, Condition)]| -> Vec<[String; 4]> {
            let meaning = |(_, it): &(String, Condition)| it.meaning().map(str::to_owned);
            items.iter().map(meaning).collect()
        };
        meanings(&one) != meanings(&other)
    }

    fn of(items: &[(String, Condition)]) -> Self {
        let texts: Vec<&str> = items.iter().map(|(text, _)| text.as_str()).collect();
        Self(format!("[{}]", texts.join(",")).into())
    }
}

/// Puts a condition in the place of the one of its type, or at the end.
fn set(items: &mut Vec<(String, Condition)>, text: String, condition: &Condition) {
    let place = items.iter().position(|(_, it)| it.is_of_type_of(condition));
    let entry = (text, condition.clone());
    match place.and_then(|place| items.get_mut(place)) {
        Some(old) => *old = entry,
        None => items.push(entry),
    }
}

/// Returns each condition with its text; none if the server's value is not a list of objects.
fn entries(conditions: Option<&Conditions>) -> Vec<(String, Condition)> {
    let text = conditions.map_or("[]", |conditions| &conditions.0);
    let texts: Vec<&RawValue> = serde_json::from_str(text).unwrap_or_default();
    let entry = |raw: &RawValue| {
        let condition = serde_json::from_str(raw.get()).unwrap_or_default();
        (raw.get().to_owned(), condition)
    };
    texts.into_iter().map(entry).collect()
}

impl<'de> Deserialize<'de> for Conditions {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw = Box::<RawValue>::deserialize(deserializer).map_err(D::Error::custom)?;
        Ok(Self(raw.get().into()))
    }
}

impl Serialize for Conditions {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let raw: &RawValue = serde_json::from_str(&self.0).map_err(S::Error::custom)?;
        raw.serialize(serializer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const THEIRS: &str = r#"{"status":"True","type":"Theirs","x":1}"#;

    fn conditions(items: &[&str]) -> Conditions {
        Conditions(format!("[{}]", items.join(",")).into())
    }

    fn at(minute: &str) -> Timestamp {
        format!("2026-03-01T12:{minute}:00.9Z").parse().unwrap()
    }

    fn own(status: &str, minute: &str, reason: &str, message: &str) -> String {
        format!(
            "{{\"type\":\"Progressing\",\"status\":\"{status}\",\
             \"lastTransitionTime\":\"2026-03-01T12:{minute}:00Z\",\
             \"reason\":\"{reason}\",\"message\":\"{message}\"}}"
        )
    }

    #[test]
    fn progress_keeps_its_time_while_its_status_stays() {
        let theirs = conditions(&[THEIRS]);
        let deleting = RecreateProgress::DeletingOldPods;
        let first = Conditions::with_progress(Some(&theirs), deleting, at("01"));
        let expected = own("True", "01", IN_PROGRESS, "Deleting old revision pods");
        assert_eq!(first, conditions(&[THEIRS, &expected]));

        let waiting = RecreateProgress::WaitingForNewPods;
        let second = Conditions::with_progress(Some(&first), waiting, at("02"));
        let message = "Waiting for new-revision pods to be created";
        let expected = own("True", "01", IN_PROGRESS, message);
        assert_eq!(second, conditions(&[THEIRS, &expected]));

        let third = Conditions::with_progress(Some(&second), RecreateProgress::Completed, at("03"));
        let expected = own("False", "03", COMPLETED, "All pods recreated successfully");
        assert_eq!(third, conditions(&[THEIRS, &expected]));
        let alone = Conditions::with_progress(None, RecreateProgress::Completed, at("03"));
        assert_eq!(alone, conditions(&[&expected]));
    }

    #[test]
    fn only_recreate_progress_is_removed() {
        let recreate = own("False", "03", COMPLETED, "x");
        let foreign = own("True", "03", "TheirReason", "x");
        for (items, left) in [
            (vec![THEIRS, &*recreate], Some(vec![THEIRS])),
            (vec![&*recreate], None),
            (vec![&*foreign, THEIRS], Some(vec![&*foreign, THEIRS])),
            (vec![], Some(vec![])),
        ] {
            let given = conditions(&items);
            let left = left.map(|left| conditions(&left));
            assert_eq!(
                Conditions::without_progress(Some(&given)),
                left,
                "{items:?}"
            );
        }
        assert_eq!(Conditions::without_progress(None), None);
        let odd = Conditions(r#"{"not":"a list"}"#.into());
        assert_eq!(Conditions::without_progress(Some(&odd)), Some(odd));
    }

    #[test]
    fn retry_keeps_fresh_conditions_of_others() {
        let fresh = conditions(&[r#"{"type":"New"}"#]);
        let before = conditions(&[THEIRS]);
        let after = Conditions::with_progress(Some(&before), RecreateProgress::Completed, at("03"));
        let expected = own("False", "03", COMPLETED, "All pods recreated successfully");
        let carry = |after, fresh| Conditions::carried_over(Some(&before), after, fresh);
        let with_own = conditions(&[r#"{"type":"New"}"#, &expected]);
        assert_eq!(carry(Some(&after), Some(&fresh)), Some(with_own.clone()));
        assert_eq!(carry(Some(&before), Some(&fresh)), Some(fresh.clone()));
        assert_eq!(carry(None, Some(&with_own)), Some(fresh.clone()));
        // The retry repeats the removal, too, except of a condition that others changed since.
        let remove = |fresh| Conditions::carried_over(Some(&after), Some(&before), Some(fresh));
        assert_eq!(remove(&with_own), Some(fresh.clone()));
        let alone = conditions(&[&expected]);
        assert_eq!(remove(&alone), None);
        let changed = conditions(&[&own("True", "04", "TheirReason", "x")]);
        assert_eq!(remove(&changed), Some(changed.clone()));
        assert_eq!(carry(Some(&before), None), None);
    }

    #[test]
    fn retry_removes_conditions_together_or_not_at_all() {
        let one = own("True", "03", "R", "m");
        let other = r#"{"type":"Other","status":"True","reason":"R"}"#;
        let before = conditions(&[THEIRS, &one, other]);
        let after = conditions(&[THEIRS]);
        let remove = |fresh: &[&str]| {
            let fresh = conditions(fresh);
            Conditions::carried_over(Some(&before), Some(&after), Some(&fresh))
        };
        assert_eq!(remove(&[THEIRS, &one, other]), Some(after.clone()));
        assert_eq!(remove(&[THEIRS, other]), Some(after.clone()));
        let changed = r#"{"type":"Other","status":"False","reason":"S"}"#;
        let fresh = [THEIRS, &*one, changed];
        assert_eq!(remove(&fresh), Some(conditions(&fresh)));
    }

    #[test]
    fn times_alone_make_no_difference() {
        let older = conditions(&[THEIRS, &own("True", "01", "R", "m")]);
        let newer = conditions(&[THEIRS, &own("True", "02", "R", "m")]);
        assert!(!Conditions::differ(Some(&older), Some(&newer)));
        for other in [
            own("False", "01", "R", "m"),
            own("True", "01", "S", "m"),
            own("True", "01", "R", "n"),
        ] {
            let other = conditions(&[THEIRS, &other]);
            assert!(Conditions::differ(Some(&older), Some(&other)));
        }
        assert!(Conditions::differ(Some(&older), None));
        assert!(!Conditions::differ(None, Some(&conditions(&[]))));
    }

    #[test]
    fn list_tolerates_null_members() {
        let given = conditions(&[r#"{"type":"A","status":null,"lastTransitionTime":null}"#]);
        let expected = Condition {
            condition_type: "A".into(),
            ..Condition::default()
        };
        assert_eq!(given.list(), [expected]);
    }
}
