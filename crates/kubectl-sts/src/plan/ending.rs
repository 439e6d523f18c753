//! A set or a namespace that is being deleted: a change has no effect.

use super::loss::{losses_of_ending, risks};
use super::outcome::{ClaimAtRisk, Plan};
use super::situation::Situation;
use super::volumes;
use crate::server::Server;

/// The plan for a set that ends: no writes, and the claims that go.
pub(super) async fn plan(server: &Server, situation: &Situation<'_>) -> anyhow::Result<Plan> {
    let lost = losses_of_ending(situation);
    let at_risk = risks(situation, &lost).into_iter();
    let at_risk = at_risk.map(|risk| ClaimAtRisk {
        name: risk.claim,
        holder: risk.holder,
    });
    let ends = if situation.namespace_ends {
        format!(
            "namespace {} is being deleted: the change has no effect",
            situation.namespace
        )
    } else {
        "the set is being deleted: the change has no effect".to_owned()
    };
    let pods = situation.set().into_iter();
    let pods = pods.flat_map(|set| situation.snapshot.pods_of(set));
    let ready = pods.filter(|pod| pod.is_ready()).count();
    Ok(Plan {
        namespace: situation.namespace.to_owned(),
        set: situation.name.to_owned(),
        steps: Vec::new(),
        claims_at_risk: at_risk.collect(),
        claims_deleted: volumes::ends(server, situation.snapshot, lost).await,
        ready,
        least_ready: ready,
        budgets: Vec::new(),
        all_at_once: false,
        is_complete: false,
        ends_with: Some(ends),
        seconds: 0,
        seconds_to_ready: None,
    })
}
