//! Changes of recorded cases, drawn by lot from a seed.

use serde_json::{Value, json};

/// Numbers by lot, the same for the same seed.
pub(super) struct Dice(u64);

impl Dice {
    pub(super) fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// A number below `bound`. Splitmix64: short, and good enough to choose by.
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

/// A change with its name.
type Mutation = (&'static str, fn(&mut Value, &mut Dice));

const MUTATIONS: [Mutation; 14] = [
    ("status", status),
    ("unknown in template", unknown_in_template),
    ("unknown in revision", unknown_in_revision),
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
    ("claim template", claim_template),
];

/// Makes one to four changes, and returns their names.
pub(super) fn mutate(case: &mut Value, dice: &mut Dice) -> Vec<&'static str> {
    let count = 1 + dice.below(4);
    let changes: Vec<&Mutation> = (0..count).map(|_| dice.pick(&MUTATIONS)).collect();
    for (_, change) in &changes {
        change(case, dice);
    }
    strike_all(case);
    changes.iter().map(|(name, _)| *name).collect()
}

/// Where calls run concurrently, and among adoptions and releases, it is open which come first: none
/// of them goes free.
fn strike_all(case: &mut Value) {
    let is_parallel = set(case)["spec"]["podManagementPolicy"] == "Parallel";
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

/// One object of a kind.
fn one<'a>(case: &'a mut Value, kind: &str, dice: &mut Dice) -> Option<&'a mut Value> {
    let objects = case["objects"].as_array_mut().unwrap();
    let mut of_kind: Vec<&mut Value> = objects
        .iter_mut()
        .filter(|object| object["kind"] == kind)
        .collect();
    let count = of_kind.len();
    (count > 0).then(|| of_kind.swap_remove(dice.below(count)))
}

fn status(case: &mut Value, dice: &mut Dice) {
    let status = &mut set(case)["status"];
    match dice.below(3) {
        0 => status["conditions"] = json!([{"type": "Known", "status": "True", "reason": "x"}]),
        1 => status["futureMember"] = json!({"a": [1, "<"]}),
        _ => status["currentReplicas"] = json!(dice.below(5)),
    }
}

/// Puts a member that no version knows into a template.
fn add_unknown(template: &mut Value, dice: &mut Dice) {
    let value = json!(*dice.pick(&["x", "y"]));
    match dice.below(4) {
        0 => template["spec"]["containers"][0]["futureMember"] = value,
        1 => template["spec"]["futureMember"] = json!({"inner": value}),
        2 => template["spec"]["securityContext"]["futureMember"] = value,
        _ => template["futureMember"] = value,
    }
}

fn unknown_in_template(case: &mut Value, dice: &mut Dice) {
    add_unknown(&mut set(case)["spec"]["template"], dice);
}

fn unknown_in_revision(case: &mut Value, dice: &mut Dice) {
    if let Some(revision) = one(case, "ControllerRevision", dice) {
        add_unknown(&mut revision["data"]["spec"]["template"], dice);
    }
}

