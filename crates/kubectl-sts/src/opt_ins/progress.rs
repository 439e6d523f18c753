//! The progress of a set's rollout.

use crate::Session;
use crate::objects::read;
use crate::server::Server;

/// The progress of a rollout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Progress {
    /// The first ordinal.
    pub(super) start: i64,
    /// The ordinal above the highest pod that isn't updated.
    pub(super) reached: i64,
    /// True if the update strategy has a rollout to control.
    pub(super) is_rolling: bool,
    /// True if the built-in controller serves the set.
    pub(super) is_built_in: bool,
}

impl Progress {
    /// Reads the pods of a set.
    ///
    /// # Errors
    ///
    /// An object can't be read.
    pub(super) async fn read(
        server: &Server,
        session: &Session,
        name: &str,
    ) -> anyhow::Result<Self> {
        let names = [name.to_owned()];
        let sets = read::sets(server, &session.namespace, &names).await?;
        let mut unread = Vec::new();
        let namespace = read::namespace(server, sets, session.now, &mut unread).await?;
        for text in &unread {
            server.note_unread(text);
        }
        let snapshot = namespace.into_snapshot();
        let Some(stored) = &snapshot.set else {
            anyhow::bail!("StatefulSet {name} doesn't exist");
        };
        let set = &stored.object;
        let ordinals = set.ordinals();
        let update = &set.status.update_revision;
        let outdated = snapshot
            .pods_of(set)
            .filter(|pod| pod.metadata.revision() != update);
        let outdated = outdated.filter_map(|pod| set.ordinal(&pod.metadata.name));
        let outdated = outdated.filter(|ordinal| ordinals.contains(ordinal));
        Ok(Self {
            start: ordinals.start,
            reached: outdated.max().map_or(ordinals.start, |highest| highest + 1),
            is_rolling: !matches!(&*set.spec.update_strategy.kind, "OnDelete" | "Recreate"),
            is_built_in: snapshot.is_built_in(),
        })
    }
}
