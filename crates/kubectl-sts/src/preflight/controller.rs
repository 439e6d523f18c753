//! The controllers at work: the built-in one, and this one.

use jiff::Timestamp;
use serde_json::Value;

use super::check::{Check, Verdict};
use super::fence::{self, Fence};
use super::shipped::SHIPPED;
use crate::model::Lease;
use crate::server::{LEASES, PODS, Server, decode};

const NAME: &str = "controller";
/// Namespace and name of the built-in controllers' lease, and the label of their pods.
const SYSTEM: &str = "kube-system";
const BUILT_IN: &str = "kube-controller-manager";
/// The value that disables the built-in controller, in the flag `--controllers`.
const DISABLED: &str = "-statefulset-controller";
/// Flags with a counterpart here.
const COPIED: [&str; 4] = [
    "--concurrent-statefulset-syncs",
    "--feature-gates",
    "--kube-api-burst",
    "--kube-api-qps",
];

pub(super) async fn check(server: &Server, now: Timestamp) -> Check {
    let read = async { anyhow::Ok((read(server).await?, fence::read(server).await?)) };
    match read.await {
        Ok(((leases, pods), fence)) => {
            let controllers = Controllers {
                leases: &leases,
                pods: &pods,
                fence: &fence,
                is_hosted: fence::is_hosted(server).await,
            };
            judge(&controllers, now)
        }
        Err(error) => Check::unread(NAME, &error),
    }
}

/// The facts about the controllers.
struct Controllers<'a> {
    leases: &'a [Lease],
    pods: &'a [Value],
    fence: &'a Fence,
    /// True if a provider fixes the flags of the built-in controller.
    is_hosted: bool,
}

/// Reads the leases of both controllers, and the pods of the built-in one.
async fn read(server: &Server) -> anyhow::Result<(Vec<Lease>, Vec<Value>)> {
    let shipped = |text: &str| {
        let lease: Lease = decode(text)?;
        Ok((lease.metadata.name == SHIPPED).then_some(lease))
    };
    let mut leases = server.list(&LEASES, None, shipped).await?;
    let built_in = server.get(&LEASES, Some(SYSTEM), BUILT_IN).await?;
    leases.extend(built_in.map(|text| decode::<Lease>(&text)).transpose()?);
    let keep = |text: &str| {
        let pod: Value = decode(text)?;
        let component = pod.pointer("/metadata/labels/component");
        Ok((component.and_then(Value::as_str) == Some(BUILT_IN)).then_some(pod))
    };
    let pods = server.list(&PODS, Some(SYSTEM), keep).await?;
    Ok((leases, pods))
}

/// The holder of this controller's lease, if it works, and the feature gates in the flags of the
/// built-in one.
pub(super) async fn at_work(
    server: &Server,
    now: Timestamp,
) -> anyhow::Result<(Option<String>, Vec<(String, bool)>)> {
    let (leases, pods) = read(server).await?;
    let mut shipped = leases.iter().filter(|lease| lease.metadata.name == SHIPPED);
    let holder = shipped.find_map(|lease| lease.holder(now));
    let words = pods.iter().flat_map(command);
    let lists = words.filter_map(|word| word.strip_prefix("--feature-gates="));
    let gates = lists.flat_map(|list| list.split(',')).filter_map(|entry| {
        let (name, value) = entry.split_once('=')?;
        Some((name.to_owned(), value.trim().parse().ok()?))
    });
    Ok((holder.map(str::to_owned), gates.collect()))
}

/// The state of the built-in controller, as far as its flags show it.
#[derive(Debug, PartialEq, Eq)]
enum BuiltIn {
    Enabled,
    Disabled,
    /// No pod shows its flags: the control plane is hosted, or runs outside pods.
    Hidden,
}

fn judge(controllers: &Controllers<'_>, now: Timestamp) -> Check {
    let Controllers { leases, pods, .. } = controllers;
    let holder = |name: &str| {
        let mut leases = leases.iter().filter(|lease| lease.metadata.name == name);
        leases.find_map(|lease| lease.holder(now))
    };
    let commands: Vec<Vec<&str>> = pods.iter().map(command).collect();
    let (verdict, text) = verdict(controllers, &state(&commands), holder(SHIPPED));
    let leads = holder(BUILT_IN).map(|holder| format!("{BUILT_IN} is led by {holder}"));
    let mut copied: Vec<String> = commands.iter().flatten().filter_map(copied).collect();
    copied.sort();
    copied.dedup();
    let copied = copied
        .into_iter()
        .map(|flag| format!("also set {flag} on this controller"));
    Check::new(NAME, verdict, text).with(leads.into_iter().chain(copied))
}

/// Judges who is at work; `ours` is the holder of this controller's lease.
fn verdict(
    controllers: &Controllers<'_>,
    built_in: &BuiltIn,
    ours: Option<&str>,
) -> (Verdict, String) {
    let disable = format!("--controllers=*,{DISABLED}");
    let install = "kubectl sts fence install";
    match (built_in, controllers.fence, ours) {
        (BuiltIn::Disabled, _, Some(holder)) => (
            Verdict::Ok,
            format!("this controller leads ({holder}), the built-in one is disabled"),
        ),
        (BuiltIn::Disabled, _, None) => (
            Verdict::Ok,
            "the built-in controller is disabled; no controller serves the sets until this one \
             starts"
                .to_owned(),
        ),
        (_, Fence::Stands(selector), _) => (
            Verdict::Ok,
            format!(
                "the fence gives each namespace one controller: this one those with the label \
                 {selector}, the built-in one all others"
            ),
        ),
        (_, Fence::Differs(gap), _) => (
            Verdict::Todo,
            format!("the fence does not stand: {gap}; repair it with: {install}"),
        ),
        (BuiltIn::Enabled, Fence::Absent, Some(holder)) => (
            Verdict::Stop,
            format!(
                "two controllers are at work: this one leads ({holder}), and the built-in one is \
                 enabled; start every {BUILT_IN} with {disable}"
            ),
        ),
        (BuiltIn::Enabled, Fence::Absent, None) => (
            Verdict::Todo,
            format!("the built-in controller is enabled: start every {BUILT_IN} with {disable}"),
        ),
        (BuiltIn::Hidden, Fence::Absent, _) if controllers.is_hosted => (
            Verdict::Todo,
            format!(
                "a provider fixes the flags of {BUILT_IN}: fence its StatefulSet controller off \
                 with: {install}"
            ),
        ),
        (BuiltIn::Hidden, Fence::Absent, _) => (
            Verdict::Todo,
            format!(
                "no pod shows the flags of {BUILT_IN}: make sure that every instance runs with \
                 {disable}, or, if its flags are fixed, install the fence with: {install}"
            ),
        ),
    }
}

