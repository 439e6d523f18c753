//! Tests of envelopes, of messages decoded by the schema, and of invalid bytes.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use kube_apimachinery::protobuf::PREFIX;

use super::*;
use crate::kinds;

/// Encodes a length-delimited field.
fn field(number: u8, bytes: &[u8]) -> Vec<u8> {
    let length = u8::try_from(bytes.len()).expect("test messages are short");
    assert!(length < 0x80, "test messages are short");
    [&[number << 3 | 2, length][..], bytes].concat()
}

fn enveloped(api_version: &str, kind: &str, message: &[u8]) -> Vec<u8> {
    let type_meta = [field(1, api_version.as_bytes()), field(2, kind.as_bytes())].concat();
    [
        &PREFIX[..],
        &field(1, &type_meta),
        &field(2, message),
        &field(3, b""),
        &field(4, b""),
    ]
    .concat()
}

fn config_map() -> Vec<u8> {
    let entry = [field(1, b"key"), field(2, b"value")].concat();
    let binary = [field(1, b"bin"), field(2, b"\x00\xff")].concat();
    let metadata = [field(1, b"cm"), field(2, b""), vec![0x38, 0]].concat();
    let message = [field(1, &metadata), field(2, &entry), field(3, &binary)].concat();
    enveloped("v1", "ConfigMap", &message)
}

fn read(api_version: &str, kind: &str, body: &[u8]) -> ApiResult<Draft> {
    object(kinds::by_kind(api_version, kind).unwrap(), body)
}

#[test]
fn object_matches_go_json() {
    let expected = json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "cm"},
        "data": {"key": "value"}, "binaryData": {"bin": "AP8="},
    });
    let draft = read("v1", "ConfigMap", &config_map()).unwrap();
    assert_eq!(draft.value, expected);
    assert_eq!(value(&config_map()).unwrap(), expected);
    assert_eq!(
        metadata(&config_map()),
        Some(json!({"name": "cm", "generateName": "", "generation": 0}))
    );
    // Without a type in the envelope, the kind of the URL applies.
    let untyped = [&PREFIX[..], &field(2, &field(1, &field(1, b"cm")))].concat();
    let draft = read("v1", "ConfigMap", &untyped).unwrap();
    let expected = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "cm"}});
    assert_eq!(draft.value, expected);
    assert!(value(&untyped).is_err());
}

#[test]
fn messages_lists_and_embedded_structs_follow_the_schema() {
    // A volume's source is embedded and split into two parts here.
    let secret = field(1, b"s");
    let mode = vec![0x18, 0x80, 0x03];
    let volume = [
        field(1, b"v"),
        field(2, &field(6, &secret)),
        field(2, &field(6, &mode)),
    ]
    .concat();
    let port = [vec![0x18, 80], field(4, b"TCP"), vec![0x48, 7]].concat();
    let container = [field(1, b"c"), field(6, &port)].concat();
    let spec = [
        field(1, &volume),
        field(2, &container),
        vec![0x20, 30],
        vec![0x58, 1],
    ]
    .concat();
    let pod = enveloped("v1", "Pod", &field(2, &spec));
    let expected = json!({
        "volumes": [{"name": "v", "secret": {"secretName": "s", "defaultMode": 384}}],
        "containers": [
            {"name": "c", "ports": [{"containerPort": 80, "protocol": "TCP"}], "resources": {}},
        ],
        "terminationGracePeriodSeconds": 30, "hostNetwork": true,
    });
    assert_eq!(read("v1", "Pod", &pod).unwrap().value["spec"], expected);
}

#[test]
fn numbers_are_read_packed_and_unpacked() {
    // Supplemental groups of a pod.
    let security = [field(4, &[1, 0x80, 0x01]), vec![0x20, 5]].concat();
    let spec = field(2, &field(14, &security));
    let pod = read("v1", "Pod", &enveloped("v1", "Pod", &spec)).unwrap();
    let groups = &pod.value["spec"]["securityContext"]["supplementalGroups"];
    assert_eq!(groups, &json!([1, 128, 5]));
}

#[test]
fn revision_data_is_kept_verbatim() {
    let data = field(1, br#"{"b": 1,"a":2}"#);
    let message = [field(1, &field(1, b"r")), field(2, &data), vec![0x18, 4]].concat();
    let body = enveloped("apps/v1", "ControllerRevision", &message);
    let draft = read("apps/v1", "ControllerRevision", &body).unwrap();
    assert_eq!(draft.data.as_deref(), Some(r#"{"b": 1,"a":2}"#));
    assert_eq!(draft.value["revision"], json!(4));
    assert_eq!(draft.value.get("data"), None);
}

#[test]
fn bad_bodies_fail_with_go_messages() {
    let message = |body: &[u8]| {
        let error = read("v1", "ConfigMap", body).unwrap_err();
        assert_eq!((error.code, &*error.reason), (400, "BadRequest"));
        error.message
    };
    let unrecognized = "the object provided is unrecognized (must be of type ConfigMap): ";
    let rest = message(b"").replace(unrecognized, "");
    assert_eq!(rest, "empty data (<empty>)");
    let rest = message(b"k8s\0").replace(unrecognized, "");
    assert_eq!(rest, "empty body (6b387300)");
    let rest = message(br#"{"kind":"ConfigMap","apiVersion":"v1"}"#).replace(unrecognized, "");
    let expected = "provided data does not appear to be a protobuf message, expected prefix \
                    [107 56 115 0] ({\"kind\":\"ConfigMap\",\"apiVersio ...)";
    assert_eq!(rest, expected);
    let body = config_map();
    let rest = message(&body[..20]).replace(unrecognized, "");
    let hex = "6b3873000a0f0a02763112";
    assert!(
        rest.starts_with(&format!("unexpected EOF ({hex}")),
        "{rest}"
    );
    let handled = "ConfigMap in version \"v1\" cannot be handled as a ConfigMap: ";
    let cut = enveloped("v1", "ConfigMap", &[0x0a, 5, 0x0a]);
    assert_eq!(message(&cut), format!("{handled}unexpected EOF"));
    let wrong = enveloped("v1", "ConfigMap", &[0x08, 1]);
    let text = format!("{handled}proto: wrong wireType = 0 for field Metadata");
    assert_eq!(message(&wrong), text);
}

#[test]
fn decoder_survives_truncated_and_changed_bodies() {
    let body = config_map();
    for at in 0..body.len() {
        let _ = read("v1", "ConfigMap", &body[..at]);
        let _ = metadata(&body[..at]);
        for byte in 0..=u8::MAX {
            let mut changed = body.clone();
            changed[at] = byte;
            let _ = value(&changed);
            let _ = metadata(&changed);
        }
    }
}

/// The bodies come from another encoder. The expected values have Go's defaults for omitted fields.
#[test]
fn messages_of_another_encoder_are_decoded() {
    let path = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../../test/vectors/protobuf.jsonl"
    );
    let lines = std::fs::read_to_string(path).unwrap();
    let mut kinds = Vec::new();
    for line in lines.lines() {
        let case: Value = serde_json::from_str(line).unwrap();
        let body = STANDARD.decode(case["body"].as_str().unwrap()).unwrap();
        assert_eq!(value(&body).unwrap(), case["expect"]);
        kinds.push(case["expect"]["kind"].clone());
        for cut in 0..body.len() {
            let _ = value(&body[..cut]);
        }
    }
    assert!(kinds.len() > 20, "{kinds:?}");
}
