//! Protobuf messages for tests.

use kube_apimachinery::protobuf;

/// Encodes a field of at most 127 bytes.
pub(crate) fn field(number: u8, bytes: impl AsRef<[u8]>) -> Vec<u8> {
    let bytes = bytes.as_ref();
    let length = u8::try_from(bytes.len()).unwrap();
    assert!(length < 0x80, "test messages are short");
    [&[number << 3 | 2, length][..], bytes].concat()
}

/// Encodes a watch event with its length.
pub(crate) fn event(event_type: &str, kind: &str, object: &[u8]) -> Vec<u8> {
    let type_meta = field(1, [field(1, "v1"), field(2, kind)].concat());
    let enveloped = [&protobuf::PREFIX[..], &type_meta, &field(2, object)].concat();
    let event = [field(1, event_type), field(2, field(1, enveloped))].concat();
    let length = u32::try_from(event.len()).unwrap();
    [&length.to_be_bytes()[..], &event].concat()
}
