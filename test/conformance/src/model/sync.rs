//! The state of one sync of the model, and its walks over pods.

use std::collections::BTreeMap;
use std::rc::Rc;

use jiff::Timestamp;
use kube_apimachinery::schema::UnknownMembers;
use serde_json::Value;

use super::cluster::Tracker;
use super::failure::Failure;
use super::rules::Rules;
use super::set::Set;

/// State of one sync: caches, API and events so far.
#[expect(
    clippy::struct_excessive_bools,
    reason = "each gate is independent of the others"
)]
pub(super) struct Sync {
    pub(super) rules: Rules,
    pub(super) now: Timestamp,
    /// Minor version of the emulated Kubernetes.
    pub(super) minor: u32,
    pub(super) max_unavailable_gate: bool,
    pub(super) recreate_gate: bool,
    pub(super) scale_down_first: bool,
    pub(super) semantic_gate: bool,
    /// Cached set.
    pub(super) set: Rc<Set>,
    /// Cached pods of the set's namespace, in the order of the case.
    pub(super) pods: Vec<Value>,
    /// Cached claims of the set's namespace, by name.
    pub(super) claims: BTreeMap<String, Value>,
    /// Cached revisions of the set's namespace, with their data as text.
    pub(super) revisions: Vec<Value>,
    pub(super) api: Tracker,
    pub(super) events: Vec<String>,
}

/// Decision to continue or to end a walk over pods.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    Continue,
    Exit,
}

impl Sync {
    pub(super) fn event(&mut self, result: Result<(), String>, reason: &str, message: &str) {
        let mut message = message.to_owned();
        if self.minor < 35 {
            // The message begins with an ASCII letter.
            message[..1].make_ascii_lowercase();
        }
        self.events.push(match result {
            Ok(()) => format!("Normal Successful{reason} {message}"),
            Err(error) => format!("Warning Failed{reason} {message} error: {error}"),
        });
    }

    /// Preconditions of a deletion.
    pub(super) fn deletion_preconditions(&self, object: &Value, members: &[&str]) -> Value {
        if !self.rules.deletions_name_objects {
            return Value::Null;
        }
        let text = |name: &str| object["metadata"][name].as_str().unwrap_or("");
        let member = |name: &&str| ((*name).to_owned(), Value::from(text(name)));
        Value::Object(members.iter().map(member).collect())
    }

    /// Returns true if pods are processed in batches.
    pub(super) fn is_burst(&self) -> bool {
        self.set.is_burst
    }

    /// Calls a function for `count` pods: in sequence until one requests a stop, or in batches of
    /// 1, 2, 4… that stop after the first batch with a failure.
    pub(super) fn for_all(
        &mut self,
        count: usize,
        mut work: impl FnMut(&mut Self, usize) -> Result<Step, Failure>,
    ) -> Result<Step, Failure> {
        if !self.is_burst() {
            for index in 0..count {
                if work(self, index)? == Step::Exit {
                    return Ok(Step::Exit);
                }
            }
            return Ok(Step::Continue);
        }
        let (mut done, mut size) = (0, count.min(1));
        while size > 0 {
            let batch: Vec<usize> = (done..done + size).collect();
            self.in_parallel(&batch, &mut work)?;
            done += size;
            size = (2 * size).min(count - done).min(500);
        }
        Ok(Step::Continue)
    }

    /// Calls a function for each index of a batch. Of the parallel calls, upstream makes the
    /// last one first.
    pub(super) fn in_parallel<T>(
        &mut self,
        batch: &[usize],
        mut work: impl FnMut(&mut Self, usize) -> Result<T, Failure>,
    ) -> Result<(), Failure> {
        let Some((last, before)) = batch.split_last() else {
            return Ok(());
        };
        let order = std::iter::once(last).chain(before);
        let failures = order.filter_map(|index| work(self, *index).err()).collect();
        Failure::join(failures)
    }

    pub(super) fn pod_event(&mut self, verb: &str, pod: &str, result: Result<(), &Failure>) {
        let set = &self.set.name;
        let outcome = if result.is_ok() {
            "successful"
        } else {
            "failed"
        };
        let text = format!("{verb} Pod {pod} in StatefulSet {set} {outcome}");
        self.event(result.map_err(Failure::text), verb, &text);
    }

    /// Treatment of fields unknown to the schema.
    pub(super) fn unknown(&self) -> UnknownMembers {
        if self.rules.unknown_members {
            UnknownMembers::Keep
        } else {
            UnknownMembers::Drop
        }
    }

    /// Returns true if the set has the strategy, and its gate is on.
    pub(super) fn recreates(&self) -> bool {
        self.recreate_gate && self.set.strategy() == "Recreate"
    }
}
