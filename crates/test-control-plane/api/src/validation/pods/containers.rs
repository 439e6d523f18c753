//! Rules of containers.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::members::{list, text};
use crate::status::FieldError;
use crate::validation::engine::{Errors, Place};

/// The lists of containers in a pod, in the order of unique names.
const LISTS: [&str; 3] = ["containers", "initContainers", "ephemeralContainers"];

/// Returns the container of a list's element, such as a mount.
fn container<'a>(of: &Place<'a>) -> &'a Value {
    let holder = of.up().and_then(Place::up).and_then(Place::up);
    holder.map_or(&Value::Null, |container| container.value)
}

/// Rejects the name of an earlier container. An init container without a name repeats no other init container.
pub(in crate::validation) fn unique_container(name: &Place<'_>, errors: &mut Errors) {
    let Some(element) = name.up() else { return };
    let own = element.up().map_or(&Value::Null, |list| list.value);
    let earlier = LISTS
        .iter()
        .take_while(|list| {
            !name
                .pod_spec()
                .get(*list)
                .is_some_and(|list| std::ptr::eq(list, own))
        })
        .flat_map(|member| list(name.pod_spec(), member));
    let init = name.pod_spec().get(LISTS[1]);
    let is_init = init.is_some_and(|list| std::ptr::eq(list, own));
    let beside = match element.before() {
        _ if is_init && name.text().is_empty() => &[],
        before => before,
    };
    let mut all = earlier.chain(beside);
    if all.any(|container| text(container, "name") == name.text()) {
        errors.push(name.duplicate());
    }
}

/// Upstream: `AccumulateUniqueHostPorts`.
pub(in crate::validation) fn host_ports(containers: &Place<'_>, errors: &mut Errors) {
    let mut seen = Vec::new();
    for container in containers.elements() {
        of_container(&container.member("ports"), &mut seen, errors);
    }
}

/// Checks the ports of one container, whose errors don't tell its place in the list.
pub(in crate::validation) fn own_host_ports(container: &Place<'_>, errors: &mut Errors) {
    let Some(list) = container.up() else { return };
    let only = list.element(0, container.value);
    of_container(&only.member("ports"), &mut Vec::new(), errors);
}

fn of_container(ports: &Place<'_>, seen: &mut Vec<String>, errors: &mut Errors) {
    for port in ports.elements() {
        let number = port.member("hostPort");
        if number.number() == 0 {
            continue;
        }
        let [protocol, ip] = ["protocol", "hostIP"].map(|member| port.text_of(member));
        let used = format!("{protocol}/{ip}/{}", number.number());
        if seen.contains(&used) {
            errors.push(FieldError::duplicate(number.path(), &json!(used)));
        } else {
            seen.push(used);
        }
    }
}

/// Upstream: `validatePodHostNetworkDeps`.
pub(in crate::validation) fn same_host_port(port: &Place<'_>, errors: &mut Errors) {
    let is_pod = port.context.pod.is_some_and(|pod| pod.is_whole);
    let inner = port
        .up()
        .map(|holder| holder.member("containerPort").number());
    if (is_pod || port.number() != 0) && Some(port.number()) != inner {
        let detail = "must match `containerPort` when `hostNetwork` is true";
        errors.push(port.invalid_as(&json!(port.number()), detail));
    }
}

pub(in crate::validation) fn target_container(name: &Place<'_>, errors: &mut Errors) {
    let mut others = LISTS[..2]
        .iter()
        .flat_map(|member| list(name.pod_spec(), member));
    if !others.any(|container| text(container, "name") == name.text()) {
        errors.push(name.not_found());
    }
}

/// Returns the paths of mounts or devices by name. The last one of a name counts.
fn paths<'a>(of: &Place<'a>, member: &str, path: &str) -> BTreeMap<&'a str, &'a str> {
    let all = list(container(of), member);
    all.map(|item| (text(item, "name"), text(item, path)))
        .collect()
}

/// Defines a check that the other list of a container doesn't have a name or a path.
macro_rules! other {
    ($($hook:ident: $find:ident $member:literal $path:literal $detail:literal;)*) => {$(
        pub(in crate::validation) fn $hook(found: &Place<'_>, errors: &mut Errors) {
            let others = paths(found, $member, $path);
            if others.$find().any(|other| *other == found.text()) {
                found.invalid_for([$detail], errors);
            }
        }
    )*};
}

other! {
    other_mount_name: keys "volumeMounts" "mountPath"
        "must not already exist in volumeMounts";
    other_mount_path: values "volumeMounts" "mountPath"
        "must not already exist as a path in volumeMounts";
    other_device_name: keys "volumeDevices" "devicePath"
        "must not already exist in volumeDevices";
    other_device_path: values "volumeDevices" "devicePath"
        "must not already exist as a path in volumeDevices";
}

/// Rejects the path of an earlier device. Paths that lead up don't count.
pub(in crate::validation) fn repeated_device_path(path: &Place<'_>, errors: &mut Errors) {
    let before = path.up().map(Place::before).unwrap_or_default();
    let mut before = before.iter().map(|device| text(device, "devicePath"));
    let leads_up = path.text().split('/').any(|part| part == "..");
    if !leads_up && before.any(|other| other == path.text()) {
        path.invalid_for(["must be unique"], errors);
    }
}

/// Upstream: `validateSleepAction`.
pub(in crate::validation) fn sleep(action: &Place<'_>, errors: &mut Errors) {
    let period = action.pod_spec().get("terminationGracePeriodSeconds");
    let Some(period) = period.and_then(Value::as_i64) else {
        return;
    };
    let seconds = action.member("seconds").number();
    if !(0..=period).contains(&seconds) {
        let detail =
            format!("must be non-negative and less than terminationGracePeriodSeconds ({period})");
        errors.push(action.invalid_as(&json!(seconds), &detail));
    }
}
