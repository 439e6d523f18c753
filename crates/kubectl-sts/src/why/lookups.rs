//! Reads that settle a doubt about a cause.

use super::case::Case;
use super::causes::{quota, refused, retries};
use super::finding::{Doubt, Finding, SetState};
use crate::decide::Decision;
use crate::model::{Lease, Quota};
use crate::server::{LEASES, PRIORITY_CLASSES, QUOTAS, SERVICE_ACCOUNTS, Server, decode};

/// Namespace of the controllers' leases.
const SYSTEM: &str = "kube-system";
/// Lease of this controller.
const OWN: &str = "statefulset-controller-manager";
/// Leases of this controller and the built-in one.
const CONTROLLERS: [&str; 2] = [OWN, "kube-controller-manager"];

/// Reads what settles a finding's doubt, and returns the finding that follows. Without the
/// permission to read it, the finding stays.
pub(super) async fn settle(
    server: &Server,
    case: Case<'_>,
    decision: &Decision,
    mut finding: Finding,
) -> Finding {
    let namespace = Some(case.snapshot.namespace.as_str());
    let exists = match finding.doubt.take() {
        None => return finding,
        Some(Doubt::Controller) => {
            return match Controllers::read(server, &CONTROLLERS, case).await {
                Controllers::Held(text) => finding.shown_by([text]),
                left => left.missing(case, finding),
            };
        }
        Some(Doubt::Holder) => {
            let own = Controllers::read(server, &[OWN], case).await;
            return own.missing(case, finding);
        }
        Some(Doubt::Quota(name)) => {
            let text = server.get(&QUOTAS, namespace, &name).await;
            let Ok(text) = text else {
                return finding;
            };
            let quota = text.and_then(|text| decode::<Quota>(&text).ok());
            let failed = refused::failed(case, decision);
            match (quota, failed) {
                (Some(quota), Some((write, event))) => {
                    let message = &event.message;
                    let used = |resource: &str| quota.used(resource);
                    // The limits and the used amounts may have changed since the refusal.
                    if let Some(raise) = quota::raise(case, write, message, &name, used) {
                        finding.resolve = vec![raise];
                    }
                    quota::has_room(message, &quota)
                }
                // A deleted quota refuses nothing.
                (quota, _) => quota.is_none(),
            }
        }
        Some(Doubt::ServiceAccount(name)) => {
            let found = server.get(&SERVICE_ACCOUNTS, namespace, &name).await;
            matches!(found, Ok(Some(_)))
        }
        Some(Doubt::PriorityClass(name)) => {
            let found = server.get(&PRIORITY_CLASSES, None, &name).await;
            matches!(found, Ok(Some(_)))
        }
    };
    match refused::failed(case, decision).filter(|_| exists) {
        Some((write, _)) => retries::back_off(case, write).shown_by(finding.evidence),
        None => finding,
    }
}

/// The state of the controllers' leases.
enum Controllers {
    /// There is no lease, or none may be read.
    Unknown,
    /// The lease that is held, and its holder.
    Held(String),
    /// The leases without a holder.
    Left(Vec<String>),
}

impl Controllers {
    async fn read(server: &Server, names: &[&str], case: Case<'_>) -> Self {
        let mut leases: Vec<Lease> = Vec::new();
        for name in names {
            let text = server.get(&LEASES, Some(SYSTEM), name).await.ok().flatten();
            leases.extend(text.and_then(|text| decode(&text).ok()));
        }
        let now = case.snapshot.now;
        let held = leases.iter().find_map(|lease| {
            let holder = lease.holder(now)?;
            let name = &lease.metadata.name;
            Some(Self::Held(format!("lease {name} is held by {holder}")))
        });
        let left = leases.iter().map(|lease| &lease.metadata.name);
        let left: Vec<String> = left
            .map(|name| format!("lease {name} has no holder"))
            .collect();
        match held {
            Some(held) => held,
            None if left.is_empty() => Self::Unknown,
            None => Self::Left(left),
        }
    }

    /// The finding, or the lack of a controller that its leases show.
    fn missing(self, case: Case<'_>, finding: Finding) -> Finding {
        let Self::Left(left) = self else {
            return finding;
        };
        let finding = match finding.state {
            SetState::Waiting => {
                let missing = retries::no_controller(case).shown_by([finding.text]);
                missing.shown_by(finding.evidence)
            }
            _ => finding,
        };
        finding.shown_by(left)
    }
}
