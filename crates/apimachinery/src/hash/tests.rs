//! Tests against hashes from upstream.

use super::*;

const MODERN: &str = r#"{"spec":{"template":{"$patch":"replace","metadata":{"labels":{"app":"web"}},"spec":{"containers":[{"image":"registry.example/web:1","imagePullPolicy":"IfNotPresent","name":"web","resources":{},"terminationMessagePath":"/dev/termination-log","terminationMessagePolicy":"File"}],"dnsPolicy":"ClusterFirst","restartPolicy":"Always","schedulerName":"default-scheduler","securityContext":{},"terminationGracePeriodSeconds":10}}}}"#;

const MINIMAL: &str =
    r#"{"spec":{"template":{"$patch":"replace","metadata":{},"spec":{"containers":null}}}}"#;

fn encoded(data: &str, probe: &str) -> (u32, String) {
    let hash = fnv1_32(probe.as_bytes(), fnv1_32(data.as_bytes(), FNV1_32_OFFSET));
    (hash, safe_encode_string(&hash.to_string()))
}

#[test]
fn revision_data_hashes_match_the_reference() {
    let creation = r#""metadata":{"creationTimestamp":null,"labels""#;
    let before_1_34 = MODERN.replace(r#""metadata":{"labels""#, creation);
    assert_eq!(
        (MODERN.len(), before_1_34.len(), MINIMAL.len()),
        (424, 449, 83)
    );
    for (data, probe, hash, text) in [
        (MODERN, "0", 2_691_052_326, "6bf549676b"),
        (MODERN, "1", 2_691_052_327, "6bf549676c"),
        (MODERN, "2", 2_691_052_324, "6bf5496768"),
        (MODERN, "10", 2_816_640_597, "6d5bb849fc"),
        (before_1_34.as_str(), "0", 3_559_973_836, "799ffc7d7b"),
        (before_1_34.as_str(), "1", 3_559_973_837, "799ffc7d7c"),
        (before_1_34.as_str(), "2", 3_559_973_838, "799ffc7d7d"),
        (before_1_34.as_str(), "10", 3_589_708_679, "79dfc4dbcf"),
        (MINIMAL, "0", 1_298_773_393, "56fdcc77f7"),
        (MINIMAL, "1", 1_298_773_392, "56fdcc77f6"),
        (MINIMAL, "2", 1_298_773_395, "56fdcc77f9"),
        (MINIMAL, "10", 1_835_585_920, "5d799d9f64"),
        ("", "0", 84_696_367, "d8bfb7bc"),
    ] {
        assert_eq!(
            encoded(data, probe),
            (hash, text.to_owned()),
            "{data} {probe}"
        );
    }
}

#[test]
fn empty_data_hashes_match_the_reference() {
    for (probe, text) in [
        ("1", "d8bfb7bb"),
        ("2", "d8bfb7b9"),
        ("10", "988b8f494"),
        ("100", "5fb45d88cd"),
        ("", "65bb57b6b5"),
    ] {
        assert_eq!(encoded("", probe).1, text, "{probe}");
    }
}

#[test]
fn characters_are_encoded_by_code_point() {
    assert_eq!(safe_encode_string("0123456789"), "456789bcdf");
    assert_eq!(safe_encode_string("é\u{1f600}").len(), 2);
}

#[test]
fn shards_use_the_fnv_1a_hash() {
    assert_eq!(fnv1a_64(""), 0xcbf2_9ce4_8422_2325);
    assert_eq!(fnv1a_64("a"), 0xaf63_dc4c_8601_ec8c);
}
