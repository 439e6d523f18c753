//! Tests of numbers and percentages.

use super::*;

fn scaled(value: &str, total: i32, round_up: bool) -> i32 {
    IntOrString::from(value)
        .scaled_value(total, round_up)
        .unwrap()
}

fn error(value: &str) -> String {
    IntOrString::from(value)
        .scaled_value(10, true)
        .unwrap_err()
        .to_string()
}

#[test]
fn percentages_round_up_or_down() {
    assert_eq!(scaled("25%", 10, true), 3);
    assert_eq!(scaled("25%", 10, false), 2);
    assert_eq!(scaled("100%", 7, false), 7);
    assert_eq!(scaled("0%", 7, true), 0);
    assert_eq!(scaled("+50%", 4, true), 2);
    assert_eq!(scaled("-25%", 10, true), -2);
    assert_eq!(scaled("-25%", 10, false), -3);
    assert_eq!(scaled("9223372036854775807%", i32::MAX, false), i32::MAX);
    assert_eq!(IntOrString::from(-3).scaled_value(10, true), Ok(-3));
}

#[test]
fn errors_match_go() {
    let prefix = "invalid value for IntOrString: ";
    assert_eq!(
        error("5"),
        format!("{prefix}invalid type: string is not a percentage")
    );
    assert_eq!(
        error("a%"),
        format!(r#"{prefix}invalid value "a%": strconv.Atoi: parsing "a": invalid syntax"#)
    );
    assert_eq!(
        error("%"),
        format!(r#"{prefix}invalid value "%": strconv.Atoi: parsing "": invalid syntax"#)
    );
    assert_eq!(
        error("\"\n\u{1}é\u{200b}%"),
        format!(
            r#"{prefix}invalid value "\"\n\x01é\u200b%": strconv.Atoi: parsing "\"\n\x01é\u200b": invalid syntax"#
        )
    );
    assert_eq!(
        error("9223372036854775808%"),
        format!(
            r#"{prefix}invalid value "9223372036854775808%": strconv.Atoi: parsing "9223372036854775808": value out of range"#
        )
    );
}

#[test]
fn json_is_a_number_or_a_string() {
    for (json, value) in [
        ("5", IntOrString::from(5)),
        (r#""5%""#, IntOrString::from("5%")),
    ] {
        assert_eq!(serde_json::from_str::<IntOrString>(json).unwrap(), value);
        assert_eq!(serde_json::to_string(&value).unwrap(), json);
    }
    assert_eq!(
        serde_json::from_str::<IntOrString>("null").unwrap(),
        IntOrString::Int(0)
    );
    for json in [
        "2147483648",
        "-2147483649",
        "18446744073709551615",
        "1.5",
        "true",
        "[]",
    ] {
        assert!(serde_json::from_str::<IntOrString>(json).is_err(), "{json}");
    }
    assert_eq!(IntOrString::from("25%").to_string(), "25%");
    assert_eq!(IntOrString::from(7).to_string(), "7");
}

#[test]
fn quoting_matches_go() {
    for (text, quoted) in [
        ("", r#""""#),
        ("a'b c", r#""a'b c""#),
        ("\"\\", r#""\"\\""#),
        ("\u{7}\u{8}\u{b}\u{c}\n\r\t", r#""\a\b\v\f\n\r\t""#),
        ("\0\u{1f}\u{7f}", r#""\x00\x1f\x7f""#),
        ("\u{85}\u{a0}\u{feff}", r#""\u0085\u00a0\ufeff""#),
        ("\u{e0001}\u{1f600}", "\"\\U000e0001\u{1f600}\""),
    ] {
        assert_eq!(go_quote(text), quoted);
    }
}
