//! Ordinary sets, and checks that they are served.

use std::fmt;
use std::time::Duration;

use anyhow::ensure;
use bytes::Bytes;
use serde_json::json;

use crate::odd::ordinary::ordinary_set;
use crate::odd::stage::Stage;

/// Time limit for a new or scaled set to get its pods.
const SERVED_WITHIN: Duration = Duration::from_secs(1);
/// Interval between checks of the pods.
const POLL: Duration = Duration::from_millis(50);

/// A set with one claim per pod.
pub(super) struct Ordinary<'a> {
    stage: &'a Stage,
    namespace: &'a str,
    name: &'a str,
}

impl fmt::Display for Ordinary<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "set {}/{}", self.namespace, self.name)
    }
}

impl<'a> Ordinary<'a> {
    /// Describes a set that doesn't exist yet.
    pub(super) fn new(stage: &'a Stage, namespace: &'a str, name: &'a str) -> Self {
        Self {
            stage,
            namespace,
            name,
        }
    }

    /// Creates the set and waits for its pods.
    ///
    /// # Errors
    ///
    /// The pods aren't created in time.
    pub(super) async fn create(&self, replicas: usize) -> anyhow::Result<()> {
        let set = ordinary_set(self.name, replicas);
        self.stage.write("POST", &self.sets(), &set).await?;
        self.wait(replicas).await
    }

    /// Scales the set up and waits for its pods.
    ///
    /// # Errors
    ///
    /// The pods aren't created in time.
    pub(super) async fn scale(&self, replicas: usize) -> anyhow::Result<()> {
        let path = format!("{}/{}", self.sets(), self.name);
        let scale = json!({"spec": {"replicas": replicas}});
        self.stage.write("PATCH", &path, &scale).await?;
        self.wait(replicas).await
    }

    /// Stored bytes of the set's first pods and of their claims.
    ///
    /// # Errors
    ///
    /// One of them is missing.
    pub(super) async fn read(&self, replicas: usize) -> anyhow::Result<Vec<Bytes>> {
        let mut objects = Vec::new();
        for ordinal in 0..replicas {
            let name = format!("{}-{ordinal}", self.name);
            for path in [
                format!("pods/{name}"),
                format!("persistentvolumeclaims/data-{name}"),
            ] {
                let path = format!("/api/v1/namespaces/{}/{path}", self.namespace);
                let answer = self.stage.get(&path).await?;
                ensure!(answer.status == 200, "GET {path}: {}", answer.status);
                objects.push(answer.body);
            }
        }
        Ok(objects)
    }

    fn sets(&self) -> String {
        format!("/apis/apps/v1/namespaces/{}/statefulsets", self.namespace)
    }

    async fn wait(&self, replicas: usize) -> anyhow::Result<()> {
        let served = async {
            while self.read(replicas).await.is_err() {
                tokio::time::sleep(POLL).await;
            }
        };
        let served = tokio::time::timeout(SERVED_WITHIN, served).await;
        ensure!(
            served.is_ok(),
            "{self} does not have {replicas} pods within a second"
        );
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::odd::program::Program;

    #[tokio::test(start_paused = true)]
    async fn set_without_controller_is_not_served() {
        let stage = Stage::with_namespace("n").await.unwrap();
        let set = Ordinary::new(&stage, "n", "calm");
        assert!(set.create(1).await.is_err());
        let program = Program::start(&stage);
        assert!(set.scale(2).await.is_ok());
        program.stop().await.unwrap();
        stage.end().await;
    }
}
