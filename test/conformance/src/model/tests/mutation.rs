//! Random mutations of recorded cases, from a seed.

use serde_json::{Value, json};

/// Seeded random number generator.
pub(super) struct SeededRng(u64);

impl SeededRng {
    pub(super) fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// A number below `bound`, by splitmix64.
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        usize::try_from((mixed ^ (mixed >> 31)) % bound as u64).unwrap()
    }

    fn pick<'a, T>(&mut self, choices: &'a [T]) -> &'a T {
        &choices[self.below(choices.len())]
    }
}

/// A mutation with its name.
type Mutation = (&'static str, fn(&mut Value, &mut SeededRng));

const MUTATIONS: [Mutation; 17] = [
    ("status", status),
    ("unknown in template", unknown_in_template),
    ("unknown in revision", unknown_in_revision),
    ("newer in template", newer_in_template),
    ("newer in revision", newer_in_revision),
    ("live set", live_set),
    ("fault", fault),
    ("fault", fault),
    ("retention", retention),
    ("claim owner", claim_owner),
    ("pod name", pod_name),
    ("pod state", pod_state),
    ("scale", scale),
    ("strategy", strategy),
    ("template", template),
    ("recreate", recreate),
    ("claim template", claim_template),
];

/// Applies one to four mutations, and returns their names.
pub(super) fn mutate(case: &mut Value, rng: &mut SeededRng) -> Vec<&'static str> {
    let count = 1 + rng.below(4);
    let changes: Vec<&Mutation> = (0..count).map(|_| rng.pick(&MUTATIONS)).collect();
    for (_, change) in &changes {
        change(case, rng);
    }
    fail_all(case);
    changes.iter().map(|(name, _)| *name).collect()
}

/// Makes all concurrent calls, and all adoptions and releases, fail alike: the order among them is
/// undefined.
fn fail_all(case: &mut Value) {
    let spec = &set(case)["spec"];
    let is_parallel =
        spec["podManagementPolicy"] == "Parallel" || spec["updateStrategy"]["type"] == "Recreate";
    let faults = case.get_mut("faults").and_then(Value::as_array_mut);
    for fault in faults.into_iter().flatten() {
        let is_revision = fault["resource"] == "controllerrevisions";
        if fault["verb"] == "patch" || is_parallel && !is_revision {
            fault["times"] = json!(100);
        }
    }
}

fn set(case: &mut Value) -> &mut Value {
    &mut case["objects"][0]
}

/// A random object of a kind.
fn one<'a>(case: &'a mut Value, kind: &str, rng: &mut SeededRng) -> Option<&'a mut Value> {
    let objects = case["objects"].as_array_mut().unwrap();
    let mut of_kind: Vec<&mut Value> = objects
        .iter_mut()
        .filter(|object| object["kind"] == kind)
        .collect();
    let count = of_kind.len();
    (count > 0).then(|| of_kind.swap_remove(rng.below(count)))
}

fn status(case: &mut Value, rng: &mut SeededRng) {
    let status = &mut set(case)["status"];
    match rng.below(3) {
        0 => {
            let choices = [
                json!([{"type": "Known", "status": "True", "reason": "x"}]),
                json!([progressing(
                    "True",
                    "RecreateInProgress",
                    "Deleting old revision pods"
                )]),
                json!([
                    progressing("False", "RecreateCompleted", "All pods recreated successfully"),
                    {"type": "Known", "status": "True"},
                ]),
                json!([progressing("True", "Theirs", "")]),
            ];
            status["conditions"] = rng.pick(&choices).clone();
        }
        1 => status["futureMember"] = json!({"a": [1, "<"]}),
        _ => status["currentReplicas"] = json!(rng.below(5)),
    }
}

fn progressing(status: &str, reason: &str, message: &str) -> Value {
    json!({
        "type": "Progressing", "status": status, "lastTransitionTime": "2026-03-01T08:00:00Z",
        "reason": reason, "message": message,
    })
}

/// Adds a field unknown to every version to a template.
fn add_unknown(template: &mut Value, rng: &mut SeededRng) {
    let value = json!(*rng.pick(&["x", "y"]));
    match rng.below(4) {
        0 => template["spec"]["containers"][0]["futureMember"] = value,
        1 => template["spec"]["futureMember"] = json!({"inner": value}),
        2 => template["spec"]["securityContext"]["futureMember"] = value,
        _ => template["futureMember"] = value,
    }
}

fn unknown_in_template(case: &mut Value, rng: &mut SeededRng) {
    add_unknown(&mut set(case)["spec"]["template"], rng);
}

