//! The pieces of work whose instructions are counted.

use std::fmt;
use std::hint::black_box;
use std::str::FromStr;
use std::sync::Arc;

use anyhow::{Context as _, bail};
use kube_apimachinery::object_key::ObjectKey;
use serde_json::{Value, json};
use statefulset_client::cache::indexer::CachedObject as _;
use statefulset_client::workqueue::{NoopQueueMetrics, RateLimiter, WorkQueue};
use statefulset_controller_util::pod::Pod;
use statefulset_controller_util::stateful_set::PodTemplate;
use statefulset_history::{RevisionData, hash_controller_revision};

use super::message::PodMessage;
use super::settings::{OTHERS, runtime};
use super::{event, writing};
use crate::cluster::{Recorded, SyncedSet};
use crate::large_set;

/// Environment variables of a large template.
const LARGE: usize = 5_000;

/// A piece of work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Work {
    /// One sync with nothing to do.
    Settled {
        /// Pods of the set.
        own: usize,
        /// Pods of other sets in its namespace.
        others: usize,
    },
    /// The same, of 5 pods with a large template.
    SettledLarge,
    /// The same, of one pod with this many claim templates and ten times as many volumes.
    ManyClaims {
        /// Number of claim templates.
        templates: usize,
    },
    /// The data of a new revision and its hash.
    Revision {
        /// Additional environment variables of the template.
        variables: usize,
    },
    /// A pod's creation: the sync with its requests and responses, and the event.
    Created,
    /// A pod's replacement: both syncs with their requests and responses, and the events.
    Rolled,
    /// A pod's event, from JSON to the cached object.
    Decode,
    /// The same from protobuf.
    DecodeProtobuf,
    /// The event of a pod without controller, from the decoded pod to the queue.
    Orphan {
        /// Pods of sets in other namespaces.
        others: usize,
    },
    /// A key through the work queue.
    Queue,
}

impl Work {
    /// Everything that has a recorded count.
    pub(crate) const ALL: [Self; 17] = [
        settled(1, OTHERS),
        settled(5, OTHERS),
        settled(10, OTHERS),
        settled(100, OTHERS),
        settled(1_000, OTHERS),
        settled(10_000, OTHERS),
        settled(5, 50_000),
        Self::SettledLarge,
        Self::ManyClaims { templates: 1_000 },
        Self::Revision { variables: 0 },
        Self::Revision { variables: LARGE },
        Self::Created,
        Self::Rolled,
        Self::Decode,
        Self::DecodeProtobuf,
        Self::Orphan { others: 50_000 },
        Self::Queue,
    ];

    /// Returns the work, ready to be repeated; it returns false if it fails.
    pub(crate) fn prepare(self) -> anyhow::Result<Box<dyn FnMut() -> bool>> {
        Ok(match self {
            Self::Settled { own, others } => {
                let recorded = Recorded::read()?;
                sync(|| SyncedSet::of(&recorded, own, others))?
            }
            Self::SettledLarge => {
                let recorded = Recorded::read()?.with_template(with_variables(LARGE))?;
                sync(|| SyncedSet::of(&recorded, 5, OTHERS))?
            }
            Self::ManyClaims { templates } => large_set::settled(runtime()?, templates)?,
            Self::Revision { variables } => {
                let set = Recorded::read()?.set_of(1)?;
                let mut template = set.spec.template.to_value()?;
                with_variables(variables)(&mut template);
                let template = PodTemplate::from_value(&template);
                Box::new(move || {
                    let data = RevisionData::new(&template);
                    let hash =
                        |data: &RevisionData| hash_controller_revision(data.recorded(), None);
                    data.is_ok_and(|data| !black_box(hash(&data)).is_empty())
                })
            }
            Self::Created => writing::created()?,
            Self::Rolled => writing::rolled()?,
            Self::Decode => {
                let text = Recorded::read()?.numbered_pod_json(0);
                Box::new(move || black_box(Pod::decode(&text)).is_ok())
            }
            Self::DecodeProtobuf => {
                let message = PodMessage::new(&Recorded::read()?.numbered_pod_json(0))?;
                Box::new(move || black_box(message.decode()).is_ok())
            }
            Self::Orphan { others } => event::orphan(others)?,
            Self::Queue => {
                let runtime = runtime()?;
                let queue = WorkQueue::new(RateLimiter::default(), Arc::new(NoopQueueMetrics));
                let key = ObjectKey::new("ns", "web");
                Box::new(move || {
                    queue.add(key.clone());
                    let got = runtime.block_on(queue.get());
                    got.is_some_and(|key| {
                        queue.done(&key);
                        true
                    })
                })
            }
        })
    }
}

const fn settled(own: usize, others: usize) -> Work {
    Work::Settled { own, others }
}

/// Returns the sync of a settled set.
fn sync(
    world: impl FnOnce() -> anyhow::Result<SyncedSet>,
) -> anyhow::Result<Box<dyn FnMut() -> bool>> {
    let runtime = runtime()?;
    let world = {
        let _guard = runtime.enter();
        world()?
    };
    runtime.block_on(world.check())?;
    Ok(Box::new(move || {
        runtime.block_on(world.syncer.sync(&world.key)).is_ok()
    }))
}

/// Adds environment variables to the first container of a template.
fn with_variables(count: usize) -> impl Fn(&mut Value) {
    move |template| {
        let variables = &mut template["spec"]["containers"][0]["env"];
        if !variables.is_array() {
            *variables = json!([]);
        }
        let added = (0..count).map(|number| {
            json!({"name": format!("VARIABLE_{number}"), "value": format!("value {number}")})
        });
        if let Value::Array(variables) = variables {
            variables.extend(added);
        }
    }
}

impl fmt::Display for Work {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Settled { own, others } => {
                write!(f, "settled sync of {own} pods among {others} others")
            }
            Self::SettledLarge => f.write_str("settled sync of 5 pods with a large template"),
            Self::ManyClaims { templates } => {
                write!(
                    f,
                    "settled sync of one pod with {templates} claim templates"
                )
            }
            Self::Revision { variables: 0 } => f.write_str("revision of a template"),
            Self::Revision { .. } => f.write_str("revision of a large template"),
            Self::Created => f.write_str("create a pod"),
            Self::Rolled => f.write_str("replace a pod"),
            Self::Decode => f.write_str("decode a pod"),
            Self::DecodeProtobuf => f.write_str("decode a pod from protobuf"),
            Self::Orphan { others } => write!(f, "an orphan's event among {others} other pods"),
            Self::Queue => f.write_str("work queue: add, get and done of a key"),
        }
    }
}

impl FromStr for Work {
    type Err = anyhow::Error;

    fn from_str(name: &str) -> anyhow::Result<Self> {
        if let Some(known) = Self::ALL.into_iter().find(|work| work.to_string() == name) {
            return Ok(known);
        }
        let numbers: Vec<usize> = name
            .split(' ')
            .filter_map(|word| word.parse().ok())
            .collect();
        let [own, others] = numbers[..] else {
            bail!("no such work: {name}");
        };
        Some(settled(own, others))
            .filter(|work| work.to_string() == name)
            .with_context(|| format!("no such work: {name}"))
    }
}