/// The command line of a pod's containers.
fn command(pod: &Value) -> Vec<&str> {
    let containers = pod.pointer("/spec/containers").and_then(Value::as_array);
    let containers = containers.into_iter().flatten();
    let words = containers.flat_map(|container| {
        let lists = [container.get("command"), container.get("args")];
        lists.into_iter().flatten().filter_map(Value::as_array)
    });
    words.flatten().filter_map(Value::as_str).collect()
}

fn state(commands: &[Vec<&str>]) -> BuiltIn {
    let is_disabled = |command: &Vec<&str>| {
        let mut lists = command
            .iter()
            .filter_map(|word| word.strip_prefix("--controllers="));
        lists.any(|list| list.split(',').any(|name| name == DISABLED))
    };
    if commands.is_empty() {
        BuiltIn::Hidden
    } else if commands.iter().all(is_disabled) {
        BuiltIn::Disabled
    } else {
        BuiltIn::Enabled
    }
}

/// The flag, if it has a counterpart here.
fn copied(word: &&str) -> Option<String> {
    let name = word.split('=').next()?;
    COPIED.contains(&name).then(|| (*word).to_owned())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const NOW: &str = "2026-03-01T12:00:00Z";

    fn lease(name: &str, renewed: &str) -> Lease {
        let lease = json!({
            "metadata": {"name": name},
            "spec": {"holderIdentity": "it", "renewTime": renewed, "leaseDurationSeconds": 15},
        });
        serde_json::from_value(lease).unwrap()
    }

    fn pod(flags: &[&str]) -> Value {
        json!({"spec": {"containers": [{"command": [BUILT_IN], "args": flags}]}})
    }

    fn judged(leases: &[Lease], pods: &[Value]) -> Check {
        judged_with(leases, pods, &Fence::Absent, false)
    }

    fn judged_with(leases: &[Lease], pods: &[Value], fence: &Fence, is_hosted: bool) -> Check {
        let controllers = Controllers {
            leases,
            pods,
            fence,
            is_hosted,
        };
        judge(&controllers, NOW.parse().unwrap())
    }

    #[test]
    fn two_running_controllers_block_the_switch() {
        let (enabled, disabled) = (
            pod(&["--kube-api-qps=40", "--leader-elect=true"]),
            pod(&["--controllers=*,bootstrapsigner,-statefulset-controller"]),
        );
        let held = lease(SHIPPED, "2026-03-01T11:59:50.000000Z");
        let expired = lease(SHIPPED, "2026-03-01T11:59:40.000000Z");
        let pods = [enabled.clone(), disabled.clone()];
        assert_eq!(
            judged(std::slice::from_ref(&held), &pods).verdict,
            Verdict::Stop
        );
        let open = judged(&[expired], &pods);
        assert_eq!(open.verdict, Verdict::Todo);
        assert_eq!(
            open.details,
            ["also set --kube-api-qps=40 on this controller"]
        );
        let done = judged(&[held], std::slice::from_ref(&disabled));
        assert!(
            done.text.starts_with("this controller leads (it)"),
            "{}",
            done.text
        );
        assert!(done.is_passed());
        assert!(judged(&[], &[disabled]).is_passed());
    }

    #[test]
    fn hidden_flags_are_left_to_the_user() {
        let leads = lease(BUILT_IN, "2026-03-01T11:59:50.000000Z");
        let check = judged(&[leads], &[]);
        assert_eq!(check.verdict, Verdict::Todo);
        assert_eq!(check.details, ["kube-controller-manager is led by it"]);
    }

    #[test]
    fn fence_is_the_way_where_flags_are_fixed() {
        let unknown = judged(&[], &[]).text;
        assert!(unknown.contains("-statefulset-controller, or, if"));
        let hosted = judged_with(&[], &[], &Fence::Absent, true);
        assert_eq!(hosted.verdict, Verdict::Todo);
        assert!(hosted.text.ends_with("with: kubectl sts fence install"));
        let enabled = [pod(&["--leader-elect=true"])];
        let shown = judged_with(&[], &enabled, &Fence::Absent, true);
        assert!(shown.text.contains("start every kube-controller-manager"));
    }

    #[test]
    fn standing_fence_allows_two_controllers() {
        let enabled = [pod(&["--leader-elect=true"])];
        let held = [lease(SHIPPED, "2026-03-01T11:59:50.000000Z")];
        let stands = Fence::Stands("a=b".to_owned());
        for pods in [&enabled[..], &[]] {
            assert!(judged_with(&held, pods, &stands, false).is_passed());
        }
        let differs = Fence::Differs("spec differs".to_owned());
        let open = judged_with(&held, &enabled, &differs, false);
        assert_eq!(open.verdict, Verdict::Todo);
        assert!(open.text.contains("spec differs; repair it"));
    }
}
