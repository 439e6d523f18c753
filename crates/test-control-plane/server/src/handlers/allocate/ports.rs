//! Node ports of services.

use std::collections::{BTreeMap, BTreeSet};

use kube_test_control_plane_api::members::{list, text};
use kube_test_control_plane_api::object::Key;
use kube_test_control_plane_api::status::FieldError;
use serde_json::{Value, json};

use super::refusal::Refusal;
use crate::state::{Allocations, Reads};

/// The range of node ports.
const NODE_PORTS: std::ops::RangeInclusive<i64> = 30_000..=32_767;

/// The first port that a dry run shows.
const DRY_RUN_PORT: i64 = 32_769;

/// The allocations of one write.
struct Operation<'a> {
    reads: &'a Reads,
    allocations: &'a mut Allocations,
    key: &'a Key,
    is_dry_run: bool,
    allocated: BTreeSet<i64>,
}

/// Allocates the node ports of a service, and the port of its health check.
pub(super) fn allocate(
    reads: &Reads,
    allocations: &mut Allocations,
    key: &Key,
    (spec, old): (&mut Value, Option<&Value>),
    is_dry_run: bool,
) -> Result<(), Refusal> {
    let mut operation = Operation {
        reads,
        allocations,
        key,
        is_dry_run,
        allocated: BTreeSet::new(),
    };
    if matches!(text(spec, "type"), "NodePort" | "LoadBalancer") {
        match old {
            None => operation.add_ports(spec)?,
            Some(old) => operation.update_ports(spec, old)?,
        }
    }
    if has_health_check(spec) && !old.is_some_and(has_health_check) {
        operation.add_health_check(spec)?;
    }
    Ok(())
}

