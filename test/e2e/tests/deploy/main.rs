//! Tests of the shipped manifests: they are consistent, an API server accepts them, and the chart
//! renders the same objects.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use std::collections::BTreeMap;

use e2e::deploy::{self, Chart, build, build_with, collection, is_embedded, key, kustomization};
use http::Method;
use integration::World;
use k8s_openapi::api::flowcontrol::v1::FlowSchema;
use k8s_openapi::api::networking::v1::NetworkPolicy;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

mod fence;
#[cfg(feature = "helm")]
mod helm;
#[cfg(feature = "kubectl")]
mod kubectl;
mod monitoring;
mod opt_ins;
mod shadow;
mod upgrade;

const NAME: &str = "statefulset-controller-manager";
const OVERLAYS: [&str; 2] = ["overlays/self-managed", "overlays/managed"];
const COMPONENT: &str = "components/service-monitor";

/// Objects by kind, namespace and name.
fn by_key(objects: Vec<Value>) -> BTreeMap<(String, String, String), Value> {
    let count = objects.len();
    let objects: BTreeMap<_, _> = objects.into_iter().map(|o| (key(&o), o)).collect();
    assert_eq!(objects.len(), count, "duplicate object");
    objects
}

/// An overlay with the component for the Prometheus operator.
fn monitored(overlay: &str) -> Vec<Value> {
    build_with(&kustomization(overlay), &kustomization(COMPONENT))
}

fn of_kind<'a>(objects: &'a [Value], kind: &str) -> &'a Value {
    let mut found = objects.iter().filter(|object| object["kind"] == kind);
    let object = found.next().unwrap_or_else(|| panic!("there is no {kind}"));
    assert!(found.next().is_none(), "there is another {kind}");
    object
}

