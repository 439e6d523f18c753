//! Tests of parsing, printing, rounding and comparing quantities.

use super::*;

fn parse(text: &str) -> Quantity {
    text.parse().unwrap_or_else(|err| panic!("{text}: {err}"))
}

fn rounded(text: &str) -> String {
    let mut quantity = parse(text);
    quantity.round_up_milli();
    quantity.to_string()
}

#[test]
fn quantities_print_in_canonical_form() {
    for (text, expected) in [
        ("0", "0"),
        ("0.0", "0"),
        ("-0", "0"),
        ("0Ki", "0"),
        ("0.5", "500m"),
        ("-0.5", "-500m"),
        (".5", "500m"),
        ("1.", "1."),
        ("1000", "1k"),
        ("1000m", "1"),
        ("1500m", "1500m"),
        ("100", "100"),
        ("10000", "10k"),
        ("1000000", "1M"),
        ("1234567", "1234567"),
        ("1024Mi", "1Gi"),
        ("1024Ki", "1Mi"),
        ("1023Mi", "1023Mi"),
        ("1536Mi", "1536Mi"),
        ("2048Gi", "2Ti"),
        ("1.5Gi", "1536Mi"),
        ("0.5Gi", "512Mi"),
        ("0.5Ki", "512"),
        ("1.5Ki", "1536"),
        ("0.1Gi", "107374182400m"),
        ("0.0001Ki", "102400u"),
        ("1e3", "1e3"),
        ("1E3", "1E3"),
        ("1000e3", "1e6"),
        ("1e4", "10e3"),
        ("1.5e3", "1500"),
        ("1e-3", "1e-3"),
        ("1e+3", "1e+3"),
        ("1E", "1E"),
        ("1u", "1u"),
        ("100n", "100n"),
        ("1P", "1P"),
    ] {
        assert_eq!(parse(text).to_string(), expected, "{text}");
    }
}

#[test]
fn texts_that_go_considers_canonical_are_kept() {
    for text in ["1.500", "007", "+5", "01Gi", "+1Gi", "1e03"] {
        assert_eq!(parse(text).to_string(), text);
    }
    assert_eq!(parse("08Gi").to_string(), "8Gi");
    assert_eq!(parse("0.500").to_string(), "500m");
}

#[test]
fn fractions_of_a_billionth_round_away_from_zero() {
    assert_eq!(parse("0.0000000001").to_string(), "1n");
    assert_eq!(parse("-0.0000000001").to_string(), "-1n");
    assert_eq!(parse("1.5n").to_string(), "2n");
    assert_eq!(parse("1.9999999999").to_string(), "2");
    assert_eq!(parse("1e-2000000000").to_string(), "1e-9");
}

#[test]
fn binary_quantities_are_capped_and_decimal_ones_are_not() {
    assert_eq!(parse("9Ei").to_string(), "9223372036854775807");
    assert_eq!(parse("-9Ei").to_string(), "-9223372036854775807");
    assert_eq!(parse("7Ei").to_string(), "7Ei");
    assert_eq!(parse("100E").to_string(), "100E");
    assert_eq!(
        parse("1234567890123456789012345678901234567890")
            .to_string()
            .len(),
        40
    );
    assert_eq!(parse("1e2147483647").to_string(), "10e2147483646");
    assert_eq!(parse("100E").value(), i64::MAX);
    assert_eq!(parse("-100E").value(), i64::MIN);
    assert_eq!(parse("1e2147483647").value(), i64::MAX);
}

#[test]
fn parse_errors_match_go() {
    for text in ["", "a", "1.2.3", "1 ", " 1", "1mm1x", "1Gi ", "é"] {
        assert_eq!(
            text.parse::<Quantity>(),
            Err(QuantityError::Format),
            "{text}"
        );
    }
    for text in [
        "1e",
        "1Gi5",
        "1mi",
        "1K",
        "1e99999999999999999999",
        "1ki",
        "1Ee3",
    ] {
        assert_eq!(
            text.parse::<Quantity>(),
            Err(QuantityError::Suffix),
            "{text}"
        );
    }
    assert_eq!(".Ei".parse::<Quantity>(), Err(QuantityError::Number));
    assert_eq!("+".parse::<Quantity>().unwrap().to_string(), "0");
    assert_eq!(
        QuantityError::Format.to_string(),
        "quantities must match the regular expression \
         '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
    );
}

#[test]
fn defaulting_rounds_up_to_thousandths() {
    for (text, expected) in [
        ("1", "1"),
        ("1m", "1m"),
        ("1u", "1m"),
        ("1001u", "2m"),
        ("-1u", "-1m"),
        ("0.12345", "124m"),
        ("1.500", "1.500"),
        ("1Gi", "1Gi"),
        ("0.1Gi", "107374182400m"),
        ("0", "0"),
    ] {
        assert_eq!(rounded(text), expected, "{text}");
    }
}

#[test]
fn values_round_away_from_zero() {
    assert_eq!(parse("1Ki").value(), 1024);
    assert_eq!(parse("1500m").value(), 2);
    assert_eq!(parse("-1500m").value(), -2);
    assert_eq!(parse("1500m").milli_value(), 1500);
    assert_eq!(parse("1u").milli_value(), 1);
    assert_eq!(parse("2k").milli_value(), 2_000_000);
}

#[test]
fn quantities_compare_by_value() {
    assert_eq!(parse("1"), parse("1000m"));
    assert_eq!(parse("0"), parse("-0"));
    assert_eq!(parse("1Ki"), parse("1024"));
    assert_eq!(parse("1e2147483647"), parse("10e2147483646"));
    let ascending = [
        "-1Gi", "-1G", "-1", "-1n", "0", "1n", "1m", "999m", "1", "1k", "1Ki", "1e30",
    ];
    for pair in ascending.windows(2) {
        assert!(parse(pair[0]) < parse(pair[1]), "{pair:?}");
    }
    assert_eq!(Quantity::default(), parse("0"));
    assert_eq!(Quantity::default().to_string(), "0");
}

#[test]
fn printing_is_idempotent() {
    for text in [
        "0.5",
        "1024Mi",
        "1e4",
        "0.1Gi",
        "1000e3",
        "9Ei",
        "-0.25",
        "1.5e3",
        "123456789n",
    ] {
        let printed = parse(text).to_string();
        assert_eq!(parse(&printed).to_string(), printed, "{text}");
        assert_eq!(parse(&printed), parse(text));
    }
}

#[test]
fn sums_are_exact() {
    for (left, right, sum, difference) in [
        ("1", "1", "2", "0"),
        ("50k", "20", "50020", "49980"),
        ("1.5", "500m", "2", "1"),
        ("1Gi", "1Mi", "1025Mi", "1023Mi"),
        ("-3", "5", "2", "-8"),
        ("1", "-2", "-1", "3"),
        ("0", "1Gi", "1Gi", "-1Gi"),
        (
            "999999999999999999999",
            "1",
            "1e21",
            "999999999999999999998",
        ),
    ] {
        let [left, right, sum, difference] =
            [left, right, sum, difference].map(|text| text.parse::<Quantity>().unwrap());
        assert_eq!(left.checked_add(&right), Some(sum), "{left} + {right}");
        assert_eq!(
            left.checked_sub(&right),
            Some(difference),
            "{left} - {right}"
        );
    }
}
