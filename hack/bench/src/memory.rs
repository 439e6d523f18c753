//! Memory of cached objects.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::process::Command;
use std::sync::Arc;

use anyhow::{Context as _, bail, ensure};
use k8s_openapi::api::core::v1 as core;
use rand::distr::Alphanumeric;
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use serde_json::json;
use statefulset_client::cache::indexer::{CachedObject, Indexer, SharedParts};
use statefulset_controller_util::controller_revision::ControllerRevision;
use statefulset_controller_util::pod::Pod;
use statefulset_controller_util::stateful_set::StatefulSet;

use crate::cluster::Recorded;
use crate::report::{Bound, Report, Row};

/// Argument for the child process that only fills a cache.
pub(crate) const CHILD: &str = "fill-cache";
/// Cache of compact pods.
const COMPACT: &str = "compact";
/// Cache of k8s-openapi's pods.
const TYPED: &str = "typed";
/// Cache of sets with large templates, and a revision of each.
const LARGE_SETS: &str = "large-sets";
/// Number of these sets.
const SETS: u32 = 50;
/// Length of each of their templates, in bytes.
const TEMPLATE_BYTES: u32 = 1_300_000;
/// Maximum memory of a set and its revision, relative to the length of the template.
const BYTES_PER_TEMPLATE_BYTE_MAX: f64 = 1.2;
/// Number of pods.
const PODS: u32 = 10_000;
/// Maximum memory of a cached pod.
const BYTES_PER_POD_MAX: f64 = 2_000.0;

/// Caches the same pods in both forms, and sets.
pub(crate) fn measure(report: &mut Report) -> anyhow::Result<()> {
    report.add(Row {
        what: format!("resident memory per cached pod, of {PODS}"),
        value: bytes_per_pod(COMPACT)?,
        baseline: bytes_per_pod(TYPED)?,
        baseline_name: "k8s-openapi's Pod in a map",
        unit: "bytes",
        bound: Some(Bound::Value(BYTES_PER_POD_MAX)),
    });
    report.add(Row {
        what: format!("resident memory per large set with its revision, of {SETS}"),
        value: grown_bytes(LARGE_SETS)? / f64::from(SETS),
        baseline: f64::from(TEMPLATE_BYTES),
        baseline_name: "its template's length",
        unit: "bytes",
        bound: Some(Bound::RatioAtMost(BYTES_PER_TEMPLATE_BYTE_MAX)),
    });
    Ok(())
}

fn bytes_per_pod(kind: &str) -> anyhow::Result<f64> {
    Ok(grown_bytes(kind)? / f64::from(PODS))
}

/// Fills a cache in a fresh process, which reuses no freed memory.
fn grown_bytes(kind: &str) -> anyhow::Result<f64> {
    let program = std::env::current_exe().context("find this program")?;
    let output = Command::new(program)
        .args([CHILD, kind])
        .output()
        .context("run a child")?;
    let text = String::from_utf8_lossy(&output.stdout);
    ensure!(
        output.status.success(),
        "cannot fill a cache: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    text.trim().parse().context("read the child's result")
}

/// Fills a cache and prints the growth of the process in bytes.
pub(crate) fn child(kind: &str) -> anyhow::Result<()> {
    let grown = match kind {
        LARGE_SETS => fill_with_large_sets()?,
        _ => fill_with_pods(kind)?,
    };
    writeln!(std::io::stdout(), "{grown}")?;
    Ok(())
}

fn fill_with_large_sets() -> anyhow::Result<u64> {
    let (sets, revisions, shared) = (Indexer::new(), Indexer::new(), SharedParts::default());
    let before = resident_bytes()?;
    let mut random = StdRng::seed_from_u64(1);
    for number in 0..SETS {
        let noise: String = (&mut random)
            .sample_iter(Alphanumeric)
            .take(TEMPLATE_BYTES as usize)
            .map(char::from)
            .collect();
        let template = json!({"spec": {"containers": [{"name": "c", "image": noise}]}});
        let metadata = json!({"namespace": "ns", "name": format!("web-{number}")});
        let mut set = StatefulSet::decode(
            &json!({"metadata": metadata, "spec": {"template": template}}).to_string(),
        )?;
        set.share_parts(&shared);
        sets.add(set);
        let data = json!({"spec": {"template": template}});
        let mut revision = ControllerRevision::decode(
            &json!({"data": data, "metadata": metadata, "revision": 1}).to_string(),
        )?;
        revision.share_parts(&shared);
        revisions.add(revision);
    }
    let grown = resident_bytes()?.saturating_sub(before);
    ensure!(sets.len() == revisions.len(), "some sets have no revision");
    Ok(grown)
}

fn fill_with_pods(kind: &str) -> anyhow::Result<u64> {
    let recorded = Recorded::read()?;
    let texts = || (0..PODS as usize).map(|number| recorded.numbered_pod_json(number));
    // The first decoding allocates once, which must not count for the pods.
    let text = recorded.numbered_pod_json(0);
    Pod::decode(&text)?;
    serde_json::from_str::<core::Pod>(&text)?;
    let before = resident_bytes()?;
    let grown = match kind {
        COMPACT => {
            let (cache, shared) = (Indexer::new(), SharedParts::default());
            for text in texts() {
                let mut pod = Pod::decode(&text)?;
                pod.share_parts(&shared);
                cache.add(pod);
            }
            let grown = resident_bytes()?.saturating_sub(before);
            ensure!(cache.len() == PODS as usize, "some pods have the same name");
            grown
        }
        TYPED => {
            let mut cache = BTreeMap::new();
            for text in texts() {
                let pod: core::Pod = serde_json::from_str(&text)?;
                let key = (pod.metadata.namespace.clone(), pod.metadata.name.clone());
                cache.insert(key, Arc::new(pod));
            }
            let grown = resident_bytes()?.saturating_sub(before);
            ensure!(cache.len() == PODS as usize, "some pods have the same name");
            grown
        }
        _ => bail!("unknown cache {kind}"),
    };
    Ok(grown)
}

/// Resident memory of this process.
pub(crate) fn resident_bytes() -> anyhow::Result<u64> {
    resident_bytes_of(std::process::id())
}

/// Resident memory of a process.
pub(crate) fn resident_bytes_of(process: u32) -> anyhow::Result<u64> {
    let path = format!("/proc/{process}/status");
    let status = std::fs::read_to_string(&path).with_context(|| format!("read {path}"))?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let size = line.and_then(|line| line.trim().strip_suffix(" kB"));
    let kibibytes: u64 = size
        .with_context(|| format!("{path} has no VmRSS"))?
        .trim()
        .parse()?;
    Ok(kibibytes * 1024)
}
