//! Requested and allocatable resources.

use std::collections::BTreeMap;

use kube_apimachinery::quantity::Quantity;
use serde_json::Value;

use crate::members::list_at;

/// Amounts of resources by name: CPU in millicores, others in whole units.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Needs(BTreeMap<String, i64>);

impl Needs {
    /// Returns a pod's requests: the sum of all containers that run at the same time with their
    /// sidecars, or the largest init container with the sidecars before it, plus the overhead.
    ///
    /// Upstream: `PodRequests`.
    pub fn of(pod: &Value) -> Self {
        let requests = |container: &Value| Self::read(container.pointer("/resources/requests"));
        let mut sidecars = Self::default();
        let mut initial = Self::default();
        for container in list_at(pod, "/spec/initContainers") {
            let needs = requests(container);
            if container["restartPolicy"] == "Always" {
                sidecars.add(&needs);
                initial.raise_to(&sidecars);
            } else {
                let mut together = sidecars.clone();
                together.add(&needs);
                initial.raise_to(&together);
            }
        }
        let mut sum = sidecars;
        for container in list_at(pod, "/spec/containers") {
            sum.add(&requests(container));
        }
        sum.raise_to(&initial);
        // Requests at the pod level take precedence.
        sum.0
            .extend(Self::read(pod.pointer("/spec/resources/requests")).0);
        sum.add(&Self::read(pod.pointer("/spec/overhead")));
        sum
    }

    /// Parses quantities by name.
    pub fn read(amounts: Option<&Value>) -> Self {
        let amounts = amounts.and_then(Value::as_object).into_iter().flatten();
        let read = amounts.filter_map(|(name, amount)| {
            let amount: Quantity = amount.as_str()?.parse().ok()?;
            let amount = if name == "cpu" {
                amount.milli_value()
            } else {
                amount.value()
            };
            Some((name.clone(), amount))
        });
        Self(read.collect())
    }

    /// Returns the amount of a resource.
    pub fn get(&self, name: &str) -> i64 {
        self.0.get(name).copied().unwrap_or(0)
    }

    /// Returns the resources whose free amount, after `used`, is too small.
    pub fn lacking<'a>(&'a self, room: &'a Self, used: &'a Self) -> impl Iterator<Item = &'a str> {
        self.0.iter().filter_map(|(name, amount)| {
            let lacks = used.get(name).saturating_add(*amount) > room.get(name);
            (*amount > 0 && lacks).then_some(name.as_str())
        })
    }

    /// Adds amounts.
    pub fn add(&mut self, other: &Self) {
        for (name, amount) in &other.0 {
            let sum = self.0.entry(name.clone()).or_default();
            *sum = sum.saturating_add(*amount);
        }
    }

    /// Subtracts amounts.
    pub fn subtract(&mut self, other: &Self) {
        for (name, amount) in &other.0 {
            let sum = self.0.entry(name.clone()).or_default();
            *sum = sum.saturating_sub(*amount);
        }
    }

    fn raise_to(&mut self, other: &Self) {
        for (name, amount) in &other.0 {
            let most = self.0.entry(name.clone()).or_default();
            *most = (*most).max(*amount);
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn sidecar_requests_add_up_and_init_requests_do_not() {
        let container = |cpu: &str| json!({"resources": {"requests": {"cpu": cpu}}});
        let sidecar = |cpu: &str| {
            let mut sidecar = container(cpu);
            sidecar["restartPolicy"] = json!("Always");
            sidecar
        };
        for (init, main, expected) in [
            (
                vec![container("3"), container("2")],
                vec![container("1")],
                3_000,
            ),
            (
                vec![sidecar("3"), container("2")],
                vec![container("1")],
                5_000,
            ),
            (
                vec![container("2"), sidecar("3")],
                vec![container("1")],
                4_000,
            ),
            (
                vec![sidecar("1"), sidecar("1")],
                vec![container("1"), container("2")],
                5_000,
            ),
        ] {
            let pod = json!({"spec": {"initContainers": init, "containers": main}});
            assert_eq!(Needs::of(&pod).get("cpu"), expected, "{pod}");
        }
        let mut pod = json!({"spec": {"containers": [container("1")]}});
        pod["spec"]["overhead"] = json!({"cpu": "250m", "memory": "1Mi"});
        pod["spec"]["resources"] = json!({"requests": {"cpu": "4"}});
        assert_eq!(Needs::of(&pod).get("cpu"), 4_250);
        assert_eq!(Needs::of(&pod).get("memory"), 1 << 20);
    }

    #[test]
    fn extended_resources_count_without_overflow() {
        let read = |amounts: Value| Needs::read(Some(&amounts));
        let room = read(json!({"cpu": "1", "memory": "9Ei"}));
        let mut used = read(json!({"memory": "5Ei"}));
        let needs = read(json!({"cpu": "1", "memory": "5Ei", "example.com/gpu": "1", "a": "0"}));
        let lacking: Vec<&str> = needs.lacking(&room, &used).collect();
        assert_eq!(lacking, ["example.com/gpu"]);
        used.add(&needs);
        used.add(&needs);
        used.subtract(&needs);
        assert!(used.get("memory") > 0);
    }
}