fn unknown_in_revision(case: &mut Value, rng: &mut SeededRng) {
    if let Some(revision) = one(case, "ControllerRevision", rng) {
        add_unknown(&mut revision["data"]["spec"]["template"], rng);
    }
}

/// Adds a field of 1.37 to a template.
fn add_newer(template: &mut Value, rng: &mut SeededRng) {
    let spec = &mut template["spec"];
    match rng.below(3) {
        0 => spec["evictionResponders"] = json!([{"name": "a.example/b", "priority": 1}]),
        1 => {
            let mode = *rng.pick(&[0o700, 0o755]);
            spec["volumes"] = json!([{"name": "data", "emptyDir": {"mode": mode}}]);
        }
        _ => {
            let mounts = json!([{"name": "x", "mountPath": "/x", "bindMountOptions": ["noexec"]}]);
            spec["containers"][0]["volumeMounts"] = mounts;
        }
    }
}

fn newer_in_template(case: &mut Value, rng: &mut SeededRng) {
    add_newer(&mut set(case)["spec"]["template"], rng);
}

fn newer_in_revision(case: &mut Value, rng: &mut SeededRng) {
    if let Some(revision) = one(case, "ControllerRevision", rng) {
        add_newer(&mut revision["data"]["spec"]["template"], rng);
    }
}

fn live_set(case: &mut Value, rng: &mut SeededRng) {
    let mut live = set(case).clone();
    match rng.below(4) {
        0 => live["metadata"]["uid"] = json!("another"),
        1 => live["metadata"]["generation"] = json!(77),
        2 => live["metadata"]["deletionTimestamp"] = json!("2026-03-01T11:00:00Z"),
        _ => {
            case["liveSetAbsent"] = json!(true);
            return;
        }
    }
    case["liveSet"] = live;
}

fn fault(case: &mut Value, rng: &mut SeededRng) {
    const CALLS: [(&str, &str, &str); 12] = [
        ("create", "pods", ""),
        ("delete", "pods", ""),
        ("update", "pods", ""),
        ("patch", "pods", ""),
        ("create", "persistentvolumeclaims", ""),
        ("update", "persistentvolumeclaims", ""),
        ("update", "statefulsets", "status"),
        ("get", "statefulsets", ""),
        ("create", "controllerrevisions", ""),
        ("delete", "controllerrevisions", ""),
        ("update", "controllerrevisions", ""),
        ("patch", "controllerrevisions", ""),
    ];
    const ERRORS: [&str; 7] = [
        "InternalError",
        "Conflict",
        "Forbidden",
        "Invalid",
        "Timeout",
        "AlreadyExists",
        "NotFound",
    ];
    let (verb, resource, subresource) = *rng.pick(&CALLS);
    // A name that is always taken would cause endless probing.
    let times = if (verb, resource) == ("create", "controllerrevisions") {
        2
    } else {
        100
    };
    let fault = json!({
        "verb": verb,
        "resource": resource,
        "subresource": subresource,
        "times": *rng.pick(&[1, 2, 3, times]),
        "error": *rng.pick(&ERRORS),
    });
    match case["faults"].as_array_mut() {
        Some(faults) => faults.push(fault),
        None => case["faults"] = json!([fault]),
    }
}

fn retention(case: &mut Value, rng: &mut SeededRng) {
    let policies = ["Retain", "Delete", "Delete"];
    let (deleted, scaled) = (*rng.pick(&policies), *rng.pick(&policies));
    set(case)["spec"]["persistentVolumeClaimRetentionPolicy"] =
        json!({"whenDeleted": deleted, "whenScaled": scaled});
}

fn claim_owner(case: &mut Value, rng: &mut SeededRng) {
    let set_name = set(case)["metadata"]["name"].clone();
    let Some(pod) = one(case, "Pod", rng).map(|pod| pod["metadata"].clone()) else {
        return;
    };
    let pod_uid = pod["uid"].clone();
    let pod_name = json!(format!("{}-{}", set_name.as_str().unwrap(), rng.below(5)));
    let Some(claim) = one(case, "PersistentVolumeClaim", rng) else {
        return;
    };
    let mut owner = match rng.below(3) {
        0 => json!({"apiVersion": "v1", "kind": "Pod", "name": pod["name"], "uid": pod_uid}),
        1 => json!({"apiVersion": "v1", "kind": "Pod", "name": pod_name, "uid": "earlier"}),
        _ => json!({"apiVersion": "apps/v1", "kind": "StatefulSet", "name": set_name,
            "uid": *rng.pick(&["set-uid", "earlier"])}),
    };
    if rng.below(2) == 0 {
        owner["controller"] = json!(true);
    }
    claim["metadata"]["ownerReferences"] = json!([owner]);
}