impl Operation<'_> {
    /// Allocates the ports of a new service. Several protocols of one port share a number.
    ///
    /// Upstream: `initNodePorts`
    fn add_ports(&mut self, spec: &mut Value) -> Result<(), Refusal> {
        let opens_all = opens_all_ports(spec);
        let requested: Vec<(i64, i64)> = ports(spec).collect();
        let mut by_port: BTreeMap<i64, i64> = BTreeMap::new();
        for (i, &(port, wanted)) in requested.iter().enumerate() {
            if wanted == 0 && !opens_all {
                continue;
            }
            let number = if let Some(shared) = by_port.get(&port) {
                if wanted != 0 && wanted != *shared {
                    self.claim(i, wanted)?;
                    wanted
                } else {
                    *shared
                }
            } else {
                let same = requested.iter().filter(|(other, _)| *other == port);
                let number = match same.map(|(_, wanted)| *wanted).find(|wanted| *wanted != 0) {
                    Some(wanted) => {
                        self.claim(i, wanted)?;
                        wanted
                    }
                    None => self.next_port()?,
                };
                by_port.insert(port, number);
                number
            };
            spec["ports"][i]["nodePort"] = json!(number);
        }
        Ok(())
    }

    /// Allocates the ports that an update adds.
    ///
    /// Upstream: `updateNodePorts`
    fn update_ports(&mut self, spec: &mut Value, old: &Value) -> Result<(), Refusal> {
        let opens_all = opens_all_ports(spec);
        let mut held: BTreeSet<i64> = ports(old).map(|(_, number)| number).collect();
        let mut seen: BTreeSet<(String, i64)> = BTreeSet::new();
        let requested: Vec<(i64, i64)> = ports(spec).collect();
        for (i, (_, wanted)) in requested.into_iter().enumerate() {
            if wanted == 0 && !opens_all {
                continue;
            }
            let number = if wanted == 0 {
                self.next_port()?
            } else {
                if held.insert(wanted) {
                    self.claim(i, wanted)?;
                }
                wanted
            };
            let port = &mut spec["ports"][i];
            port["nodePort"] = json!(number);
            let protocol = text(port, "protocol").to_owned();
            if !seen.insert((protocol.clone(), number)) {
                let why = format!("duplicate nodePort: {{{protocol} {number}}}");
                return Err(Refusal::Plain(why));
            }
        }
        Ok(())
    }

    /// Upstream: `allocHealthCheckNodePort`
    fn add_health_check(&mut self, spec: &mut Value) -> Result<(), Refusal> {
        let wanted = spec["healthCheckNodePort"].as_i64().unwrap_or_default();
        if wanted == 0 {
            let free = self.free_port().ok_or_else(|| {
                let what = "a HealthCheck NodePort 0: range is full";
                Refusal::Internal(format!("failed to allocate {what}"))
            })?;
            spec["healthCheckNodePort"] = json!(free);
            return Ok(());
        }
        self.take(wanted).map_err(|why| {
            let what = format!("requested HealthCheck NodePort {wanted}: {why}");
            Refusal::Internal(format!("failed to allocate {what}"))
        })
    }

    /// Allocates the number that the `i`th port requests.
    fn claim(&mut self, i: usize, wanted: i64) -> Result<(), Refusal> {
        self.take(wanted).map_err(|why| {
            let field = format!("spec.ports[{i}].nodePort");
            Refusal::Field(FieldError::invalid(field, &json!(wanted), &why))
        })
    }

    fn next_port(&mut self) -> Result<i64, Refusal> {
        let full = || Refusal::Internal("failed to allocate a nodePort: range is full".to_owned());
        self.free_port().ok_or_else(full)
    }

    /// Allocates this port, or returns the reason why it can't. Dry runs don't check the range.
    fn take(&mut self, port: i64) -> Result<(), String> {
        if !self.is_dry_run && !NODE_PORTS.contains(&port) {
            let (first, last) = (NODE_PORTS.start(), NODE_PORTS.end());
            return Err(format!(
                "provided port is not in the valid range. The range of valid ports is \
                 {first}-{last}"
            ));
        }
        let holder = self.allocations.ports.get(&port);
        let is_held = holder.filter(|it| *it != self.key).is_some_and(|it| {
            self.allocations.is_reserved(it) || ports_of(self.reads, it).contains(&port)
        });
        if is_held || !self.allocated.insert(port) {
            return Err("provided port is already allocated".to_owned());
        }
        if !self.is_dry_run {
            self.allocations.ports.insert(port, self.key.clone());
        }
        Ok(())
    }

    fn free_port(&mut self) -> Option<i64> {
        if self.is_dry_run {
            let last = self.allocated.last();
            let next = last.map_or(DRY_RUN_PORT, |last| last + 1);
            self.allocated.insert(next);
            return Some(next);
        }
        let mut held: BTreeMap<Key, BTreeSet<i64>> = BTreeMap::new();
        let size = NODE_PORTS.end() - NODE_PORTS.start() + 1;
        let own = ports_of(self.reads, self.key);
        for _ in 0..size {
            let port = NODE_PORTS.start() + self.allocations.next_port % size;
            self.allocations.next_port += 1;
            if own.contains(&port) || self.allocated.contains(&port) {
                continue;
            }
            if let Some(holder) = self
                .allocations
                .ports
                .get(&port)
                .filter(|it| *it != self.key)
            {
                let held = held.entry(holder.clone());
                let held = held.or_insert_with(|| ports_of(self.reads, holder));
                if held.contains(&port) || self.allocations.is_reserved(holder) {
                    continue;
                }
            }
            self.allocated.insert(port);
            self.allocations.ports.insert(port, self.key.clone());
            return Some(port);
        }
        None
    }
}

/// Returns true unless only requested ports are opened.
///
/// Upstream: `shouldAllocateNodePorts`
fn opens_all_ports(spec: &Value) -> bool {
    text(spec, "type") == "NodePort" || spec["allocateLoadBalancerNodePorts"] != json!(false)
}

/// Upstream: `NeedsHealthCheck`
fn has_health_check(spec: &Value) -> bool {
    text(spec, "type") == "LoadBalancer" && text(spec, "externalTrafficPolicy") == "Local"
}

/// Returns the number and the node port of each port; 0 for none.
fn ports(spec: &Value) -> impl Iterator<Item = (i64, i64)> {
    let number = |port: &Value, member: &str| port[member].as_i64().unwrap_or_default();
    list(spec, "ports").map(move |port| (number(port, "port"), number(port, "nodePort")))
}

/// Returns the node ports of a service; empty if it no longer exists.
fn ports_of(reads: &Reads, service: &Key) -> BTreeSet<i64> {
    let Some(service) = reads.store.get(service).map(|service| service.value()) else {
        return BTreeSet::new();
    };
    let spec = &service["spec"];
    let health_check = spec["healthCheckNodePort"].as_i64();
    let ports = ports(spec).map(|(_, number)| number);
    ports
        .chain(health_check)
        .filter(|port| *port != 0)
        .collect()
}