fn live_set(case: &mut Value, dice: &mut Dice) {
    let mut live = set(case).clone();
    match dice.below(4) {
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

fn fault(case: &mut Value, dice: &mut Dice) {
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
    let (verb, resource, subresource) = *dice.pick(&CALLS);
    // A name that is always taken would be probed for without end.
    let times = if (verb, resource) == ("create", "controllerrevisions") {
        2
    } else {
        100
    };
    let fault = json!({
        "verb": verb,
        "resource": resource,
        "subresource": subresource,
        "times": *dice.pick(&[1, 2, 3, times]),
        "error": *dice.pick(&ERRORS),
    });
    match case["faults"].as_array_mut() {
        Some(faults) => faults.push(fault),
        None => case["faults"] = json!([fault]),
    }
}

fn retention(case: &mut Value, dice: &mut Dice) {
    let policies = ["Retain", "Delete", "Delete"];
    let (deleted, scaled) = (*dice.pick(&policies), *dice.pick(&policies));
    set(case)["spec"]["persistentVolumeClaimRetentionPolicy"] =
        json!({"whenDeleted": deleted, "whenScaled": scaled});
}

fn claim_owner(case: &mut Value, dice: &mut Dice) {
    let set_name = set(case)["metadata"]["name"].clone();
    let Some(pod) = one(case, "Pod", dice).map(|pod| pod["metadata"].clone()) else {
        return;
    };
    let pod_uid = pod["uid"].clone();
    let pod_name = json!(format!("{}-{}", set_name.as_str().unwrap(), dice.below(5)));
    let Some(claim) = one(case, "PersistentVolumeClaim", dice) else {
        return;
    };
    let mut owner = match dice.below(3) {
        0 => json!({"apiVersion": "v1", "kind": "Pod", "name": pod["name"], "uid": pod_uid}),
        1 => json!({"apiVersion": "v1", "kind": "Pod", "name": pod_name, "uid": "earlier"}),
        _ => json!({"apiVersion": "apps/v1", "kind": "StatefulSet", "name": set_name,
            "uid": *dice.pick(&["set-uid", "earlier"])}),
    };
    if dice.below(2) == 0 {
        owner["controller"] = json!(true);
    }
    claim["metadata"]["ownerReferences"] = json!([owner]);
}

fn pod_name(case: &mut Value, dice: &mut Dice) {
    let set_name = set(case)["metadata"]["name"].as_str().unwrap().to_owned();
    let ordinal = *dice.pick(&["00", "01", "003", "2147483648", "9"]);
    let name = format!("{set_name}-{ordinal}");
    let is_taken = |object: &Value| object["metadata"]["name"] == name.as_str();
    if case["objects"].as_array().unwrap().iter().any(is_taken) {
        return;
    }
    if let Some(pod) = one(case, "Pod", dice) {
        pod["metadata"]["name"] = json!(name);
    }
}

fn pod_state(case: &mut Value, dice: &mut Dice) {
    let Some(pod) = one(case, "Pod", dice) else {
        return;
    };
    match dice.below(4) {
        0 => pod["metadata"]["deletionTimestamp"] = json!("2026-03-01T11:59:00Z"),
        1 => pod["status"]["phase"] = json!(*dice.pick(&["Pending", "Failed", "Running"])),
        2 => {
            pod["metadata"]["labels"]["statefulset.kubernetes.io/pod-name"] = json!("other");
        }
        _ => pod["metadata"]["labels"]["controller-revision-hash"] = json!("other"),
    }
}

fn scale(case: &mut Value, dice: &mut Dice) {
    let spec = &mut set(case)["spec"];
    match dice.below(4) {
        0 => spec["ordinals"] = json!({"start": dice.below(4)}),
        1 => spec["minReadySeconds"] = json!(dice.below(100)),
        2 => spec["revisionHistoryLimit"] = json!(*dice.pick(&[-1, 0, 1])),
        _ => spec["replicas"] = json!(dice.below(6)),
    }
}

fn strategy(case: &mut Value, dice: &mut Dice) {
    let choices = [
        json!({"type": "OnDelete"}),
        json!({"type": "RollingUpdate"}),
        json!({"type": "RollingUpdate", "rollingUpdate": {"partition": 1}}),
        json!({"type": "RollingUpdate", "rollingUpdate": {"partition": 0, "maxUnavailable": "x"}}),
        json!({"type": "RollingUpdate", "rollingUpdate": {"partition": 0, "maxUnavailable": 9}}),
        json!({"type": "OnDelete", "rollingUpdate": {"partition": 2}}),
    ];
    let strategy = dice.pick(&choices).clone();
    let policy = *dice.pick(&["OrderedReady", "Parallel"]);
    let spec = &mut set(case)["spec"];
    spec["updateStrategy"] = strategy;
    spec["podManagementPolicy"] = json!(policy);
    case["featureGates"]["MaxUnavailableStatefulSet"] = json!(dice.below(2) == 0);
}

fn template(case: &mut Value, dice: &mut Dice) {
    let spec = &mut set(case)["spec"]["template"]["spec"];
    match dice.below(3) {
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

fn claim_template(case: &mut Value, dice: &mut Dice) {
    let mut template = json!({
        "metadata": {"name": "extra"},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
        "status": {},
    });
    if dice.below(2) == 0 {
        template["spec"]["futureMember"] = json!("x");
    }
    match set(case)["spec"]["volumeClaimTemplates"].as_array_mut() {
        Some(templates) => templates.push(template),
        None => set(case)["spec"]["volumeClaimTemplates"] = json!([template]),
    }
}
