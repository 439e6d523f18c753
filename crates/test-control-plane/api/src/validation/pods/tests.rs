//! Tests of pod rules, with upstream's error messages.

use kube_apimachinery::defaults;
use serde_json::{Value, json};

use crate::settings::ServerGates;
use crate::status::FieldError;
use crate::validation::engine::{Context, Place, Pod};
use crate::validation::tables;

/// Returns the errors of a spec whose only container has a name, an image and the fields of
/// `container`.
fn wrong(container: &Value, spec: &Value) -> Vec<String> {
    let mut all = json!({"containers": [{"name": "c", "image": "i"}]});
    merge(&mut all["containers"][0], container);
    merge(&mut all, spec);
    let mut pod = json!({"metadata": {}, "spec": all});
    defaults::set_pod_defaults(&mut pod);
    let context = Context {
        pod: Some(Pod {
            spec: &pod["spec"],
            old: None,
            metadata: &pod["metadata"],
            is_whole: true,
            claims: &["claimed"],
            is_named: false,
        }),
        ..tables::context(ServerGates::default())
    };
    let mut errors = Vec::new();
    let place = Place::root(&context, &pod["spec"], None, "spec");
    place.check("PodSpec", &mut errors);
    place.check("PodSpec/pod", &mut errors);
    let text = |error: &FieldError| format!("{}: {}", error.field, error.message);
    errors.iter().map(text).collect()
}

fn merge(into: &mut Value, from: &Value) {
    for (member, value) in from.as_object().into_iter().flatten() {
        into[member] = value.clone();
    }
}

fn of_container(container: &Value) -> Vec<String> {
    let found = wrong(container, &json!({}));
    let found = found
        .iter()
        .map(|text| text.replace("spec.containers[0].", ""));
    found.collect()
}

fn of_spec(spec: &Value) -> Vec<String> {
    wrong(&json!({}), spec)
}

