//! Conversion webhooks of custom resources in this process, in paused time.

use http::{Method, Request, Response};
use http_body_util::Full;
use serde_json::{Value, json};
use tokio::time::Instant;
use tower::service_fn;

use super::{Bytes, Reviews, configure, plane, rejected, serve};
use crate::custom_resources::merge;
use crate::support::{Plane, exchange};

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const V1: &str = "/apis/example.com/v1/namespaces/default/gauges";
const V2: &str = "/apis/example.com/v2/namespaces/default/gauges";

/// Returns a definition whose version `v1` has a host and a port, and `v2` an address.
fn definition() -> Value {
    let version = |name: &str, properties: Value| {
        json!({
            "name": name, "served": true, "storage": name == "v1",
            "schema": {"openAPIV3Schema": {
                "type": "object",
                "properties": {"spec": {"type": "object", "properties": properties}},
            }},
        })
    };
    let text = json!({"type": "string"});
    json!({
        "metadata": {"name": "gauges.example.com"},
        "spec": {
            "group": "example.com", "scope": "Namespaced",
            "names": {"plural": "gauges", "kind": "Gauge"},
            "versions": [
                version("v1", json!({"host": text, "port": text})),
                version("v2", json!({"address": text})),
            ],
            "conversion": {"strategy": "Webhook", "webhook": {
                "clientConfig": {"service": {"namespace": "default", "name": "convert"}},
                "conversionReviewVersions": ["v1"],
            }},
        },
    })
}

/// Converts the objects of a request.
fn converted(request: &Value) -> Value {
    let desired = &request["desiredAPIVersion"];
    let objects = request["objects"].as_array().unwrap().iter();
    let objects = objects.map(|object| {
        let mut object = object.clone();
        let spec = &object["spec"];
        object["spec"] = if let Some(address) = spec["address"].as_str() {
            let (host, port) = address.split_once(':').unwrap();
            json!({"host": host, "port": port})
        } else {
            let text = |name: &str| spec[name].as_str().unwrap_or_default();
            json!({"address": format!("{}:{}", text("host"), text("port"))})
        };
        object["apiVersion"] = desired.clone();
        object
    });
    json!({"result": {"status": "Success"}, "convertedObjects": objects.collect::<Vec<_>>()})
}

async fn converting() -> (Plane, Reviews) {
    let plane = plane().await;
    let reviews = serve(&plane, "convert", converted);
    plane.create(DEFINITIONS, &definition()).await;
    (plane, reviews)
}

/// Creates an object in the version of a path.
async fn create(plane: &Plane, path: &str, name: &str, spec: &Value) -> Value {
    let version = if path == V1 { "v1" } else { "v2" };
    let object = json!({
        "apiVersion": format!("example.com/{version}"), "kind": "Gauge",
        "metadata": {"name": name}, "spec": spec,
    });
    plane.create(path, &object).await
}

