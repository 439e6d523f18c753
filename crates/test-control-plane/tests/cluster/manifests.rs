//! Definitions at the start, and applied files.

use std::fs;
use std::path::Path;

use http::Method;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::CustomResourceExt;
use kube::discovery::ApiResource;
use kube_test_control_plane::TestControlPlane;
use serde_json::{Value, json};

#[cfg(feature = "cel")]
use crate::support::missing;

const DEFINITION: &str = "
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.example.com}
spec:
  group: example.com
  names: {plural: widgets, kind: Widget}
  scope: Namespaced
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec: {type: object, properties: {size: {type: integer, default: 1}}}
";
const WIDGET: &str = "
apiVersion: example.com/v1
kind: Widget
metadata: {name: w, namespace: team}
spec: {}
";
const NAMESPACE: &str = "{apiVersion: v1, kind: Namespace, metadata: {name: team}}";
const WIDGETS: &str = "/apis/example.com/v1/namespaces/team/widgets";

/// The type of the definition above.
struct Widget;

impl CustomResourceExt for Widget {
    fn crd() -> CustomResourceDefinition {
        let value: Value = serde_saphyr::from_str(DEFINITION).unwrap();
        serde_json::from_value(value).unwrap()
    }

    fn crd_name() -> &'static str {
        "widgets.example.com"
    }

    fn api_resource() -> ApiResource {
        unreachable!("the control plane asks for the definition alone")
    }

    fn shortnames() -> &'static [&'static str] {
        &[]
    }
}

async fn get(plane: &TestControlPlane, path: &str) -> (u16, Value) {
    let server = plane.server();
    server
        .call_json(Method::GET, path, "test", &Value::Null)
        .await
}

/// Applies one file with this text.
async fn apply(plane: &TestControlPlane, text: &str) -> Result<(), String> {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("f.yaml");
    fs::write(&file, text).unwrap();
    let applied = plane.apply(&file).await;
    let shown = |path: &Path, text: String| text.replace(&path.display().to_string(), "f.yaml");
    applied.map_err(|error| shown(&file, error.to_string()))
}

#[tokio::test]
async fn custom_resources_of_a_type_are_served_from_the_start() {
    let plane = TestControlPlane::builder().crd::<Widget>().start().await;
    apply(&plane, &format!("{WIDGET}---\n{NAMESPACE}"))
        .await
        .unwrap();
    let (code, widget) = get(&plane, &format!("{WIDGETS}/w")).await;
    assert_eq!((code, &widget["spec"]), (200, &json!({"size": 1})));
    let manager = &widget["metadata"]["managedFields"][0];
    assert_eq!(manager["manager"], "test-control-plane");
    assert_eq!(manager["operation"], "Apply");
    plane.stop().await;
}

#[tokio::test]
async fn folders_are_applied_with_definitions_first() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("a.yaml"), WIDGET).unwrap();
    fs::write(folder.path().join("b.yml"), NAMESPACE).unwrap();
    fs::write(folder.path().join("c.yaml"), DEFINITION).unwrap();
    fs::write(folder.path().join("notes.txt"), "no manifest").unwrap();
    let plane = TestControlPlane::builder().start().await;
    plane.apply(folder.path()).await.unwrap();
    plane.apply(folder.path()).await.unwrap();
    let (_, list) = get(&plane, WIDGETS).await;
    assert_eq!(list["items"].as_array().unwrap().len(), 1, "{list}");
    plane.stop().await;

    let with_definitions = TestControlPlane::builder().crds_from(folder.path());
    let plane = with_definitions.start().await;
    let (code, list) = get(&plane, WIDGETS).await;
    assert_eq!((code, &list["items"]), (200, &json!([])));
    plane.stop().await;
}

