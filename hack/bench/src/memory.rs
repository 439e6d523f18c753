//! What a cached pod costs in memory.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::process::Command;
use std::sync::Arc;

use anyhow::{Context as _, bail, ensure};
use k8s_openapi::api::core::v1 as core;
use statefulset_client::indexer::{CachedObject as _, Indexer};
use statefulset_controller_util::pod::Pod;

use crate::cluster::Recorded;
use crate::report::{Bound, Report, Row};

/// The argument that makes this program fill a cache and nothing else.
pub(crate) const CHILD: &str = "fill-cache";
/// What is cached: our pods.
const COMPACT: &str = "compact";
/// What is cached: k8s-openapi's pods.
const TYPED: &str = "typed";
/// How many pods are cached.
const PODS: u32 = 10_000;
/// The most that a cached pod may cost.
const BYTES_PER_POD_MAX: f64 = 4_000.0;

/// Caches the same pods in both forms.
pub(crate) fn measure(report: &mut Report) -> anyhow::Result<()> {
    report.add(Row {
        what: format!("resident memory per cached pod, of {PODS}"),
        value: bytes_per_pod(COMPACT)?,
        baseline: bytes_per_pod(TYPED)?,
        baseline_name: "k8s-openapi's Pod in a map",
        unit: "bytes",
        bound: Some(Bound::Value(BYTES_PER_POD_MAX)),
    });
    Ok(())
}

/// Fills a cache in a fresh process, so that nothing freed before is used again.
fn bytes_per_pod(kind: &str) -> anyhow::Result<f64> {
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
    let bytes: f64 = text
        .trim()
        .parse()
        .context("read what the child has measured")?;
    Ok(bytes / f64::from(PODS))
}

/// Fills a cache and prints by how many bytes the process has grown.
pub(crate) fn child(kind: &str) -> anyhow::Result<()> {
    let recorded = Recorded::read()?;
    let texts = || (0..PODS as usize).map(|number| recorded.numbered_pod_json(number));
    // What the first decoding needs once is not the pods'.
    let text = recorded.numbered_pod_json(0);
    Pod::decode(&text)?;
    serde_json::from_str::<core::Pod>(&text)?;
    let before = resident_bytes()?;
    let grown = match kind {
        COMPACT => {
            let cache = Indexer::new();
            for text in texts() {
                cache.add(Pod::decode(&text)?);
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
    writeln!(std::io::stdout(), "{grown}")?;
    Ok(())
}

/// The memory of this process that is in RAM.
pub(crate) fn resident_bytes() -> anyhow::Result<u64> {
    resident_bytes_of(std::process::id())
}

/// The memory of a process that is in RAM.
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