#[test]
fn common_pod_is_valid() {
    let container = json!({
        "ports": [{"name": "http", "containerPort": 80, "protocol": "TCP"}],
        "env": [{"name": "a.b-c", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
            {"name": "L", "valueFrom": {"fieldRef": {"fieldPath": "metadata.labels['a/b']"}}},
            {"name": "K", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}}],
        "volumeMounts": [{"name": "claimed", "mountPath": "/a"}, {"name": "v", "mountPath": "/b"}],
        "resources": {"requests": {"cpu": "500m", "memory": "1Gi", "example.com/gpu": "1"},
            "limits": {"cpu": "1", "example.com/gpu": "1", "hugepages-2Mi": "4Mi"}},
        "livenessProbe": {"httpGet": {"path": "/", "port": "http", "scheme": "HTTP"},
            "successThreshold": 1},
        "readinessProbe": {"exec": {"command": ["x"]}, "successThreshold": 3},
        "lifecycle": {"preStop": {"sleep": {"seconds": 3}}},
    });
    let spec = json!({
        "initContainers": [{"name": "i", "image": "i"},
            {"name": "s", "image": "i", "restartPolicy": "Always",
                "startupProbe": {"tcpSocket": {"port": 80}}}],
        "volumes": [{"name": "v", "configMap": {"name": "m", "defaultMode": 420}}],
        "nodeSelector": {"kubernetes.io/os": "linux"},
        "tolerations": [{"operator": "Exists"}, {"key": "a", "value": "b"}],
        "affinity": {"podAntiAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": [{"topologyKey": "zone"}]}},
        "topologySpreadConstraints": [
            {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"}],
        "schedulingGates": [{"name": "example.com/gate"}],
        "securityContext": {"fsGroup": 1000},
        "hostname": "h",
    });
    assert_eq!(wrong(&container, &spec), Vec::<String>::new());
}

#[test]
fn ports_need_valid_numbers_and_names() {
    let ports = json!({"ports": [
        {"containerPort": 0},
        {"containerPort": 65536, "hostPort": -1, "protocol": "X"},
        {"containerPort": 1, "name": "Too--long-name-"},
        {"containerPort": 1, "name": "x-123456789012345"},
        {"containerPort": 1, "name": "a"},
        {"containerPort": 1, "name": "a"},
        {"containerPort": 1, "name": "1"},
    ]});
    assert_eq!(
        of_container(&ports),
        [
            "ports[0].containerPort: Required value",
            "ports[1].containerPort: Invalid value: 65536: must be between 1 and 65535, inclusive",
            "ports[1].hostPort: Invalid value: -1: must be between 1 and 65535, inclusive",
            "ports[1].protocol: Unsupported value: \"X\": supported values: \"SCTP\", \"TCP\", \
             \"UDP\"",
            "ports[2].name: Invalid value: \"Too--long-name-\": must contain only alpha-numeric \
             characters (a-z, 0-9), and hyphens (-)",
            "ports[2].name: Invalid value: \"Too--long-name-\": must not contain consecutive \
             hyphens",
            "ports[2].name: Invalid value: \"Too--long-name-\": must not begin or end with a \
             hyphen",
            "ports[3].name: Invalid value: \"x-123456789012345\": must be no more than 15 \
             characters",
            "ports[5].name: Duplicate value: \"a\"",
            "ports[6].name: Invalid value: \"1\": must contain at least one letter (a-z)",
        ]
    );
}

#[test]
fn variables_need_one_source() {
    let env = json!({"env": [
        {"name": ""},
        {"name": "a=b"},
        {"name": "a", "valueFrom": {}},
        {"name": "a", "value": "x", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
        {"name": "a", "valueFrom": {"fieldRef": {"fieldPath": "status.phase"}}},
        {"name": "a", "valueFrom": {"fieldRef": {"fieldPath": "metadata.nothing"}}},
        {"name": "a", "valueFrom": {"configMapKeyRef": {"name": "m", "key": ""}}},
    ]});
    assert_eq!(
        of_container(&env),
        [
            "env[0].name: Required value",
            "env[1].name: Invalid value: \"a=b\": a valid environment variable name must consist \
             only of printable ASCII characters other than '='",
            "env[2].valueFrom: Invalid value: \"\": must specify one of: `fieldRef`, \
             `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or `fileKeyRef`",
            "env[3].valueFrom: Invalid value: \"\": may not be specified when `value` is not empty",
            "env[4].valueFrom.fieldRef.fieldPath: Unsupported value: \"status.phase\": supported \
             values: \"metadata.name\", \"metadata.namespace\", \"metadata.uid\", \
             \"spec.nodeName\", \"spec.serviceAccountName\", \"status.hostIP\", \
             \"status.hostIPs\", \"status.podIP\", \"status.podIPs\"",
            "env[5].valueFrom.fieldRef.fieldPath: Invalid value: \"metadata.nothing\": error \
             converting fieldPath: field label not supported: metadata.nothing",
            "env[6].valueFrom.configMapKeyRef.key: Required value",
        ]
    );
}

#[test]
fn mounts_need_existing_volumes() {
    let mounts = json!({"volumeMounts": [
        {"name": "none", "mountPath": "/a"},
        {"name": "", "mountPath": ""},
        {"name": "claimed", "mountPath": "/a", "subPath": "/x/../y"},
    ]});
    assert_eq!(
        of_container(&mounts),
        [
            "volumeMounts[0].name: Not found: \"none\"",
            "volumeMounts[1].name: Required value",
            "volumeMounts[1].name: Not found: \"\"",
            "volumeMounts[1].mountPath: Required value",
            "volumeMounts[2].mountPath: Invalid value: \"/a\": must be unique",
            // Upstream leaves out the index here.
            "volumeMounts.subPath: Invalid value: \"/x/../y\": must be a relative path",
            "volumeMounts.subPath: Invalid value: \"/x/../y\": must not contain '..'",
        ]
    );
}

#[test]
fn requests_must_not_exceed_limits() {
    let resources = json!({"resources": {
        "requests": {"cpu": "2", "example.com/gpu": "1", "memory": "-1"},
        "limits": {"cpu": "1"},
    }});
    assert_eq!(
        of_container(&resources),
        [
            "resources.requests: Invalid value: \"2\": must be less than or equal to cpu limit of \
             1",
            "resources.limits: Required value: Limit must be set for non overcommitable resources",
            "resources.requests[memory]: Invalid value: \"-1\": must be greater than or equal to 0",
        ]
    );
    let resources = json!({"resources": {"requests": {"foo": "1"}}});
    assert_eq!(
        of_container(&resources),
        [
            "resources.requests[foo]: Invalid value: \"foo\": must be a standard resource type or \
             fully qualified",
            "resources.requests[foo]: Invalid value: \"foo\": must be a standard resource for \
             containers",
        ]
    );
}

#[test]
fn probes_need_exactly_one_handler() {
    let probes = json!({
        "livenessProbe": {"exec": {"command": []}, "tcpSocket": {"port": 80},
            "successThreshold": 2},
        "readinessProbe": {"httpGet": {"path": "/", "port": 0}, "periodSeconds": -1,
            "terminationGracePeriodSeconds": 1},
        "startupProbe": {},
        "lifecycle": {"preStop": {}},
    });
    assert_eq!(
        of_container(&probes),
        [
            "lifecycle.preStop: Required value: must specify a handler type",
            "livenessProbe.exec.command: Required value",
            "livenessProbe.tcpSocket: Forbidden: may not specify more than 1 handler type",
            "livenessProbe.successThreshold: Invalid value: 2: must be 1",
            "readinessProbe.httpGet.port: Invalid value: 0: must be between 1 and 65535, inclusive",
            "readinessProbe.periodSeconds: Invalid value: -1: must be greater than or equal to 0",
            "readinessProbe.terminationGracePeriodSeconds: Invalid value: 1: must not be set for \
             readinessProbes",
            "startupProbe: Required value: must specify a handler type",
        ]
    );
}

#[test]
fn container_names_are_unique() {
    let spec = json!({
        "containers": [{"name": "a"}, {"name": "a", "image": "i", "imagePullPolicy": "X"}],
        "initContainers": [{"name": "a", "image": "i", "livenessProbe": {}}],
    });
    assert_eq!(
        of_spec(&spec),
        [
            "spec.containers[0].image: Required value",
            "spec.containers[1].imagePullPolicy: Unsupported value: \"X\": supported values: \
             \"Always\", \"IfNotPresent\", \"Never\"",
            "spec.containers[1].name: Duplicate value: \"a\"",
            "spec.initContainers[0].name: Duplicate value: \"a\"",
            "spec.initContainers[0].livenessProbe: Forbidden: may not be set for init containers \
             without restartPolicy=Always",
        ]
    );
    assert_eq!(
        of_spec(&json!({"containers": []})),
        ["spec.containers: Required value"]
    );
}

#[test]
fn volumes_need_one_source() {
    let spec = json!({"volumes": [
        {"name": "a", "secret": {"secretName": "", "defaultMode": 512}},
        {"name": "b", "emptyDir": {}, "hostPath": {"path": "/"}},
        {"name": "c", "emptyDir": {}},
        {"name": "c", "emptyDir": {}},
        {"name": ""},
    ]});
    // The volume of a claim is the first one.
    assert_eq!(
        of_spec(&spec),
        [
            "spec.volumes[1].secret.secretName: Required value",
            "spec.volumes[1].secret.defaultMode: Invalid value: 512: must be a number between 0 \
             and 0777 (octal), both inclusive",
            "spec.volumes[2].hostPath: Forbidden: may not specify more than 1 volume type",
            "spec.volumes[4].name: Duplicate value: \"c\"",
            "spec.volumes[5].name: Required value",
        ]
    );
}

#[test]
fn scheduling_members_are_validated() {
    let required = "requiredDuringSchedulingIgnoredDuringExecution";
    let spec = json!({
        "dnsPolicy": "X",
        "restartPolicy": "Sometimes",
        "affinity": {"nodeAffinity": {required: {"nodeSelectorTerms": [
            {"matchExpressions": [{"key": "a", "operator": "In"}, {"key": "a", "operator": "X"}]},
        ]}}},
        "topologySpreadConstraints": [
            {"maxSkew": 0, "topologyKey": "zone", "whenUnsatisfiable": "X"}],
        "tolerations": [
            {"key": "a", "operator": "X"},
            {"operator": "Equal", "value": "b"},
            {"key": "a", "effect": "Z"},
        ],
        "activeDeadlineSeconds": 0,
        "os": {"name": "plan9"},
    });
    let place = "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution";
    let expressions = format!("{place}.nodeSelectorTerms[0].matchExpressions");
    assert_eq!(
        of_spec(&spec),
        [
            "spec.restartPolicy: Unsupported value: \"Sometimes\": supported values: \"Always\", \
             \"OnFailure\", \"Never\"",
            "spec.dnsPolicy: Unsupported value: \"X\": supported values: \
             \"ClusterFirstWithHostNet\", \"ClusterFirst\", \"Default\", \"None\"",
            &format!(
                "{expressions}[0].values: Required value: must be specified when `operator` is \
                 'In' or 'NotIn'"
            ),
            &format!(
                "{expressions}[1].operator: Invalid value: \"X\": not a valid selector operator"
            ),
            "spec.topologySpreadConstraints[0].maxSkew: Invalid value: 0: must be greater than \
             zero",
            "spec.topologySpreadConstraints[0].whenUnsatisfiable: Unsupported value: \"X\": \
             supported values: \"DoNotSchedule\", \"ScheduleAnyway\"",
            "spec.activeDeadlineSeconds: Invalid value: 0: must be between 1 and 2147483647, \
             inclusive",
            "spec.tolerations[0].operator: Unsupported value: \"X\": supported values: \"Equal\", \
             \"Exists\"",
            "spec.tolerations[1].operator: Invalid value: \"Equal\": operator must be Exists when \
             `key` is empty, which means \"match all values and all keys\"",
            "spec.tolerations[2].effect: Unsupported value: \"Z\": supported values: \
             \"NoSchedule\", \"PreferNoSchedule\", \"NoExecute\"",
            "spec.os: Unsupported value: \"plan9\": supported values: \"linux\", \"windows\"",
        ]
    );
}

#[test]
fn pod_images_must_not_have_surrounding_space() {
    let detail = "must not have leading or trailing whitespace";
    let expected = format!("image: Invalid value: \" i\": {detail}");
    assert_eq!(of_container(&json!({"image": " i"})), [expected]);
}

#[test]
fn projected_volumes_need_one_source_and_unique_paths() {
    let volume = |sources: Value| {
        let spec = json!({
            "serviceAccountName": "a",
            "volumes": [{"name": "v", "projected": {"sources": sources}}],
        });
        let found = of_spec(&spec);
        let found = found
            .iter()
            .map(|text| text.replace("spec.volumes[1].projected", "P"));
        found.collect::<Vec<String>>()
    };
    let key = |path: &str| json!({"key": "k", "path": path});
    let fine = json!([
        {"secret": {"name": "s", "items": [key("a")]}},
        {"configMap": {"name": "m", "items": [key("b/c")]}},
        {"downwardAPI": {"items": [
            {"path": "d", "fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.name"}},
        ]}},
        {"serviceAccountToken": {"path": "t", "expirationSeconds": 3600}},
    ]);
    assert_eq!(volume(fine), [""; 0]);
    assert_eq!(
        volume(json!([{"secret": {}, "configMap": {"name": "m"}}])),
        [
            "P.sources[0].secret.name: Required value",
            "P.sources[0]: Forbidden: may not specify more than 1 volume type per source",
        ]
    );
    assert_eq!(
        volume(json!([
            {"secret": {"name": "s", "items": [key("a"), key("/b")]}},
            {"configMap": {"name": "m", "items": [key("a"), key("../b"), key("..c")]}},
        ])),
        [
            "P.sources[0].secret.items[1].path: Invalid value: \"/b\": must be a relative path",
            "P: Invalid value: \"m\": conflicting duplicate paths",
            "P.sources[1].configMap.items[1].path: Invalid value: \"../b\": must not contain '..'",
            "P.sources[1].configMap.items[2].path: Invalid value: \"..c\": must not start with \
             '..'",
        ]
    );
    assert_eq!(
        volume(json!([
            {"downwardAPI": {"items": [{"path": ""}]}},
            {"serviceAccountToken": {"expirationSeconds": 60}},
        ])),
        [
            "P.sources[0].downwardAPI.path: Required value",
            "P.sources[0].downwardAPI: Required value: one of fieldRef and resourceFieldRef is \
             required",
            "P.sources[1].serviceAccountToken.expirationSeconds: Invalid value: 60: may not \
             specify a duration less than 10 minutes",
            "P.path: Required value",
        ]
    );
}

#[test]
fn env_from_sources_need_names() {
    let of = |sources: Value| of_container(&json!({"envFrom": sources}));
    assert_eq!(
        of(json!([{}])),
        ["envFrom: Invalid value: \"\": must specify one of: `configMapRef` or `secretRef`"]
    );
    let both = json!([{"configMapRef": {"name": "a"}, "secretRef": {}, "prefix": "a="}]);
    let wrong = of(both);
    assert_eq!(wrong.len(), 3, "{wrong:?}");
    assert!(wrong[0].starts_with("envFrom[0].prefix: Invalid value: \"a=\": a valid environment"));
    assert_eq!(wrong[1], "envFrom[0].secretRef.name: Required value");
    assert!(wrong[2].ends_with("may not have more than one field specified at a time"));
    assert!(of(json!([{"secretRef": {"name": "a"}, "prefix": "A_"}])).is_empty());
}

#[test]
fn devices_and_resize_policies_must_be_complete() {
    let wrong = of_container(&json!({"volumeDevices": [{}], "resizePolicy": [{}]}));
    assert_eq!(
        wrong,
        [
            "volumeDevices[0].name: Required value",
            "volumeDevices[0].name: Not found: \"\"",
            "volumeDevices[0].devicePath: Required value",
            "resizePolicy: Required value",
            "resizePolicy: Required value",
        ]
    );
    let policy = json!([{"resourceName": "cpu", "restartPolicy": "NotRequired"}]);
    assert!(of_container(&json!({"resizePolicy": policy})).is_empty());
}

#[test]
fn pod_names_and_addresses_are_validated() {
    let wrong = of_spec(&json!({
        "hostAliases": [{"ip": "1.2.3", "hostnames": ["A"]}],
        "dnsConfig": {"nameservers": ["x"], "searches": ["", "."], "options": [{}]},
        "securityContext": {"sysctls": [{}]},
        "resourceClaims": [{}, {"name": "a", "resourceClaimName": "b"}],
    }));
    let fields: Vec<&str> = wrong
        .iter()
        .filter_map(|text| Some(text.split_once(": ")?.0))
        .collect();
    let mut expected = vec![
        "spec.hostAliases[0].ip",
        "spec.hostAliases[0].hostnames[0]",
        "spec.dnsConfig.nameservers[0]",
        "spec.dnsConfig.searches[0]",
        "spec.dnsConfig.options[0]",
        "spec.resourceClaims[0].name",
        "spec.resourceClaims[0]",
        "spec.securityContext.sysctls[0].name",
    ];
    let mut fields = fields;
    fields.dedup();
    fields.sort_unstable();
    expected.sort_unstable();
    assert_eq!(fields, expected);
    let right = json!({
        "hostAliases": [{"ip": "::1", "hostnames": ["a.b"]}],
        "dnsConfig": {"nameservers": ["10.0.0.1"], "searches": ["a_b.c."]},
    });
    assert!(of_spec(&right).is_empty());
}
