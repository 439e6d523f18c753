//! A round: one controller, from an empty namespace to an empty namespace.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::core::v1::{Namespace, Pod, ServiceAccount};
use kube::Api;
use kube::api::{DeleteParams, ObjectMeta, PostParams};
use rand::TryRng as _;
use rand::rngs::SysRng;
use tokio::time::{Instant, sleep, timeout};

use super::api_server::ApiServer;
use super::args::{Args, Phase};
use super::disturbance;
use super::figures::Figures;
use super::kubelet::Kubelet;
use super::program::{Command, Process, Program, Usage};
use super::progress::progress;
use super::reactions::Reactions;
use super::requests::{Own, Requests};
use super::workload::Workload;

/// The parts of a round.
pub(crate) struct Round<'a> {
    args: &'a Args,
    server: &'a ApiServer,
    title: String,
    namespace: String,
    own: Arc<Own>,
    reactions: Arc<Reactions>,
}

/// The programs of a running round.
struct Running {
    controller: Program,
    kubelet: Kubelet,
    workload: Workload,
    requests: Requests,
}

impl<'a> Round<'a> {
    /// A round under a title for progress, in a new namespace.
    pub(crate) fn new(
        args: &'a Args,
        server: &'a ApiServer,
        title: String,
    ) -> anyhow::Result<Self> {
        let number = SysRng.try_next_u32().context("name the namespace")?;
        Ok(Self {
            args,
            server,
            title,
            namespace: format!("bench-{number:08x}"),
            own: Arc::default(),
            reactions: Arc::default(),
        })
    }

    /// Runs all phases with the controller.
    pub(crate) async fn run(&self, command: &Command) -> anyhow::Result<Vec<Figures>> {
        self.create_namespace().await?;
        let controller = command.start(&self.server.kubeconfig)?;
        let outcome = self.run_phases(command, controller).await;
        // Also after a failure, nothing is left.
        let cleaned = self.delete_namespace().await;
        let figures = outcome.with_context(|| self.title.clone())?;
        cleaned?;
        Ok(figures)
    }

    async fn run_phases(
        &self,
        command: &Command,
        mut controller: Program,
    ) -> anyhow::Result<Vec<Figures>> {
        controller.process().rest(self.args.patience()).await?;
        controller.check()?;
        let client = &self.server.client;
        let pods: Api<Pod> = Api::namespaced(client.clone(), &self.namespace);
        let sets: Api<StatefulSet> = Api::namespaced(client.clone(), &self.namespace);
        let (own, reactions) = (Arc::clone(&self.own), Arc::clone(&self.reactions));
        let kubelet = Kubelet::start(pods.clone(), own, reactions);
        let _disturbance = if self.args.disturb {
            Some(disturbance::start(&sets, pods, Arc::clone(&self.own)).await?)
        } else {
            None
        };
        let mut running = Running {
            controller,
            kubelet,
            workload: Workload::new(self.args, sets, Arc::clone(&self.own), self.title.clone()),
            requests: self.server.requests(&self.title).await?,
        };
        let mut all = Vec::new();
        for phase in &self.args.phases {
            let figures = self.measure(*phase, &mut running, command).await;
            let figures = figures.with_context(|| format!("phase {}", phase.name()))?;
            progress(&self.title, &figures.to_string());
            all.push(figures);
        }
        running.controller.end().await?;
        Ok(all)
    }

    async fn measure(
        &self,
        phase: Phase,
        running: &mut Running,
        command: &Command,
    ) -> anyhow::Result<Figures> {
        running.controller.check()?;
        running.controller.process().forget_peak()?;
        let server_before = self.server_cpu()?;
        running.requests.take(&self.own).await?;
        self.reactions.take();
        let before = match phase {
            Phase::Restart => Usage::default(),
            _ => running.controller.process().usage()?,
        };
        let seconds = self.play(phase, running, command).await;
        running.controller.check()?;
        let time = seconds?;
        let after = running.controller.process().usage()?;
        let server = self.server_cpu()?;
        Ok(Figures {
            phase,
            time,
            cpu: after.cpu.saturating_sub(before.cpu),
            resident: after.resident,
            peak: after.peak,
            server_cpu: server
                .zip(server_before)
                .map(|(now, then)| now.saturating_sub(then)),
            requests: running.requests.take(&self.own).await?,
            reactions: self.reactions.take(),
        })
    }

