//! Validation of nodes, limit ranges, quotas and endpoints.

use crate::support::Plane;
use http::Method;
use kube_test_control_plane::TestControlPlane;
use serde_json::{Value, json};

const NODES: &str = "/api/v1/nodes";
const LIMITS: &str = "/api/v1/namespaces/default/limitranges";
const QUOTAS: &str = "/api/v1/namespaces/default/resourcequotas";
const ENDPOINTS: &str = "/api/v1/namespaces/default/endpoints";

async fn plane() -> Plane {
    Plane::new(TestControlPlane::builder().start().await)
}

fn named(members: &Value) -> Value {
    let mut object = members.clone();
    object["metadata"] = json!({"name": "x"});
    object
}

#[tokio::test(start_paused = true)]
async fn taints_are_validated_and_unique() {
    let plane = plane().await;
    let taints = json!({"spec": {"taints": [
        {"key": "a", "value": "b", "effect": "NoSchedule"},
        {"key": "a", "value": "c", "effect": "NoSchedule"},
        {"key": "a", "effect": "Sometimes"},
        {"key": "a b"},
        {"key": "d", "value": "e f", "effect": "NoExecute"},
    ]}});
    let found = plane.refused(Method::POST, NODES, &named(&taints)).await;
    let starts = [
        "metadata.taints[1]: Duplicate value: {\"Key\":\"a\",\"Value\":\"c\",\"Effect\":\
         \"NoSchedule\",\"TimeAdded\":null}: taints must be unique by key and effect pair",
        "metadata.taints[2].effect: Unsupported value: \"Sometimes\": supported values: \
         \"NoSchedule\", \"PreferNoSchedule\", \"NoExecute\"",
        "metadata.taints[3].key: Invalid value: \"a b\": name part must consist of",
        "metadata.taints[3].effect: Required value",
        "metadata.taints[4].value: Invalid value: \"e f\": a valid label must be",
    ];
    assert_eq!(found.len(), starts.len(), "{found:#?}");
    for (found, start) in found.iter().zip(starts) {
        assert!(found.starts_with(start), "{found}");
    }
    let fine = json!({"spec": {"taints": [{"key": "a", "effect": "NoExecute"}]}});
    plane.create(NODES, &named(&fine)).await;
    plane.stop().await;
}

#[tokio::test(start_paused = true)]
async fn limit_ranges_are_validated() {
    let plane = plane().await;
    let limits = json!({"spec": {"limits": [
        {
            "type": "Container",
            "min": {"cpu": "2"}, "max": {"cpu": "1"}, "default": {"cpu": "3"},
            "defaultRequest": {"cpu": "4"}, "maxLimitRequestRatio": {"cpu": "500m"},
        },
        {"type": "Container", "max": {"pods": "1", "thing": "1"}},
        {"type": "Pod", "default": {"cpu": "1"}},
        {"type": "PersistentVolumeClaim", "max": {"cpu": "1"}},
        {"type": "Thing"},
    ]}});
    let found = plane.refused(Method::POST, LIMITS, &named(&limits)).await;
    let cpu = |member: &str| format!("spec.limits[0].{member}[cpu]: Invalid value: ");
    let expected = [
        cpu("min") + "\"2\": min value 2 is greater than max value 1",
        cpu("defaultRequest") + "\"4\": default request value 4 is greater than max value 1",
        cpu("defaultRequest")
            + "\"4\": default request value 4 is greater than default limit value 3",
        cpu("default") + "\"1\": default value 3 is greater than max value 1",
        cpu("maxLimitRequestRatio") + "\"500m\": ratio 500m is less than 1",
        "spec.limits[1].type: Duplicate value: \"Container\"".to_owned(),
        "spec.limits[1].max[pods]: Invalid value: \"pods\": must be a standard resource for \
         containers"
            .to_owned(),
        "spec.limits[1].max[thing]: Invalid value: \"thing\": must be a standard resource type or \
         fully qualified"
            .to_owned(),
        "spec.limits[1].max[thing]: Invalid value: \"thing\": must be a standard resource for \
         containers"
            .to_owned(),
    ];
    for expected in &expected {
        assert!(found.contains(expected), "{expected}\n{found:#?}");
    }
    let rest = [
        "spec.limits[2].default: Forbidden: may not be specified when `type` is 'Pod'",
        "spec.limits[3].limits: Required value: either minimum or maximum storage value is \
         required, but neither was provided",
        "spec.limits[4].type: Invalid value: \"Thing\": must be a standard limit type or fully \
         qualified",
    ];
    assert_eq!(found[found.len() - 3..], rest);
    let fine = json!({"spec": {"limits": [{
        "type": "Container", "min": {"cpu": "100m"}, "max": {"cpu": "2", "memory": "1Gi"},
        "default": {"cpu": "1"}, "defaultRequest": {"cpu": "500m"},
        "maxLimitRequestRatio": {"cpu": "10"},
    }]}});
    plane.create(LIMITS, &named(&fine)).await;
    plane.stop().await;
}

