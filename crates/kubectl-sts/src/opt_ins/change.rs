//! A change of a set's rollout.

use std::collections::BTreeMap;

use anyhow::{bail, ensure};
use serde::Serialize;
use serde_json::Value;
use statefulset_controller::opt_ins::Carrier;

use super::carried;
use super::progress::Progress;
use crate::output::{Style, Tone};
use crate::plan::{self, Plan};

/// The change of a rollout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rollout {
    /// No further pod is replaced.
    Pause,
    /// All pods are replaced.
    Resume,
    /// This number of further pods is replaced.
    Step(i32),
}

/// Annotations by key; `None` removes one.
type Annotations = BTreeMap<&'static str, Option<String>>;

impl Rollout {
    /// Returns the annotations to change.
    ///
    /// # Errors
    ///
    /// The set has no rollout that the change could concern.
    pub(super) fn annotations(
        self,
        set: &Value,
        progress: &Progress,
    ) -> anyhow::Result<Annotations> {
        let name = crate::cluster::name(set);
        ensure!(
            progress.is_rolling,
            "StatefulSet {name} has no rollout to control: its update strategy isn't RollingUpdate"
        );
        ensure!(
            !progress.is_built_in,
            "the built-in controller serves StatefulSet {name} and ignores the annotations; run \
             this project's controller with the feature gate {}",
            Carrier::Paused.gate()
        );
        let is_done = progress.reached == progress.start;
        let (paused, rollout_to) = match self {
            // The limit keeps a lost pod just below the updated ones from being updated.
            Self::Pause if is_done => (Some("true".to_owned()), limit_of(set)),
            Self::Pause => (Some("true".to_owned()), Some(ordinal(progress.reached))),
            Self::Resume if is_limited(set) => (None, None),
            Self::Resume => {
                bail!("the rollout of StatefulSet {name} is neither paused nor limited")
            }
            Self::Step(_) if is_done => {
                bail!("no pod of StatefulSet {name} is left to update")
            }
            Self::Step(pods) => {
                let next = (progress.reached - i64::from(pods)).max(progress.start);
                let is_last = next == progress.start;
                (None, (!is_last).then(|| ordinal(next)))
            }
        };
        Ok(BTreeMap::from([
            (Carrier::Paused.annotation(), paused),
            (Carrier::RolloutTo.annotation(), rollout_to),
        ]))
    }
}

fn ordinal(ordinal: i64) -> String {
    format!("ordinal={ordinal}")
}

fn limit_of(set: &Value) -> Option<String> {
    carried(set, Carrier::RolloutTo).map(str::to_owned)
}

fn is_limited(set: &Value) -> bool {
    let carriers = [Carrier::Paused, Carrier::RolloutTo];
    carriers.iter().any(|it| carried(set, *it).is_some())
}

/// A change with its effects.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Change {
    pub(super) annotations: Annotations,
    pub(super) plan: Plan,
    pub(super) is_written: bool,
}

impl Change {
    /// True if data would be lost, or every pod be down at once.
    pub(crate) fn is_dangerous(&self) -> bool {
        self.plan.is_dangerous()
    }

    /// The change for people.
    pub(crate) fn text(&self, style: Style) -> String {
        let mut text = plan::text(&self.plan, style);
        let verb = if self.is_written {
            "wrote"
        } else {
            "would write"
        };
        let changes = self.annotations.iter().map(|(key, value)| match value {
            Some(value) => format!("{key}={value}"),
            None => format!("{key}-"),
        });
        let changes: Vec<String> = changes.collect();
        let line = format!("{verb} {}", changes.join(" "));
        text.push_str(&style.paint(Tone::Bold, &line));
        text.push('\n');
        text
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn progress(reached: i64) -> Progress {
        Progress {
            start: 2,
            reached,
            is_rolling: true,
            is_built_in: false,
        }
    }

    fn set(annotations: &[(Carrier, &str)]) -> Value {
        let annotations = annotations.iter();
        let annotations: BTreeMap<_, _> = annotations
            .map(|(carrier, value)| (carrier.annotation(), *value))
            .collect();
        json!({"metadata": {"name": "web", "annotations": annotations}})
    }

    /// Returns the values of `paused` and `rollout-to`.
    fn changed(rollout: Rollout, set: &Value, reached: i64) -> Result<[Option<String>; 2], String> {
        let annotations = rollout.annotations(set, &progress(reached));
        let annotations = annotations.map_err(|error| error.to_string())?;
        let carriers = [Carrier::Paused, Carrier::RolloutTo];
        Ok(carriers.map(|carrier| annotations[carrier.annotation()].clone()))
    }

    #[test]
    fn pause_holds_the_pods_that_are_not_updated() {
        let text = |text: &str| Some(text.to_owned());
        let plain = set(&[]);
        let held = [text("true"), text("ordinal=5")];
        assert_eq!(changed(Rollout::Pause, &plain, 5), Ok(held));
        let done = [text("true"), None];
        assert_eq!(changed(Rollout::Pause, &plain, 2), Ok(done));
        let limited = set(&[(Carrier::RolloutTo, "1")]);
        let done = [text("true"), text("1")];
        assert_eq!(changed(Rollout::Pause, &limited, 2), Ok(done));
    }

    #[test]
    fn steps_end_at_the_first_pod() {
        let paused = set(&[(Carrier::Paused, "true")]);
        let next = [None, Some("ordinal=4".to_owned())];
        assert_eq!(changed(Rollout::Step(1), &paused, 5), Ok(next));
        assert_eq!(changed(Rollout::Step(3), &paused, 5), Ok([None, None]));
        assert_eq!(changed(Rollout::Step(9), &paused, 5), Ok([None, None]));
        let error = changed(Rollout::Step(1), &paused, 2).unwrap_err();
        assert_eq!(error, "no pod of StatefulSet web is left to update");
    }

    #[test]
    fn resume_needs_a_limit() {
        let limited = set(&[(Carrier::RolloutTo, "1")]);
        assert_eq!(changed(Rollout::Resume, &limited, 5), Ok([None, None]));
        let error = changed(Rollout::Resume, &set(&[]), 5).unwrap_err();
        assert_eq!(
            error,
            "the rollout of StatefulSet web is neither paused nor limited"
        );
    }

    #[test]
    fn set_that_ignores_the_annotations_is_refused() {
        let built_in = Progress {
            is_built_in: true,
            ..progress(5)
        };
        let on_delete = Progress {
            is_rolling: false,
            ..progress(5)
        };
        for (progress, expected) in [
            (built_in, "the built-in controller serves StatefulSet web"),
            (on_delete, "StatefulSet web has no rollout to control"),
        ] {
            let error = Rollout::Pause
                .annotations(&set(&[]), &progress)
                .unwrap_err();
            assert!(error.to_string().starts_with(expected), "{error}");
        }
    }
}
