//! Writes that a quota refuses.

use kube_apimachinery::quantity::Quantity;

use crate::decide::Write;
use crate::why::case::Case;
use crate::why::finding::{Doubt, Finding};

/// Amounts by resource.
type Amounts<'a> = Vec<(&'a str, Quantity)>;

/// The cause if a quota refuses a write, by the server's message.
pub(super) fn refusal(case: Case<'_>, next: &Write, message: &str) -> Option<Finding> {
    if let Some(quota) = after(message, "exceeded quota: ") {
        let text = format!("the quota {quota} leaves no room for {}", next.name);
        let finding = Finding::stuck("quota", text).doubted_by(Doubt::Quota(quota.to_owned()));
        let used = amounts(message, "used: ").unwrap_or_default();
        let used = |resource: &str| {
            let mut used = used.iter().filter(|(found, _)| *found == resource);
            used.next().map(|(_, amount)| amount.clone())
        };
        return Some(match raise(case, next, message, quota, used) {
            Some(command) => finding.resolved_by(command),
            None => finding.but(format!("raise the quota {quota}")),
        });
    }
    let quota = after(message, "failed quota: ")?;
    let (quota, _) = quota.split_once(':').unwrap_or((quota, ""));
    let (_, needs) = message.split_once("must specify ")?;
    let text = format!("the quota {quota} demands that the template specifies {needs}");
    let fix = "set these requests and limits in the template";
    Some(Finding::stuck("quota-needs-resources", text).but(fix))
}

/// The text after a start, up to a comma.
fn after<'a>(message: &'a str, start: &str) -> Option<&'a str> {
    let (_, rest) = message.split_once(start)?;
    rest.split(',').next()
}

/// The number of objects of the kind that the set still needs.
fn missing(case: Case<'_>, next: &Write) -> u64 {
    let set = case.set;
    let replicas = u64::try_from(set.replicas()).unwrap_or_default();
    let (desired, existing) = if next.resource == "persistentvolumeclaims" {
        let templates = set.spec.volume_claim_templates.len() as u64;
        let is_desired = |claim: &str| {
            let pod = set.spec.volume_claim_templates.iter().find_map(|template| {
                let rest = claim.strip_prefix(template.metadata.name.as_str())?;
                rest.strip_prefix('-')
            });
            let ordinal = pod.and_then(|pod| set.ordinal(pod));
            ordinal.is_some_and(|ordinal| set.ordinals().contains(&ordinal))
        };
        let claims = case.snapshot.claims();
        let claims = claims.filter(|claim| is_desired(&claim.metadata.name));
        (replicas.saturating_mul(templates), claims.count() as u64)
    } else {
        (replicas, case.snapshot.pods_of(set).count() as u64)
    };
    desired.saturating_sub(existing).max(1)
}

/// The command that raises a quota by the requests of all missing objects.
pub(in crate::why) fn raise(
    case: Case<'_>,
    next: &Write,
    message: &str,
    quota: &str,
    used: impl Fn(&str) -> Option<Quantity>,
) -> Option<String> {
    let hard = raised(message, missing(case, next), used)?;
    let patch = format!(r#"{{"spec":{{"hard":{{{hard}}}}}}}"#);
    let command = format!("patch resourcequota {quota} --type=merge -p '{patch}'");
    Some(case.kubectl(&command))
}

/// The limits of a quota that admit this number of objects more, as fields of JSON.
fn raised(message: &str, missing: u64, used: impl Fn(&str) -> Option<Quantity>) -> Option<String> {
    let requested = amounts(message, "requested: ")?;
    let hard = requested.iter().map(|(resource, requested)| {
        let hard = used(resource)?.checked_add(&times(requested, missing)?)?;
        Some(format!(r#""{resource}":"{hard}""#))
    });
    let hard: Option<Vec<String>> = hard.collect();
    Some(hard?.join(","))
}

/// A multiple of an amount.
fn times(amount: &Quantity, mut count: u64) -> Option<Quantity> {
    let mut sum: Option<Quantity> = None;
    let mut power = amount.clone();
    while count > 0 {
        if count % 2 == 1 {
            sum = Some(match sum {
                Some(sum) => sum.checked_add(&power)?,
                None => power.clone(),
            });
        }
        count /= 2;
        if count > 0 {
            power = power.checked_add(&power)?;
        }
    }
    sum
}

/// The amounts after a keyword in a quota's message, such as `used: pods=2,requests.cpu=1, limited:`.
fn amounts<'a>(message: &'a str, start: &str) -> Option<Amounts<'a>> {
    let (_, rest) = message.split_once(start)?;
    let list = rest.split(", ").next()?;
    let pairs = list.split(',').map(|pair| {
        let (resource, amount) = pair.split_once('=')?;
        Some((resource, amount.trim().parse().ok()?))
    });
    pairs.collect()
}

/// Reports whether a quota has room for the write that it refused: its limits are above the used
/// amounts by the requested ones. Without used amounts, it is unknown and counts as full.
pub(in crate::why) fn has_room(message: &str, quota: &crate::model::Quota) -> bool {
    let Some(requested) = amounts(message, "requested: ") else {
        return false;
    };
    requested.iter().all(|(resource, requested)| {
        let Some(hard) = quota.hard(resource) else {
            return true;
        };
        let used = quota.used(resource);
        let needed = used.and_then(|used| used.checked_add(requested));
        needed.is_some_and(|needed| needed <= hard)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const MESSAGE: &str = "pods \"web-2\" is forbidden: exceeded quota: q, requested: \
                           count/pods=1,requests.cpu=500m,requests.memory=1536Mi, used: \
                           count/pods=2,requests.cpu=1,requests.memory=1Gi, limited: \
                           count/pods=2,requests.cpu=1,requests.memory=2Gi";

    #[test]
    fn limits_are_raised_with_their_units() {
        assert_eq!(after(MESSAGE, "exceeded quota: "), Some("q"));
        let hard = r#""count/pods":"5","requests.cpu":"2500m","requests.memory":"5632Mi""#;
        let used = |resource: &str| {
            let used = match resource {
                "count/pods" => "2",
                "requests.cpu" => "1000m",
                _ => "1Gi",
            };
            used.parse().ok()
        };
        assert_eq!(raised(MESSAGE, 3, used).as_deref(), Some(hard));
        let odd = "exceeded quota: q, requested: cpu=a lot, used: cpu=1, limited: cpu=1";
        assert_eq!(raised(odd, 1, used), None);
        assert_eq!(raised(MESSAGE, 1, |_| None), None);
    }

    #[test]
    fn multiples_keep_the_unit() {
        let amount: Quantity = "250m".parse().unwrap();
        for (count, product) in [(1, "250m"), (2, "500m"), (7, "1750m"), (8, "2")] {
            assert_eq!(times(&amount, count).unwrap().to_string(), product);
        }
        let large = times(&amount, u64::MAX).unwrap();
        assert!(large > "1E".parse().unwrap());
    }

    #[test]
    fn room_is_counted_in_units() {
        let quota = |cpu: &str, memory: &str| {
            let hard = serde_json::json!({"requests.cpu": cpu, "requests.memory": memory});
            let used = serde_json::json!({"requests.cpu": "1000m", "requests.memory": "1Gi"});
            let quota = serde_json::json!({"spec": {"hard": hard}, "status": {"used": used}});
            serde_json::from_value(quota).unwrap()
        };
        assert!(has_room(MESSAGE, &quota("1500m", "2560Mi")));
        assert!(!has_room(MESSAGE, &quota("1400m", "4Gi")));
        assert!(!has_room(MESSAGE, &quota("2", "2Gi")));
    }
}