    /// Runs a phase until its goal is reached and the controller rests. Returns the time to the
    /// goal.
    async fn play(
        &self,
        phase: Phase,
        running: &mut Running,
        command: &Command,
    ) -> anyhow::Result<Duration> {
        let begun = Instant::now();
        match phase {
            Phase::Create => running.workload.create().await?,
            Phase::Roll => running.workload.roll().await?,
            Phase::Scale => {
                running.workload.scale().await?;
                self.wait_for_no_pods(&mut running.kubelet).await?;
            }
            Phase::Delete => running.workload.delete().await?,
            Phase::Idle => {
                sleep(Duration::from_secs(self.args.idle_seconds)).await;
                return Ok(begun.elapsed());
            }
            Phase::Restart => {
                let next = command.start(&self.server.kubeconfig)?;
                std::mem::replace(&mut running.controller, next)
                    .end()
                    .await?;
                let rested = self.rest(&running.controller).await?;
                return Ok(rested - begun);
            }
        }
        let time = begun.elapsed();
        self.rest(&running.controller).await?;
        Ok(time)
    }

    /// Waits until the controller rests, which it never does with a hot set.
    async fn rest(&self, controller: &Program) -> anyhow::Result<Instant> {
        if self.args.disturb {
            return Ok(Instant::now());
        }
        controller.process().rest(self.args.patience()).await
    }

    async fn wait_for_no_pods(&self, kubelet: &mut Kubelet) -> anyhow::Result<()> {
        let gone = kubelet.live.wait_for(|live| *live == 0);
        timeout(self.args.patience(), gone)
            .await
            .context("some pods are left")?
            .context("the kubelet has ended")?;
        Ok(())
    }

    fn server_cpu(&self) -> anyhow::Result<Option<Duration>> {
        let usage = self.server.process.map(Process::usage).transpose()?;
        Ok(usage.map(|usage| usage.cpu))
    }

    async fn create_namespace(&self) -> anyhow::Result<()> {
        let metadata = |name: &str| ObjectMeta {
            name: Some(name.to_owned()),
            ..ObjectMeta::default()
        };
        let namespaces: Api<Namespace> = Api::all(self.server.client.clone());
        let namespace = Namespace {
            metadata: metadata(&self.namespace),
            ..Namespace::default()
        };
        let params = PostParams::default();
        let created = namespaces.create(&params, &namespace).await;
        created.with_context(|| format!("create the namespace {}", self.namespace))?;
        let accounts: Api<ServiceAccount> =
            Api::namespaced(self.server.client.clone(), &self.namespace);
        let account = ServiceAccount {
            metadata: metadata("default"),
            ..ServiceAccount::default()
        };
        match accounts.create(&params, &account).await {
            // A cluster's controllers create it too.
            Err(kube::Error::Api(status)) if status.code == 409 => Ok(()),
            created => created
                .map(drop)
                .context("create the service account default"),
        }
    }

    /// Deletes the sets and pods of a failed round, and the namespace.
    async fn delete_namespace(&self) -> anyhow::Result<()> {
        let client = &self.server.client;
        let params = DeleteParams::default();
        let all = &kube::api::ListParams::default();
        let sets: Api<StatefulSet> = Api::namespaced(client.clone(), &self.namespace);
        sets.delete_collection(&params, all).await?;
        let pods: Api<Pod> = Api::namespaced(client.clone(), &self.namespace);
        let at_once = params.clone().grace_period(0);
        pods.delete_collection(&at_once, all).await?;
        let namespaces: Api<Namespace> = Api::all(client.clone());
        namespaces.delete(&self.namespace, &params).await?;
        Ok(())
    }
}