#[tokio::test(start_paused = true)]
async fn objects_are_served_in_every_version() {
    let (plane, reviews) = converting().await;
    let spec = json!({"host": "h", "port": "80"});
    create(&plane, V1, "a", &spec).await;
    assert_eq!(reviews.take().len(), 0, "nothing is to convert");
    let address = json!({"address": "h:80"});
    assert_eq!(plane.get(&format!("{V2}/a")).await["spec"], address);
    let created = create(&plane, V2, "b", &json!({"address": "i:81"})).await;
    assert_eq!(created["spec"], json!({"address": "i:81"}));
    assert_eq!(created["apiVersion"], "example.com/v2");
    let stored = plane.get(&format!("{V1}/b")).await;
    assert_eq!(stored["spec"], json!({"host": "i", "port": "81"}));
    reviews.take();
    let list = plane.get(V2).await;
    let addresses: Vec<&Value> = list["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| &it["spec"])
        .collect();
    assert_eq!(addresses, [&address, &json!({"address": "i:81"})]);
    assert_eq!(reviews.take().len(), 0, "lists use earlier conversions");
    plane.stop().await;
}

#[tokio::test(start_paused = true)]
async fn changes_are_converted_both_ways() {
    let (plane, _) = converting().await;
    create(&plane, V1, "a", &json!({"host": "h", "port": "80"})).await;
    let path = format!("{V2}/a");
    merge(&plane, &path, &json!({"spec": {"address": "j:82"}})).await;
    let stored = plane.get(&format!("{V1}/a")).await;
    assert_eq!(stored["spec"], json!({"host": "j", "port": "82"}));
    assert_eq!(stored["metadata"]["generation"], 2);
    let (code, deleted) = plane.call(Method::DELETE, &path, &Value::Null).await;
    assert_eq!((code, &deleted["kind"]), (200, &json!("Status")));
    // As in a write, the response is what would be stored.
    let dry = format!("{V2}?dryRun=All");
    let object = json!({
        "apiVersion": "example.com/v2", "kind": "Gauge", "metadata": {"name": "d"},
        "spec": {"address": "k:83"},
    });
    let shown = plane.create(&dry, &object).await;
    assert_eq!(shown["spec"], json!({"address": "k:83"}));
    assert_eq!(shown["apiVersion"], "example.com/v2");
    plane.stop().await;
}

#[tokio::test(start_paused = true)]
async fn watches_deliver_converted_objects() {
    let (plane, _) = converting().await;
    create(&plane, V1, "a", &json!({"host": "h", "port": "80"})).await;
    let path = format!("{V2}?watch=1&timeoutSeconds=5");
    let watch = exchange(plane.0.server(), Method::GET, &path, &[], "");
    let change = async {
        tokio::time::sleep(std::time::Duration::from_secs(1)).await;
        create(&plane, V1, "b", &json!({"host": "i", "port": "81"})).await;
    };
    let (events, ()) = tokio::join!(watch, change);
    let events = events.text();
    let shown: Vec<Value> = events
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap()["object"]["spec"].clone())
        .collect();
    assert_eq!(
        shown,
        [json!({"address": "h:80"}), json!({"address": "i:81"})]
    );
    plane.stop().await;
}

#[tokio::test(start_paused = true)]
async fn failed_conversion_fails_the_request() {
    let (plane, _) = converting().await;
    create(&plane, V1, "a", &json!({"host": "h", "port": "80"})).await;
    serve(
        &plane,
        "convert",
        |_| json!({"result": {"status": "Failure", "message": "no"}}),
    );
    let start = "conversion webhook for example.com/v1, Kind=Gauge failed: ";
    let path = format!("{V2}/a");
    let call = async |method| rejected(&plane, method, &path, &Value::Null, 500).await;
    assert_eq!(call(Method::GET).await, format!("{start}no"));
    let hang = service_fn(|_: Request<Full<Bytes>>| {
        std::future::pending::<Result<Response<Full<Bytes>>, http::Error>>()
    });
    let services = plane.0.server().webhook_services();
    services.serve("default", "convert", hang);
    let before = Instant::now();
    assert_eq!(
        call(Method::GET).await,
        format!(
            "{start}Post \"https://convert.default.svc:443/?timeout=30s\": context deadline \
             exceeded (Client.Timeout exceeded while awaiting headers)"
        )
    );
    assert_eq!(before.elapsed().as_secs(), 30);
    services.remove("default", "convert");
    assert_eq!(
        call(Method::DELETE).await,
        format!(
            "{start}Post \"https://convert.default.svc:443/?timeout=30s\": service \"convert\" not \
             found"
        )
    );
    plane.stop().await;
}

