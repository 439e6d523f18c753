//! Random odd objects and responses, shown to the real controller alongside ordinary sets.

mod answers;
mod mutate;
mod objects;
mod ordinary;
mod panics;
mod tree;

use std::time::Duration;

use anyhow::{Context as _, ensure};
use kube_test_control_plane::kinds;
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};

use super::paused_runtime;
use super::program::Program;
use super::stage::Stage;
use objects::NAMESPACE;
use ordinary::Ordinary;

pub use panics::Panics;

/// Time that the controller runs with the odd objects before it is judged.
const SETTLE: Duration = Duration::from_secs(5);
/// Pause between two changes of an odd object.
const PAUSE: Duration = Duration::from_millis(200);
/// Maximum number of odd objects in a round.
const OBJECTS_MAX: usize = 3;
/// Share of the rounds with odd responses instead of odd objects.
const ODD_ANSWERS: f64 = 0.2;

/// One round, determined by a seed.
#[derive(Debug)]
pub enum Round {
    /// The server stores odd objects.
    Objects(Box<OddObjects>),
    /// The server's responses are odd.
    Answers {
        /// The seed.
        seed: u64,
    },
}

/// Odd objects of a round.
#[derive(Debug)]
pub struct OddObjects {
    rng: StdRng,
    in_lists: bool,
    objects: Vec<OddObject>,
}

/// An ordinary object and its odd states, in order.
#[derive(Debug)]
struct OddObject {
    ordinary: Vec<u8>,
    states: Vec<Vec<u8>>,
    /// True if it is deleted at the end.
    is_deleted: bool,
}

impl Round {
    /// Creates the round of a seed.
    pub fn new(seed: u64) -> Self {
        let mut rng = StdRng::seed_from_u64(seed);
        if rng.random_bool(ODD_ANSWERS) {
            return Self::Answers { seed };
        }
        let in_lists = rng.random();
        let number = rng.random_range(1..=OBJECTS_MAX);
        let objects = (0..number).map(|_| OddObject::random(&mut rng)).collect();
        Self::Objects(Box::new(OddObjects {
            rng,
            in_lists,
            objects,
        }))
    }

    /// Odd states of all objects, each as a line of printable characters.
    pub fn objects(&self) -> impl Iterator<Item = String> {
        let objects = match self {
            Self::Objects(odd) => &*odd.objects,
            Self::Answers { .. } => &[],
        };
        let states = objects.iter().flat_map(|object| &object.states);
        states.map(|state| state.escape_ascii().to_string())
    }

    /// Runs the controller on the round's objects or responses.
    ///
    /// # Errors
    ///
    /// A panic, an ended program, unfilled caches, or an ordinary set that was not served or whose
    /// pods and claims were changed.
    pub fn run(self, panics: &Panics) -> anyhow::Result<()> {
        let before = panics.count();
        let runtime = paused_runtime()?;
        let outcome = match self {
            Self::Objects(objects) => runtime.block_on(objects.play()),
            Self::Answers { seed } => runtime.block_on(answers::play(seed)),
        };
        let seen = panics.since(before);
        ensure!(seen.is_empty(), "panicked: {}", seen.join("; "));
        outcome
    }
}

impl OddObjects {
    async fn play(mut self) -> anyhow::Result<()> {
        let stage = Stage::with_namespace(NAMESPACE).await?;
        let ordinary = Ordinary::new(&stage, NAMESPACE, "calm");
        let mut program = Program::start(&stage);
        ordinary.create(2).await?;
        let untouched = ordinary.read(2).await?;
        if self.in_lists {
            program.stop().await.context("before the odd objects")?;
            self.store_ordinary(&stage)?;
            self.store_odd(&stage).await?;
            program = Program::start(&stage);
            tokio::time::sleep(PAUSE).await;
        } else {
            self.store_ordinary(&stage)?;
            tokio::time::sleep(PAUSE).await;
            self.store_odd(&stage).await?;
        }
        tokio::time::sleep(SETTLE).await;
        self.delete(&stage).await;
        ensure!(program.has_synced(), "the caches are not filled");
        ordinary.scale(3).await?;
        let now = ordinary.read(2).await?;
        ensure!(
            now == untouched,
            "pods or claims of {ordinary} have changed"
        );
        stage.create_namespace("probe").await?;
        Ordinary::new(&stage, "probe", "probe").create(1).await?;
        ensure!(program.is_alive(), "the program has ended");
        program.stop().await.context("the program panicked")?;
        stage.end().await;
        Ok(())
    }

    /// Stores the ordinary objects related to the odd ones, usually all of them.
    fn store_ordinary(&mut self, stage: &Stage) -> anyhow::Result<()> {
        for object in objects::family() {
            if self.rng.random_bool(0.8) {
                stage.plane().server().store_as_is(&object.encode())?;
            }
        }
        Ok(())
    }

    async fn store_odd(&self, stage: &Stage) -> anyhow::Result<()> {
        for state in self.objects.iter().flat_map(|object| &object.states) {
            // A server stores no object without a name or a kind.
            let _ = stage.plane().server().store_as_is(state);
            tokio::time::sleep(PAUSE).await;
        }
        Ok(())
    }

    /// Deletes objects in their current state.
    async fn delete(&self, stage: &Stage) {
        let store = stage.plane().server().store();
        for object in self.objects.iter().filter(|object| object.is_deleted) {
            for state in std::iter::once(&object.ordinary).chain(&object.states) {
                let Some((kind, name)) = tree::identity(state) else {
                    continue;
                };
                let version = if kind == "StatefulSet" || kind == "ControllerRevision" {
                    "apps/v1"
                } else {
                    "v1"
                };
                let Some(kind) = kinds::by_kind(version, &kind) else {
                    continue;
                };
                let (_, stored) = store.list(&kind.storage, NAMESPACE);
                let stored = stored.into_iter().find(|stored| *stored.key.name == *name);
                if let Some(stored) = stored {
                    // The deletion fails only if the controller has deleted the object first.
                    let _ = store.delete(kind, stored.key.clone(), stored.resource_version);
                }
            }
            tokio::time::sleep(PAUSE).await;
        }
    }
}

impl OddObject {
    fn random(rng: &mut StdRng) -> Self {
        let ordinary = objects::any(rng);
        let states = (0..rng.random_range(1..=3)).map(|_| mutate::mutated(&ordinary, rng));
        Self {
            states: states.collect(),
            ordinary: ordinary.encode(),
            is_deleted: rng.random(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seed_determines_the_objects() {
        let objects = |seed| Round::new(seed).objects().collect::<Vec<_>>();
        assert_eq!(objects(1), objects(1));
        assert_ne!(objects(1), objects(2));
        let rounds = (0..100).map(Round::new);
        let of_answers = rounds.filter(|round| matches!(round, Round::Answers { .. }));
        assert!((10..30).contains(&of_answers.count()));
    }
}
