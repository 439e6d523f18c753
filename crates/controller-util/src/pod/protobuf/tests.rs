//! Tests of times. `test/integration` compares whole pods with their JSON.

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