#[tokio::test(start_paused = true)]
async fn admission_webhooks_see_the_version_that_they_match() {
    let (plane, _) = converting().await;
    let reviews = serve(&plane, "hooks", |_| {
        let patch = json!([{"op": "add", "path": "/spec/port", "value": "99"}]);
        super::patched(&patch)
    });
    let rules = json!({"rules": [{
        "apiGroups": ["example.com"], "apiVersions": ["v1"], "operations": ["CREATE"],
        "resources": ["gauges"],
    }]});
    configure(&plane, "mutating", "c", &[super::webhook("hooks", &rules)]).await;
    let created = create(&plane, V2, "a", &json!({"address": "h:80"})).await;
    assert_eq!(created["spec"], json!({"address": "h:99"}));
    let seen = reviews.take();
    let seen = &seen[0]["request"];
    assert_eq!(seen["object"]["spec"], json!({"host": "h", "port": "80"}));
    assert_eq!(seen["kind"]["version"], "v1");
    assert_eq!(seen["requestKind"]["version"], "v2");
    plane.stop().await;
}

#[tokio::test(start_paused = true)]
async fn fields_against_the_schema_are_pruned_after_the_review() {
    let (plane, _) = converting().await;
    let extra = json!([{"op": "add", "path": "/spec/extra", "value": 1}]);
    serve(&plane, "mutate", move |_| super::patched(&extra));
    let reviews = serve(&plane, "validate", |_| json!({"allowed": true}));
    let rules = json!({"rules": [{
        "apiGroups": ["example.com"], "apiVersions": ["v1"], "resources": ["gauges"],
        "operations": ["CREATE", "UPDATE"],
    }]});
    configure(&plane, "mutating", "c", &[super::webhook("mutate", &rules)]).await;
    configure(
        &plane,
        "validating",
        "c",
        &[super::webhook("validate", &rules)],
    )
    .await;
    let spec = json!({"host": "h", "port": "80"});
    let created = create(&plane, V1, "a", &spec).await;
    let path = format!("{V1}/a");
    merge(&plane, &path, &json!({"metadata": {"labels": {"a": "b"}}})).await;
    let seen = reviews.take();
    assert_eq!(seen.len(), 2);
    for review in seen {
        assert_eq!(review["request"]["object"]["spec"]["extra"], 1);
    }
    assert_eq!(created["spec"], spec);
    let found = plane.get(&path).await;
    assert_eq!(found["spec"], spec);
    // As in upstream, the field that was pruned counts as a change.
    assert_eq!(found["metadata"]["generation"], 2);
    plane.stop().await;
}

#[cfg(feature = "cel")]
#[tokio::test(start_paused = true)]
async fn policies_read_converted_parameters() {
    let (plane, _) = converting().await;
    create(&plane, V1, "a", &json!({"host": "h", "port": "80"})).await;
    let policy = json!({
        "metadata": {"name": "p"},
        "spec": {
            "paramKind": {"apiVersion": "example.com/v2", "kind": "Gauge"},
            "matchConstraints": {"resourceRules": [{
                "apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"],
                "resources": ["configmaps"],
            }]},
            "validations": [{
                "expression": "object.metadata.name != 'x'",
                "messageExpression": "string(params.spec.address)",
            }],
        },
    });
    let binding = json!({
        "metadata": {"name": "b"},
        "spec": {
            "policyName": "p", "validationActions": ["Deny"],
            "paramRef": {"name": "a", "parameterNotFoundAction": "Deny"},
        },
    });
    plane
        .create(
            &format!("{}/validatingadmissionpolicies", super::ADMISSION),
            &policy,
        )
        .await;
    let bindings = format!("{}/validatingadmissionpolicybindings", super::ADMISSION);
    plane.create(&bindings, &binding).await;
    let body = super::map("x", &json!({}));
    assert_eq!(
        rejected(&plane, Method::POST, super::MAPS, &body, 422).await,
        "configmaps \"x\" is forbidden: ValidatingAdmissionPolicy 'p' with binding 'b' denied \
         request: h:80"
    );
    plane.stop().await;
}