/// Creates all objects; fails on unknown fields and duplicates.
async fn apply(objects: &[Value]) {
    let world = World::api_server().await;
    let space = world.namespace("unused").await;
    for object in objects {
        if !is_embedded(object["kind"].as_str().unwrap()) {
            continue;
        }
        let path = format!("{}?fieldValidation=Strict", collection(object));
        let created = space
            .ask(Method::POST, &path, "application/json", object)
            .await;
        if let Err(refused) = created {
            panic!("{refused}\n{object:#}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn embedded_api_server_accepts_the_manifests() {
    for overlay in OVERLAYS {
        apply(&monitored(overlay)).await;
    }
}

#[test]
fn objects_of_other_kinds_are_valid() {
    for overlay in OVERLAYS {
        let objects = monitored(overlay);
        let others = objects.iter().filter(|object| {
            let kind = object["kind"].as_str().unwrap();
            !is_embedded(kind)
        });
        let mut kinds: Vec<&str> = others
            .map(|object| {
                let kind = object["kind"].as_str().unwrap();
                match kind {
                    "FlowSchema" => assert_valid_flow_schema(object),
                    "NetworkPolicy" => assert_valid_network_policy(object),
                    "ServiceMonitor" => assert_valid_service_monitor(object, &objects),
                    _ => panic!("no validation for {kind}"),
                }
                kind
            })
            .collect();
        kinds.dedup();
        assert_eq!(kinds.len(), 3, "{kinds:?}");
    }
}

/// Validates a flow schema like kube-apiserver, for the fields that the shipped ones use.
fn assert_valid_flow_schema(schema: &Value) {
    assert_known::<FlowSchema>(schema);
    assert_eq!(schema["apiVersion"], "flowcontrol.apiserver.k8s.io/v1");
    let spec = &schema["spec"];
    let precedence = spec["matchingPrecedence"].as_i64().unwrap();
    assert!((1..=10_000).contains(&precedence), "{precedence}");
    let distinguisher = spec["distinguisherMethod"]["type"].as_str().unwrap();
    assert!(["ByUser", "ByNamespace"].contains(&distinguisher));
    assert_ne!(spec["priorityLevelConfiguration"]["name"], "");
    for rule in spec["rules"].as_array().unwrap() {
        for subject in rule["subjects"].as_array().unwrap() {
            // Exactly the field of this kind must be set.
            assert_eq!(subject["kind"], "ServiceAccount");
            assert_eq!(subject.as_object().unwrap().len(), 2, "{subject}");
            for member in ["namespace", "name"] {
                let value = subject["serviceAccount"][member].as_str().unwrap();
                assert!(!value.is_empty(), "{subject}");
            }
        }
        for resources in rule["resourceRules"].as_array().unwrap() {
            for member in ["verbs", "apiGroups", "resources"] {
                assert!(!resources[member].as_array().unwrap().is_empty(), "{rule}");
            }
            let namespaces = resources["namespaces"].as_array();
            let has_namespaces = namespaces.is_some_and(|names| !names.is_empty());
            assert!(
                has_namespaces || resources["clusterScope"] == true,
                "{rule}"
            );
        }
        for others in rule["nonResourceRules"].as_array().into_iter().flatten() {
            assert!(!others["verbs"].as_array().unwrap().is_empty(), "{rule}");
            for url in others["nonResourceURLs"].as_array().unwrap() {
                let url = url.as_str().unwrap();
                assert!(url == "*" || url.starts_with('/'), "{rule}");
            }
        }
    }
}

/// Validates a network policy in the same way.
fn assert_valid_network_policy(policy: &Value) {
    assert_known::<NetworkPolicy>(policy);
    assert_eq!(policy["apiVersion"], "networking.k8s.io/v1");
    for direction in ["ingress", "egress"] {
        for rule in policy["spec"][direction].as_array().unwrap() {
            for port in rule["ports"].as_array().unwrap() {
                let protocol = port["protocol"].as_str().unwrap();
                assert!(["TCP", "UDP", "SCTP"].contains(&protocol), "{port}");
                let is_number = port["port"]
                    .as_u64()
                    .is_some_and(|it| (1..65536).contains(&it));
                let is_name = port["port"].as_str().is_some_and(is_port_name);
                assert!(is_number || is_name, "{port}");
            }
        }
    }
}

/// Returns true if a port may have this name.
fn is_port_name(name: &str) -> bool {
    let is_allowed = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    (1..=15).contains(&name.len())
        && name.bytes().all(is_allowed)
        && name.bytes().any(|byte| byte.is_ascii_lowercase())
        && !name.starts_with('-')
        && !name.ends_with('-')
        && !name.contains("--")
}

/// Validates a service monitor in the same way; its type comes from the Prometheus operator.
fn assert_valid_service_monitor(monitor: &Value, objects: &[Value]) {
    assert_eq!(monitor["apiVersion"], "monitoring.coreos.com/v1");
    let service = of_kind(objects, "Service");
    let labels = monitor["spec"]["selector"]["matchLabels"]
        .as_object()
        .unwrap();
    for (name, value) in labels {
        assert_eq!(&service["metadata"]["labels"][name], value);
    }
    let spec: Vec<&String> = monitor["spec"].as_object().unwrap().keys().collect();
    assert_eq!(spec, ["endpoints", "selector"]);
    for endpoint in monitor["spec"]["endpoints"].as_array().unwrap() {
        let known = [
            "bearerTokenFile",
            "interval",
            "path",
            "port",
            "scheme",
            "tlsConfig",
        ];
        let members: Vec<&String> = endpoint.as_object().unwrap().keys().collect();
        assert_eq!(members, known);
        assert_eq!(endpoint["port"], service["spec"]["ports"][0]["name"]);
        assert_eq!(endpoint["scheme"], "https");
        let seconds = endpoint["interval"].as_str().unwrap().strip_suffix('s');
        assert!(seconds.is_some_and(|it| it.parse::<u32>().is_ok()));
    }
}

#[test]
fn overlays_contain_the_expected_objects() {
    let monitors = OVERLAYS.map(|overlay| (overlay, monitored(overlay), true));
    let plain = OVERLAYS.map(|overlay| (overlay, build(&kustomization(overlay)), false));
    for (overlay, objects, is_monitored) in plain.into_iter().chain(monitors) {
        let mut kinds: Vec<&str> = objects
            .iter()
            .map(|o| o["kind"].as_str().unwrap())
            .collect();
        kinds.sort_unstable();
        let base = [
            "ClusterRoleBinding",
            "ClusterRoleBinding",
            "Deployment",
            "FlowSchema",
            "FlowSchema",
            "NetworkPolicy",
            "PodDisruptionBudget",
            "Role",
            "RoleBinding",
            "RoleBinding",
            "Service",
            "ServiceAccount",
        ];
        let mut expected = base.to_vec();
        if is_monitored {
            expected.extend(["ClusterRole", "ServiceMonitor"]);
        }
        if overlay == "overlays/managed" {
            expected.push("Namespace");
        }
        expected.sort_unstable();
        assert_eq!(kinds, expected, "{overlay}");
        for object in &objects {
            let labels = &object["metadata"]["labels"];
            assert_eq!(labels["app.kubernetes.io/name"], NAME, "{object}");
        }
    }
}

#[test]
fn selectors_names_and_ports_are_consistent() {
    for overlay in OVERLAYS {
        let objects = build(&kustomization(overlay));
        let deployment = of_kind(&objects, "Deployment");
        let labels = &deployment["spec"]["template"]["metadata"]["labels"];
        let selector = json!({"matchLabels": labels});
        assert_eq!(deployment["spec"]["selector"], selector);
        let budget = of_kind(&objects, "PodDisruptionBudget");
        assert_eq!(budget["spec"]["selector"], selector);
        let service = of_kind(&objects, "Service");
        assert_eq!(&service["spec"]["selector"], labels);
        let pod = &deployment["spec"]["template"]["spec"];
        let spread = &pod["topologySpreadConstraints"][0];
        assert_eq!(spread["labelSelector"], selector);

        let container = &pod["containers"][0];
        let port = &container["ports"][0];
        assert_eq!(port["containerPort"], 10257);
        assert_eq!(service["spec"]["ports"][0]["targetPort"], port["name"]);
        assert_eq!(service["spec"]["ports"][0]["port"], port["containerPort"]);
        for (probe, path) in [
            ("startupProbe", "/livez"),
            ("livenessProbe", "/livez"),
            ("readinessProbe", "/readyz"),
        ] {
            let get = json!({"path": path, "port": port["name"], "scheme": "HTTPS"});
            assert_eq!(container[probe]["httpGet"], get);
        }

        let namespace = &deployment["metadata"]["namespace"];
        let account = of_kind(&objects, "ServiceAccount");
        assert_eq!(account["metadata"]["name"], pod["serviceAccountName"]);
        let subject = json!({
            "kind": "ServiceAccount", "name": pod["serviceAccountName"], "namespace": namespace,
        });
        let bindings = objects.iter().filter(|o| o.get("roleRef").is_some());
        let mut roles = Vec::new();
        for binding in bindings {
            assert_eq!(binding["subjects"], json!([subject]));
            roles.push(binding["roleRef"]["name"].as_str().unwrap());
        }
        roles.sort_unstable();
        assert_eq!(
            roles,
            [
                "extension-apiserver-authentication-reader",
                "statefulset-controller-manager:leader-election",
                "system:auth-delegator",
                "system:controller:statefulset-controller",
            ]
        );

        // The role must cover the lease in the flags.
        let role = of_kind(&objects, "Role");
        let lease = &role["rules"][1]["resourceNames"][0];
        let flag = |name: &str, value: &Value| {
            let flag = format!("--{name}={}", value.as_str().unwrap());
            let args = container["args"].as_array().unwrap();
            assert!(args.contains(&json!(flag)), "{flag} in {args:?}");
        };
        flag("leader-elect-resource-name", lease);
        flag("leader-elect-resource-namespace", namespace);
        assert_eq!(&role["metadata"]["namespace"], namespace);
    }
}

#[test]
fn pod_meets_the_restricted_standard() {
    for overlay in OVERLAYS {
        let objects = build(&kustomization(overlay));
        let pod = &of_kind(&objects, "Deployment")["spec"]["template"]["spec"];
        let security = &pod["securityContext"];
        assert_eq!(security["runAsNonRoot"], true);
        assert_eq!(security["seccompProfile"]["type"], "RuntimeDefault");
        let container = &pod["containers"][0]["securityContext"];
        let expected = json!({
            "allowPrivilegeEscalation": false,
            "readOnlyRootFilesystem": true,
            "capabilities": {"drop": ["ALL"]},
        });
        assert_eq!(container, &expected);
        for member in ["hostNetwork", "hostPID", "hostIPC", "volumes"] {
            assert_eq!(pod.get(member), None);
        }
    }
}

/// Renderings of the chart for the users of each overlay.
fn installations() -> [(&'static str, Vec<Value>); 2] {
    let self_managed = Chart::shipped().with_file("values-self-managed.yaml");
    let managed = Chart::shipped().with_file("values-managed.yaml");
    [
        (OVERLAYS[0], self_managed.render("kube-system")),
        (OVERLAYS[1], managed.render(NAME)),
    ]
}

#[test]
fn chart_renders_the_objects_of_the_overlays() {
    for (overlay, rendered) in installations() {
        let mut expected = by_key(build(&kustomization(overlay)));
        // `helm install --create-namespace` creates the namespace.
        expected.retain(|(kind, ..), _| kind != "Namespace");
        assert_eq!(by_key(rendered), expected, "{overlay}");
    }
    let on = json!({"serviceMonitor": {"enabled": true}});
    let chart = Chart::shipped()
        .with_file("values-self-managed.yaml")
        .with(on);
    let expected = by_key(monitored(OVERLAYS[0]));
    assert_eq!(by_key(chart.render("kube-system")), expected);
}

/// Checks that the objects have no unknown fields.
fn assert_known<T: Serialize + DeserializeOwned>(object: &Value) {
    let typed: T = serde_json::from_value(object.clone()).unwrap();
    assert_eq!(&serde_json::to_value(typed).unwrap(), object);
}

#[test]
fn controller_requests_have_their_own_queues() {
    for overlay in OVERLAYS {
        let objects = build(&kustomization(overlay));
        let account = &of_kind(&objects, "ServiceAccount")["metadata"];
        let subject = json!({
            "kind": "ServiceAccount",
            "serviceAccount": {"name": account["name"], "namespace": account["namespace"]},
        });
        let schemas = objects.iter().filter(|o| o["kind"] == "FlowSchema");
        let mut levels = Vec::new();
        for schema in schemas {
            assert_known::<FlowSchema>(schema);
            assert_eq!(schema["metadata"].get("namespace"), None);
            let spec = &schema["spec"];
            assert_eq!(spec["rules"][0]["subjects"], json!([subject]));
            let level = spec["priorityLevelConfiguration"]["name"].as_str().unwrap();
            let resources = &spec["rules"][0]["resourceRules"][0];
            if level == "leader-election" {
                assert_eq!(resources["resources"], json!(["leases"]));
                assert_eq!(resources["namespaces"], json!([account["namespace"]]));
            }
            // The schemas for all service accounts have 900 and 9000.
            let precedence = spec["matchingPrecedence"].as_i64().unwrap();
            levels.push((precedence, level));
        }
        levels.sort_unstable();
        assert_eq!(levels, [(100, "leader-election"), (800, "workload-high")]);
    }
}

#[test]
fn network_policy_allows_the_port_and_the_api_server() {
    for overlay in OVERLAYS {
        let objects = build(&kustomization(overlay));
        let policy = of_kind(&objects, "NetworkPolicy");
        assert_known::<NetworkPolicy>(policy);
        let deployment = of_kind(&objects, "Deployment");
        let spec = &policy["spec"];
        assert_eq!(spec["podSelector"], deployment["spec"]["selector"]);
        assert_eq!(spec["policyTypes"], json!(["Ingress", "Egress"]));
        let container = &deployment["spec"]["template"]["spec"]["containers"][0];
        let open = json!([{"ports": [
            {"protocol": "TCP", "port": container["ports"][0]["name"]},
        ]}]);
        assert_eq!(spec["ingress"], open);
        let ports = json!([{"protocol": "TCP", "port": 443}, {"protocol": "TCP", "port": 6443}]);
        assert_eq!(spec["egress"], json!([{"ports": ports}]));
    }
}

#[test]
fn scraper_token_goes_only_to_the_controller() {
    for overlay in OVERLAYS {
        let objects = monitored(overlay);
        let monitor = of_kind(&objects, "ServiceMonitor");
        let service = of_kind(&objects, "Service");
        let namespace = &service["metadata"]["namespace"];
        assert_eq!(&monitor["metadata"]["namespace"], namespace);
        // Without a namespace selector it selects its own namespace.
        assert_eq!(monitor["spec"].get("namespaceSelector"), None);
        let tls = &monitor["spec"]["endpoints"][0]["tlsConfig"];
        assert_eq!(tls.get("insecureSkipVerify"), None);
        assert_eq!(tls["serverName"], NAME);
        let pod = &of_kind(&objects, "Deployment")["spec"]["template"]["spec"];
        let secret = &pod["volumes"][0]["secret"]["secretName"];
        assert_eq!(&tls["ca"]["secret"]["name"], secret);
        let container = &pod["containers"][0];
        let folder = container["volumeMounts"][0]["mountPath"].as_str().unwrap();
        for (flag, file) in [
            ("tls-cert-file", "tls.crt"),
            ("tls-private-key-file", "tls.key"),
        ] {
            let flag = json!(format!("--{flag}={folder}/{file}"));
            assert!(
                container["args"].as_array().unwrap().contains(&flag),
                "{flag}"
            );
        }
    }
}

#[tokio::test(start_paused = true)]
async fn every_chart_value_is_used_and_renders_valid_objects() {
    let own = json!({
        "name": "sts-cm",
        "image": {"repository": "registry.example/sts", "tag": "1.2.3", "pullPolicy": "Always"},
        "imagePullSecrets": [{"name": "pull-secret"}],
        "replicas": 3,
        "shadow": false,
        "fence": {"enabled": true},
        "optIns": {"enabled": true},
        "verbosity": 4,
        "extraArgs": ["--concurrent-statefulset-syncs=10"],
        "serviceAccount": {"create": true, "name": "own-account", "annotations": {"a": "b-annotation"}},
        "priorityClassName": "",
        "nodeSelector": {"disk": "ssd-node"},
        "tolerations": [{"key": "taint-key", "operator": "Exists"}],
        "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {
            "nodeSelectorTerms": [{"matchExpressions": [
                {"key": "affinity-key", "operator": "Exists"},
            ]}],
        }}},
        "podAnnotations": {"pod-annotation": "x"},
        "podLabels": {"pod-label": "x"},
        "resources": {"requests": {"cpu": "77m"}},
        "podDisruptionBudget": {"enabled": false},
        "networkPolicy": {"enabled": true, "egress": [{"ports": [{"protocol": "TCP", "port": 16443}]}]},
        "flowSchemas": {"enabled": false},
        "serviceMonitor": {
            "enabled": true, "certificateSecret": "own-certificate", "interval": "17s",
            "labels": {"release": "monitor-label"},
        },
    });
    let chart = Chart::shipped();
    let known: Vec<&String> = chart.values().as_object().unwrap().keys().collect();
    let tried: Vec<&String> = own.as_object().unwrap().keys().collect();
    assert_eq!(tried, known);
    let objects = chart.with(own).render("elsewhere");
    let text = Value::from(objects.clone()).to_string();
    for part in [
        "sts-cm:leader-election",
        "system:serviceaccount:elsewhere:own-account",
        "registry.example/sts:1.2.3",
        "\"imagePullPolicy\":\"Always\"",
        "pull-secret",
        "\"replicas\":3",
        "--v=4",
        "--concurrent-statefulset-syncs=10",
        "own-account",
        "b-annotation",
        "ssd-node",
        "taint-key",
        "affinity-key",
        "pod-annotation",
        "pod-label",
        "77m",
        "17s",
        "16443",
        "own-certificate",
        "monitor-label",
        "--leader-elect-resource-namespace=elsewhere",
        "\"resourceNames\":[\"sts-cm\"]",
    ] {
        assert!(text.contains(part), "{part} is not in {text}");
    }
    for part in ["priorityClassName", "PodDisruptionBudget", "FlowSchema"] {
        assert!(!text.contains(part), "{part} is in {text}");
    }
    let mut all = vec![json!({
        "apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "elsewhere"},
    })];
    all.extend(objects);
    apply(&all).await;
}

#[test]
fn kustomizations_use_every_file() {
    for name in [
        "base",
        COMPONENT,
        OVERLAYS[0],
        OVERLAYS[1],
        "overlays/self-managed/namespaced",
        "overlays/managed/namespaced",
    ] {
        let folder = kustomization(name);
        let text = std::fs::read_to_string(folder.join("kustomization.yaml")).unwrap();
        for entry in std::fs::read_dir(&folder).unwrap() {
            let file = entry.unwrap().file_name().into_string().unwrap();
            assert!(
                file == "kustomization.yaml" || text.contains(&file),
                "{name}/{file} is unused"
            );
        }
    }
    assert!(deploy::folder().join("Containerfile").is_file());
}

#[test]
fn versions_match_the_workspace() {
    let version = env!("CARGO_PKG_VERSION");
    for (_, objects) in installations() {
        let pod = &of_kind(&objects, "Deployment")["spec"]["template"]["spec"];
        assert_eq!(pod["containers"][0]["image"], format!("{NAME}:{version}"));
    }
    let containerfile = std::fs::read_to_string(deploy::folder().join("Containerfile")).unwrap();
    let toolchain = format!(
        "rust:{}-slim-bookworm@sha256:",
        env!("CARGO_PKG_RUST_VERSION")
    );
    let (_, digest) = containerfile.split_once(&toolchain).unwrap();
    let digits = digest.bytes().take_while(u8::is_ascii_hexdigit).count();
    assert_eq!(digits, 64, "{digest}");
    // No other image comes from a registry.
    let bases = containerfile
        .lines()
        .filter(|line| line.starts_with("FROM "));
    let bases: Vec<&str> = bases.collect();
    assert_eq!(bases, ["FROM ${BUILD_IMAGE} AS build", "FROM scratch"]);
    // The build writes the program, which has the objects' name, where the image expects it.
    assert!(containerfile.contains(&format!("/target/dist/{NAME} /{NAME}\n")));
    assert!(containerfile.contains(&format!("ENTRYPOINT [\"/{NAME}\"]")));
    let script = deploy::folder().join("../../../hack/dist.sh");
    let script = std::fs::read_to_string(script).unwrap();
    assert!(script.contains(&format!("program={NAME}\n")));
}
