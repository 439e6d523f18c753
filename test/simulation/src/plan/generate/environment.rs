//! The environment of a run, and its sets.

use std::collections::BTreeMap;

use rand::RngExt as _;
use rand::rngs::StdRng;
use rand::seq::IndexedRandom as _;

use crate::plan::{
    ClaimRetention, LeaseTimes, MaxUnavailable, Millis, Retain, SetSpec, Settings, Span, UpdateMode,
};

/// Names of sets.
const NAMES: [&str; 3] = ["web", "db", "kv"];

/// Times of leases in seconds: its length, its holder's deadline, its retry period.
const LEASES: [(u64, u64, u64); 8] = [
    (15, 10, 2),
    (15, 10, 6),
    (15, 10, 6),
    (30, 20, 12),
    (30, 20, 12),
    (60, 40, 24),
    (60, 40, 24),
    (60, 40, 24),
];

/// Minor versions that an instance may emulate alongside another one.
const VERSIONS: [u32; 4] = [33, 34, 35, 36];

/// The version whose updates complete under every strategy: no run mixes it with others.
const NEWEST: u32 = 37;

pub(super) fn settings(random: &mut StdRng) -> Settings {
    // Most of the requests of a quiet time are renewals, so few seeds have upstream's short period.
    let lease = *LEASES.choose(random).unwrap_or(&LEASES[0]);
    let lag = *[0, 20, 200, 2_000, 30_000].choose(random).unwrap_or(&20);
    let slow = *[1, 1, 10].choose(random).unwrap_or(&1);
    let instances = random.random_range(1..=3);
    Settings {
        instances,
        workers: random.random_range(1..=8),
        lease: LeaseTimes {
            lease: lease.0,
            renew: lease.1,
            retry: lease.2,
        },
        resync: random.random_bool(0.3).then_some(300),
        latency: Span(0, *[2, 20, 500].choose(random).unwrap_or(&2)),
        lag: Span(0, lag),
        bookmarks: *[5, 60, 60].choose(random).unwrap_or(&60),
        max_unavailable: random.random_bool(0.5),
        consistency: random.random_bool(0.95),
        versions: versions(instances, random),
        pages: random
            .random_bool(0.3)
            .then(|| *[1, 2, 5, 500].choose(random).unwrap_or(&500)),
        pod_start: Span(0, 2_000 * slow),
        pod_ready: Span(0, 5_000 * slow),
        pod_stop: Span(0, 3_000 * slow),
        collector_delay: Millis(*[0, 1_000, 30_000].choose(random).unwrap_or(&1_000)),
        qps: *[0, 0, 20].choose(random).unwrap_or(&0),
        restart: Span(0, 10_000),
        fence: None,
        opt_ins: None,
    }
}

/// Draws the versions of the instances: mostly upstream's, else a mixed or the newest one.
fn versions(instances: usize, random: &mut StdRng) -> Vec<u32> {
    match random.random_range(0..10) {
        0..6 => Vec::new(),
        6 => vec![NEWEST],
        _ => {
            let drawn = (0..instances).map(|_| *VERSIONS.choose(random).unwrap_or(&36));
            drawn.collect()
        }
    }
}

pub(super) fn sets(random: &mut StdRng) -> Vec<SetSpec> {
    let count = random.random_range(1..=NAMES.len());
    let names = NAMES.iter().take(count);
    names.map(|name| set(name, random)).collect()
}

pub(super) fn set(name: &str, random: &mut StdRng) -> SetSpec {
    let on_delete = random.random_bool(0.15);
    let replicas = random.random_range(0..=5);
    SetSpec {
        name: name.to_owned(),
        image: "a".to_owned(),
        replicas,
        parallel: random.random_bool(0.5),
        update: if on_delete {
            UpdateMode::OnDelete
        } else {
            UpdateMode::RollingUpdate
        },
        partition: random.random_bool(0.3).then(|| random.random_range(0..=4)),
        max_unavailable: random.random_bool(0.5).then(|| max_unavailable(random)),
        min_ready_seconds: *[0, 0, 5, 30].choose(random).unwrap_or(&0),
        claims: random.random_range(0..=2),
        class: None,
        retention: retention(random),
        start: *[0, 0, 0, 2].choose(random).unwrap_or(&0),
        history: Some(random.random_range(0..=3)),
        grace: *[1, 10, 30].choose(random).unwrap_or(&10),
        annotations: BTreeMap::new(),
    }
}

pub(super) fn max_unavailable(random: &mut StdRng) -> MaxUnavailable {
    if random.random_bool(0.5) {
        MaxUnavailable::Pods(random.random_range(1..=3))
    } else {
        MaxUnavailable::Percent(format!("{}%", random.random_range(10..=70)))
    }
}

pub(super) fn retention(random: &mut StdRng) -> ClaimRetention {
    let mut retain = || {
        if random.random_bool(0.5) {
            Retain::Retain
        } else {
            Retain::Delete
        }
    };
    ClaimRetention {
        when_deleted: retain(),
        when_scaled: retain(),
    }
}
