//! Tests of times and of repeated messages. `test/integration` compares whole pods with their JSON.

use super::*;

#[test]
fn times_beyond_the_clock_saturate() {
    let time_of = |seconds: u64| {
        let mut message = vec![0x08];
        let mut rest = seconds;
        while rest >= 0x80 {
            message.push((rest & 0x7f) as u8 | 0x80);
            rest >>= 7;
        }
        message.push((rest & 0x7f) as u8);
        time(Value::Bytes(&message)).unwrap()
    };
    assert_eq!(time_of(0), Some(Timestamp::UNIX_EPOCH));
    assert_eq!(time_of(i64::MAX.cast_unsigned()), Some(Timestamp::MAX));
    assert_eq!(time_of(i64::MIN.cast_unsigned()), Some(Timestamp::MIN));
}

/// Returns a field with a message or a string.
fn field(number: u8, content: &[u8]) -> Vec<u8> {
    let mut bytes = vec![number << 3 | 2, u8::try_from(content.len()).unwrap()];
    bytes.extend(content);
    bytes
}

#[test]
fn occurrences_of_a_message_merge() {
    let label = |key: &str| field(11, &[field(1, key.as_bytes()), field(2, b"x")].concat());
    let metadata = |name: &str, key: &str| {
        let name = if name.is_empty() {
            Vec::new()
        } else {
            field(1, name.as_bytes())
        };
        field(1, &[name, label(key)].concat())
    };
    let claim = |name: &str| field(2, &field(10, &field(1, name.as_bytes())));
    let read_only = field(2, &field(10, &[0x10, 1]));
    let volume = |name: &str, source: &[u8]| {
        let volume = [field(1, name.as_bytes()), source.to_vec()].concat();
        field(2, &field(1, &volume))
    };
    let status = |phase: &str, condition: &str| {
        let ready = [field(1, condition.as_bytes()), field(2, b"True")].concat();
        let phase = if phase.is_empty() {
            Vec::new()
        } else {
            field(1, phase.as_bytes())
        };
        field(3, &[phase, field(2, &ready)].concat())
    };
    let message = [
        metadata("web-0", "a"),
        volume(
            "data",
            &[claim("old"), claim("data-web-0"), read_only].concat(),
        ),
        status("Running", "Other"),
        metadata("", "b"),
        volume("logs", &claim("logs-web-0")),
        status("", "Ready"),
    ];
    let pod = decode(&message.concat()).unwrap();
    assert_eq!(&*pod.name, "web-0");
    let labels = ["a", "b"].map(|key| pod.labels.get(key).is_some());
    assert_eq!(labels, [true, true]);
    let volumes = pod.claim_volumes.iter();
    let volumes: Vec<_> = volumes.map(|it| (&*it.name, &*it.claim_name)).collect();
    assert_eq!(volumes, [("data", "data-web-0"), ("logs", "logs-web-0")]);
    assert_eq!((pod.phase, pod.readiness.ready), (PodPhase::Running, true));
}

#[test]
fn empty_deletion_timestamp_is_a_deletion() {
    let pod = decode(&field(1, &field(9, &[]))).unwrap();
    assert_eq!(pod.deletion_timestamp, Some(ZERO_TIME));
    assert!(pod.is_terminating());
    assert_eq!(decode(&field(1, &[])).unwrap().deletion_timestamp, None);
}

#[test]
fn unready_pod_tells_since_when_and_its_trouble() {
    let status = |number: u8, reason: &str| {
        let state = field(2, &field(1, &field(1, reason.as_bytes())));
        field(number, &[field(1, b"main"), state].concat())
    };
    let created = field(1, &field(8, &[0x08, 7]));
    let containers = [status(8, "CrashLoopBackOff"), status(10, "ErrImagePull")].concat();
    let pod = decode(&[created, field(3, &containers)].concat()).unwrap();
    let unready = Unready {
        since: Some(Timestamp::from_second(7).unwrap()),
        trouble: Some(ContainerTrouble::ImagePull),
    };
    assert_eq!(pod.unready.as_deref(), Some(&unready));

    let since = field(4, &[0x08, 9]);
    let condition = |status: &[u8]| {
        let ready = [field(1, b"Ready"), field(2, status), since.clone()].concat();
        field(2, &ready)
    };
    let containers = status(8, "ContainerCreating");
    let pod = |ready: &[u8]| decode(&field(3, &[condition(ready), containers.clone()].concat()));
    let unready = Unready {
        since: Some(Timestamp::from_second(9).unwrap()),
        trouble: None,
    };
    assert_eq!(pod(b"False").unwrap().unready.as_deref(), Some(&unready));
    assert_eq!(pod(b"True").unwrap().unready, None);
}