#[tokio::test]
async fn errors_name_file_document_and_object() {
    let plane = TestControlPlane::builder().start().await;
    for (text, wanted) in [
        (
            WIDGET.to_owned(),
            "f.yaml: document 1: apply Widget w: no matches for kind \"Widget\" in version \
             \"example.com/v1\"; ensure CRDs are installed first",
        ),
        (
            format!("{NAMESPACE}\n---\n{DEFINITION}---\n{WIDGET}  size: big\n")
                .replace("spec: {}", "spec:"),
            "f.yaml: document 3: apply Widget w: failed to create typed patch object (team/w; \
             example.com/v1, Kind=Widget): .spec.size: expected numeric (int or float), got string",
        ),
    ] {
        assert_eq!(apply(&plane, &text).await.unwrap_err(), wanted);
    }
    plane.stop().await;

    let missing = TestControlPlane::builder().crds_from("/no/such/file.yaml");
    let error = missing.try_start().await.unwrap_err().to_string();
    assert!(error.starts_with("read /no/such/file.yaml: "), "{error}");
    let folder = tempfile::tempdir().unwrap();
    let empty = TestControlPlane::builder().crds_from(folder.path());
    let error = empty.try_start().await.unwrap_err().to_string();
    assert!(
        error.ends_with(": contains no CustomResourceDefinition"),
        "{error}"
    );
}

#[cfg(feature = "cel")]
#[tokio::test]
async fn definitions_of_operators_are_served_with_their_examples() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cluster/operators");
    let plane = TestControlPlane::builder().start().await;
    plane.apply(&folder).await.unwrap();
    plane.apply(&folder).await.unwrap();
    for (file, path) in [
        (
            "certificates",
            "certs.example.com/v1/namespaces/default/certificates",
        ),
        (
            "monitors",
            "monitoring.example.com/v1/namespaces/default/podmonitors",
        ),
        (
            "databases",
            "databases.example.com/v1/namespaces/default/databaseclusters",
        ),
    ] {
        let text = fs::read_to_string(folder.join(format!("{file}.yaml"))).unwrap();
        let example = text.rsplit("\n---\n").next().unwrap();
        let example: Value = serde_saphyr::from_str(example).unwrap();
        let path = format!("/apis/{path}/example");
        let (code, stored) = get(&plane, &path).await;
        assert_eq!(code, 200, "{stored}");
        assert_eq!(missing(&example, &stored, ""), [""; 0]);
        let server = plane.server();
        let (code, answer) = server.call_json(Method::PUT, &path, "test", &stored).await;
        assert_eq!((code, &answer), (200, &stored));
    }
    plane.stop().await;
}

#[cfg(feature = "cel")]
#[tokio::test]
async fn rules_of_operators_are_evaluated() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cluster/operators");
    let plane = TestControlPlane::builder().start().await;
    plane.apply(&folder).await.unwrap();
    let path = "/apis/databases.example.com/v1/namespaces/default/databaseclusters/example";
    let (_, stored) = get(&plane, path).await;
    for (pointer, value, wanted) in [
        (
            "/spec/imageName",
            json!("postgresql:17"),
            "spec: Invalid value: imageName and imageCatalogRef are mutually exclusive",
        ),
        (
            "/spec/instances",
            json!(2),
            "spec.minSyncReplicas: Invalid value: synchronous replicas need three instances",
        ),
        (
            "/spec/imageCatalogRef/major",
            json!(18),
            "spec.imageCatalogRef.major: Invalid value: 18: major is immutable",
        ),
        (
            "/spec/imageCatalogRef/kind",
            json!("Other"),
            "spec.imageCatalogRef: Invalid value: only image catalogs are supported",
        ),
        (
            "/spec/bootstrap/initdb/builtinLocale",
            json!("C"),
            "spec.bootstrap.initdb: Invalid value: builtinLocale needs the provider builtin",
        ),
        (
            "/spec/storage",
            json!({}),
            "spec.storage: Invalid value: the size can't be unset",
        ),
    ] {
        let mut changed = stored.clone();
        let (parent, name) = pointer.rsplit_once('/').unwrap();
        changed.pointer_mut(parent).unwrap()[name] = value;
        let server = plane.server();
        let (code, answer) = server.call_json(Method::PUT, path, "test", &changed).await;
        let message = answer["message"].as_str().unwrap_or_default();
        assert_eq!(code, 422, "{pointer}: {answer}");
        assert!(message.ends_with(wanted), "{pointer}: {message}");
    }
    plane.stop().await;
}
