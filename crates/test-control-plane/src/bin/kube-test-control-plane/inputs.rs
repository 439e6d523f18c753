//! Parsing of the flags' files and lists.

use std::collections::BTreeSet;
use std::path::Path;

use anyhow::{Context, bail};
use kube_test_control_plane::actors::{
    ActorsConfig, Controller, GarbageCollectorConfig, KubeletConfig, NamespaceControllerConfig,
    NodeControllerConfig, PodBehaviour, PodCollectorConfig, PodRule, SchedulerConfig,
    VolumeBinderConfig,
};
use kube_test_control_plane::auth::Tokens;
use kube_test_control_plane::certificates::{ClientAuthorities, ServingCertificate};
use kube_test_control_plane::faults::FaultPlan;

use crate::args::{ACTORS, ALL_ACTORS, Args};

/// All inputs, which are read before the start.
pub(crate) struct Inputs {
    pub(crate) tokens: Tokens,
    pub(crate) actors: ActorsConfig,
    /// True if the StatefulSet controller runs.
    pub(crate) runs_stateful_sets: bool,
    pub(crate) faults: Option<FaultPlan>,
    pub(crate) serving: Option<ServingCertificate>,
    pub(crate) authorities: Option<ClientAuthorities>,
}

impl Inputs {
    /// Reads all files.
    pub(crate) fn read(args: &Args) -> anyhow::Result<Self> {
        let (actors, runs_stateful_sets) = actors(args)?;
        Ok(Self {
            tokens: tokens(args)?,
            actors,
            runs_stateful_sets,
            faults: faults(args)?,
            serving: serving(args)?,
            authorities: authorities(args)?,
        })
    }
}

fn read(flag: &str, path: &Path) -> anyhow::Result<String> {
    std::fs::read_to_string(path).with_context(|| format!("--{flag}: reading {}", path.display()))
}

fn tokens(args: &Args) -> anyhow::Result<Tokens> {
    let mut tokens = Tokens::default();
    if let Some(path) = &args.token_auth_file {
        let text = read("token-auth-file", path)?;
        tokens
            .insert_file(&text)
            .with_context(|| format!("--token-auth-file: {}", path.display()))?;
    }
    Ok(tokens)
}

fn faults(args: &Args) -> anyhow::Result<Option<FaultPlan>> {
    let Some(path) = &args.fault_plan_file else {
        return Ok(None);
    };
    let text = read("fault-plan-file", path)?;
    let plan = FaultPlan::from_json(&text);
    let plan = plan.with_context(|| format!("--fault-plan-file: {}", path.display()))?;
    Ok(Some(plan))
}

fn serving(args: &Args) -> anyhow::Result<Option<ServingCertificate>> {
    match (&args.tls_cert_file, &args.tls_private_key_file) {
        (None, None) => Ok(None),
        (Some(_), None) => bail!("--tls-cert-file needs --tls-private-key-file"),
        (None, Some(_)) => bail!("--tls-private-key-file needs --tls-cert-file"),
        (Some(certificate), Some(key)) => {
            let chain = read("tls-cert-file", certificate)?;
            let key_text = read("tls-private-key-file", key)?;
            let serving = ServingCertificate::from_pem(&chain, &key_text);
            let serving = serving.with_context(|| {
                let (certificate, key) = (certificate.display(), key.display());
                format!("--tls-cert-file {certificate}, --tls-private-key-file {key}")
            })?;
            Ok(Some(serving))
        }
    }
}

fn authorities(args: &Args) -> anyhow::Result<Option<ClientAuthorities>> {
    let Some(path) = &args.client_ca_file else {
        return Ok(None);
    };
    let text = read("client-ca-file", path)?;
    let authorities = ClientAuthorities::from_pem(&text);
    let authorities =
        authorities.with_context(|| format!("--client-ca-file: {}", path.display()))?;
    Ok(Some(authorities))
}

/// Returns the configuration of the actors, and whether the StatefulSet controller is one of them.
fn actors(args: &Args) -> anyhow::Result<(ActorsConfig, bool)> {
    let mut config = ActorsConfig::default().events(args.actor_events);
    let mut runs_stateful_sets = false;
    for name in chosen(&args.actors)? {
        match name {
            "kubelet" => config.kubelet = Some(kubelet(args)?),
            "scheduler" => config.scheduler = Some(SchedulerConfig::default()),
            "node-controller" => {
                config.node_controller = Some(NodeControllerConfig::default());
            }
            "pod-garbage-collector" => {
                config.pod_collector = Some(PodCollectorConfig::default());
            }
            "disruption-controller" => config.disruption_controller = true,
            "validatingadmissionpolicy-status-controller" => {
                config.policy_status_controller = true;
            }
            "volume-binder" => config.volume_binder = Some(VolumeBinderConfig::default()),
            "garbage-collector" => {
                config.garbage_collector = Some(GarbageCollectorConfig::default());
            }
            "namespace-controller" => {
                config.namespace_controller = Some(NamespaceControllerConfig::default());
            }
            kube_test_control_plane_statefulset::NAME => runs_stateful_sets = true,
            other => config.controllers.extend(Controller::named(other)),
        }
    }
    Ok((config, runs_stateful_sets))
}

fn kubelet(args: &Args) -> anyhow::Result<KubeletConfig> {
    let mut config = KubeletConfig::new(
        PodBehaviour::default()
            .start_delay(args.start_delay)
            .ready_delay(args.ready_delay),
    );
    if let Some(path) = &args.pod_rules_file {
        let text = read("pod-rules-file", path)?;
        let rules = PodRule::list_from_yaml(&text);
        config.rules = rules.with_context(|| format!("--pod-rules-file: {}", path.display()))?;
    }
    Ok(config)
}

/// Returns the actors in a list.
fn chosen(list: &str) -> anyhow::Result<BTreeSet<&str>> {
    let mut chosen = BTreeSet::new();
    let names = list.split(',').map(str::trim);
    for name in names.filter(|name| !name.is_empty()) {
        let all = || ACTORS.split(',');
        let (excluded, actor) = match name.strip_prefix('-') {
            Some(actor) => (true, actor),
            None => (false, name),
        };
        if name == ALL_ACTORS {
            chosen.extend(all());
        } else if all().all(|known| known != actor) {
            bail!("--actors: unknown actor {actor:?}; must be one of {ACTORS}");
        } else if excluded {
            chosen.remove(actor);
        } else {
            chosen.insert(actor);
        }
    }
    Ok(chosen)
}