#[tokio::test(start_paused = true)]
async fn quotas_accept_only_countable_resources() {
    let plane = plane().await;
    let quota = json!({"spec": {
        "hard": {"pods": "1500m", "cpu": "-1", "thing": "1", "count/jobs.batch": "3"},
        "scopes": ["BestEffort", "NotBestEffort", "Odd"],
    }});
    let found = plane.refused(Method::POST, QUOTAS, &named(&quota)).await;
    let scopes = |why: &str| {
        let list = "[\"BestEffort\",\"NotBestEffort\",\"Odd\"]";
        format!("spec.scopes: Invalid value: {list}: {why}")
    };
    for expected in [
        "spec.hard[pods]: Invalid value: \"1500m\": must be an integer".to_owned(),
        "spec.hard[cpu]: Invalid value: \"-1\": must be greater than or equal to 0".to_owned(),
        "spec.hard[thing]: Invalid value: \"thing\": must be a standard resource for quota"
            .to_owned(),
        scopes("unsupported scope"),
        scopes("unsupported scope applied to resource"),
        scopes("conflicting scopes"),
    ] {
        assert!(found.contains(&expected), "{expected}\n{found:#?}");
    }
    let fine = json!({"spec": {
        "hard": {"pods": "3", "requests.cpu": "2", "services.nodeports": "1",
            "requests.example.com/gpu": "1"},
        "scopes": ["NotTerminating"],
    }});
    let quota = json!({"spec": {"hard": {"pods": "3"}, "scopes": ["NotTerminating"]}});
    plane.create(QUOTAS, &named(&quota)).await;
    let (code, _) = plane.call(Method::POST, QUOTAS, &named(&fine)).await;
    assert_eq!(code, 422, "pods can't be scoped by services");
    let other = json!({"spec": {"hard": {"pods": "3"}, "scopes": ["Terminating"]}});
    let (code, answer) = plane
        .call(Method::PUT, &format!("{QUOTAS}/x"), &named(&other))
        .await;
    assert_eq!(code, 422);
    let cause = &answer["details"]["causes"][0];
    assert_eq!(
        cause["message"],
        "Invalid value: [\"Terminating\"]: field is immutable"
    );
    plane.stop().await;
}

#[tokio::test(start_paused = true)]
async fn endpoint_addresses_and_ports_are_validated() {
    let plane = plane().await;
    let endpoints = json!({"subsets": [
        {"ports": [{"port": 80}]},
        {
            "addresses": [
                {"ip": "127.0.0.1"}, {"ip": "a"}, {"ip": "169.254.0.1"},
                {"ip": "10.0.0.1", "hostname": "A"},
            ],
            "ports": [{"port": 0}, {"name": "p", "port": 1, "protocol": "ICMP"}],
        },
    ]});
    let found = plane
        .refused(Method::POST, ENDPOINTS, &named(&endpoints))
        .await;
    let expected = [
        "subsets[0]: Required value: must specify `addresses` or `notReadyAddresses`",
        "subsets[1].addresses[0].ip: Invalid value: \"127.0.0.1\": may not be in the loopback \
         range (127.0.0.0/8, ::1/128)",
        "subsets[1].addresses[1].ip: Invalid value: \"a\": must be a valid IP address, (e.g. \
         10.9.8.7 or 2001:db8::ffff)",
        "subsets[1].addresses[1].ip: Invalid value: \"a\": must be a valid IP address",
        "subsets[1].addresses[2].ip: Invalid value: \"169.254.0.1\": may not be in the link-local \
         range (169.254.0.0/16, fe80::/10)",
        "subsets[1].addresses[3].hostname: Invalid value: \"A\": a lowercase RFC 1123 label must \
         consist of lower case alphanumeric characters or '-', and must start and end with an \
         alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is \
         '[a-z0-9]([-a-z0-9]*[a-z0-9])?')",
        "subsets[1].ports[0].name: Required value",
        "subsets[1].ports[0].port: Invalid value: 0: must be between 1 and 65535, inclusive",
        "subsets[1].ports[1].protocol: Unsupported value: \"ICMP\": supported values: \"SCTP\", \
         \"TCP\", \"UDP\"",
    ];
    assert_eq!(found, expected);
    let fine = json!({"subsets": [{"addresses": [{"ip": "10.0.0.1"}], "ports": [{"port": 80}]}]});
    plane.create(ENDPOINTS, &named(&fine)).await;
    plane.stop().await;
}