fn pod_name(case: &mut Value, rng: &mut SeededRng) {
    let set_name = set(case)["metadata"]["name"].as_str().unwrap().to_owned();
    let ordinal = *rng.pick(&["00", "01", "003", "2147483648", "9"]);
    let name = format!("{set_name}-{ordinal}");
    let is_taken = |object: &Value| object["metadata"]["name"] == name.as_str();
    if case["objects"].as_array().unwrap().iter().any(is_taken) {
        return;
    }
    if let Some(pod) = one(case, "Pod", rng) {
        pod["metadata"]["name"] = json!(name);
    }
}

fn pod_state(case: &mut Value, rng: &mut SeededRng) {
    let Some(pod) = one(case, "Pod", rng) else {
        return;
    };
    match rng.below(4) {
        0 => pod["metadata"]["deletionTimestamp"] = json!("2026-03-01T11:59:00Z"),
        1 => pod["status"]["phase"] = json!(*rng.pick(&["Pending", "Failed", "Running"])),
        2 => {
            pod["metadata"]["labels"]["statefulset.kubernetes.io/pod-name"] = json!("other");
        }
        _ => pod["metadata"]["labels"]["controller-revision-hash"] = json!("other"),
    }
}

fn scale(case: &mut Value, rng: &mut SeededRng) {
    let spec = &mut set(case)["spec"];
    match rng.below(4) {
        0 => spec["ordinals"] = json!({"start": rng.below(4)}),
        1 => spec["minReadySeconds"] = json!(rng.below(100)),
        2 => spec["revisionHistoryLimit"] = json!(*rng.pick(&[-1, 0, 1])),
        _ => spec["replicas"] = json!(rng.below(6)),
    }
}

fn strategy(case: &mut Value, rng: &mut SeededRng) {
    let choices = [
        json!({"type": "OnDelete"}),
        json!({"type": "RollingUpdate"}),
        json!({"type": "RollingUpdate", "rollingUpdate": {"partition": 1}}),
        json!({"type": "RollingUpdate", "rollingUpdate": {"partition": 0, "maxUnavailable": "x"}}),
        json!({"type": "RollingUpdate", "rollingUpdate": {"partition": 0, "maxUnavailable": 9}}),
        json!({"type": "OnDelete", "rollingUpdate": {"partition": 2}}),
    ];
    let strategy = rng.pick(&choices).clone();
    let policy = *rng.pick(&["OrderedReady", "Parallel"]);
    let spec = &mut set(case)["spec"];
    spec["updateStrategy"] = strategy;
    spec["podManagementPolicy"] = json!(policy);
    case["featureGates"]["MaxUnavailableStatefulSet"] = json!(rng.below(2) == 0);
}

/// Selects the strategy `Recreate`. Its gate and the preview need 1.37.
fn recreate(case: &mut Value, rng: &mut SeededRng) {
    let policy = *rng.pick(&["OrderedReady", "Parallel"]);
    let spec = &mut set(case)["spec"];
    spec["updateStrategy"] = json!({"type": "Recreate"});
    spec["podManagementPolicy"] = json!(policy);
    if case["emulatedVersion"] == "1.37" {
        let gates = &mut case["featureGates"];
        gates["StatefulSetRecreateStrategy"] = json!(rng.below(4) > 0);
        gates["PreviewParallelScaleDownFirst"] = json!(rng.below(2) == 0);
    }
}

fn template(case: &mut Value, rng: &mut SeededRng) {
    let spec = &mut set(case)["spec"]["template"]["spec"];
    match rng.below(3) {
        0 => spec["containers"][0]["image"] = json!("registry.example/app:<new>"),
        1 => spec["terminationGracePeriodSeconds"] = json!(9_007_199_254_740_993_i64),
        _ => {
            spec["volumes"] = json!([
                {"name": "data", "emptyDir": {}},
                {"name": "more", "hostPath": {"path": "/x", "type": ""}},
            ]);
        }
    }
}

fn claim_template(case: &mut Value, rng: &mut SeededRng) {
    let mut template = json!({
        "metadata": {"name": "extra"},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
        "status": {},
    });
    if rng.below(2) == 0 {
        template["spec"]["futureMember"] = json!("x");
    }
    match set(case)["spec"]["volumeClaimTemplates"].as_array_mut() {
        Some(templates) => templates.push(template),
        None => set(case)["spec"]["volumeClaimTemplates"] = json!([template]),
    }
}
