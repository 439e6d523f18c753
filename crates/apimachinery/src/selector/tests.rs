//! Tests of matching and of rejected selectors.

use super::*;

fn labels(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    pairs
        .iter()
        .map(|(k, v)| ((*k).to_owned(), (*v).to_owned()))
        .collect()
}

fn expression(key: &str, operator: &str, values: &[&str]) -> LabelSelector {
    LabelSelector {
        match_labels: BTreeMap::new(),
        match_expressions: vec![LabelSelectorRequirement {
            key: key.to_owned(),
            operator: operator.to_owned(),
            values: values.iter().map(|v| (*v).to_owned()).collect(),
        }],
    }
}

#[test]
fn none_selects_nothing_and_empty_everything() {
    let nothing = Selector::from_label_selector(None).unwrap();
    assert!(!nothing.matches(&labels(&[])));
    assert!(!nothing.is_empty());
    let everything = Selector::from_label_selector(Some(&LabelSelector::default())).unwrap();
    assert!(everything.matches(&labels(&[])));
    assert!(everything.is_empty());
}

#[test]
fn expressions_follow_their_operators() {
    let cases: &[(&str, &[&str], bool, bool, bool)] = &[
        ("In", &["a", "b"], true, false, false),
        ("NotIn", &["a", "b"], false, true, true),
        ("Exists", &[], true, true, false),
        ("DoesNotExist", &[], false, false, true),
    ];
    for (operator, values, with_a, with_c, without) in cases {
        let selector = expression("k", operator, values);
        let selector = Selector::from_label_selector(Some(&selector)).unwrap();
        assert_eq!(
            selector.matches(&labels(&[("k", "a")])),
            *with_a,
            "{operator}"
        );
        assert_eq!(
            selector.matches(&labels(&[("k", "c")])),
            *with_c,
            "{operator}"
        );
        assert_eq!(selector.matches(&labels(&[])), *without, "{operator}");
    }
}

#[test]
fn malformed_selectors_are_rejected() {
    for selector in [
        expression("k", "Near", &[]),
        expression("k", "In", &[]),
        expression("k", "Exists", &["a"]),
        expression("", "Exists", &[]),
        expression("a/b/c", "Exists", &[]),
        expression("-k", "Exists", &[]),
        expression("Example.com/k", "Exists", &[]),
        expression("k", "In", &["not valid"]),
        expression("k", "In", &[&"x".repeat(64)]),
    ] {
        assert!(
            Selector::from_label_selector(Some(&selector)).is_err(),
            "{selector:?}"
        );
    }
}

#[test]
fn query_strings_print_sorted_by_key() {
    for (text, printed) in [
        ("", ""),
        ("a=b", "a=b"),
        ("b==c, a!=d", "a!=d,b=c"),
        ("x in (b, a),!y,z", "x in (a,b),!y,z"),
        ("x notin ()", "x notin ()"),
        ("n>5", "n>5"),
        ("n<5", "n<5"),
        ("e=", "e="),
        ("e=,f", "e=,f"),
    ] {
        assert_eq!(
            Selector::parse(text).unwrap().to_string(),
            printed,
            "{text:?}"
        );
    }
}

#[test]
fn query_string_errors_match_the_reference() {
    let requirement = |rest: &str| format!("unable to parse requirement: {rest}");
    for (text, message) in [
        (
            "=a",
            "found '=', expected: !, identifier, or 'end of string'".to_owned(),
        ),
        (
            "a b",
            requirement("found 'b', expected: in, notin, =, ==, !=, gt, lt"),
        ),
        ("a in b", requirement("found 'b' expected: '('")),
        (
            "a in (",
            requirement("found '', expected: ',', ')' or identifier"),
        ),
        ("a in (b", requirement("found '', expected: ',' or ')'")),
        (
            "a in (=",
            requirement("found '=', expected: ',', ')' or identifier"),
        ),
        (
            "a in (b,=",
            requirement("found '=', expected: ',', or identifier"),
        ),
        ("a,", "found '', expected: identifier after ','".to_owned()),
        (
            "a,,b",
            "found ',', expected: identifier after ','".to_owned(),
        ),
        ("!", requirement("found '', expected: identifier")),
        ("a==!", requirement("found '!', expected: identifier")),
        (
            "a=b=c",
            "found '=', expected: ',' or 'end of string'".to_owned(),
        ),
        (
            "n>x",
            requirement(
                "values[0]: Invalid value: \"x\": for 'Gt', 'Lt' operators, the value must be an \
                 integer",
            ),
        ),
    ] {
        let error = Selector::parse(text).unwrap_err();
        assert_eq!(error.to_string(), message, "{text:?}");
    }
    let start = |text: &str| Selector::parse(text).unwrap_err().to_string();
    assert!(
        start("-a=b").starts_with("unable to parse requirement: <nil>: Invalid value: \"-a\": ")
    );
    assert!(start("a=b*").starts_with(
        "unable to parse requirement: values[0][a]: Invalid value: \"b*\": a valid label"
    ));
}

#[test]
fn numbers_compare_as_integers() {
    let greater = Selector::parse("n>5").unwrap();
    assert!(greater.matches(&labels(&[("n", "10")])));
    assert!(!greater.matches(&labels(&[("n", "5")])));
    assert!(!greater.matches(&labels(&[("n", "many")])));
    assert!(!greater.matches(&labels(&[])));
    let less = Selector::parse("n<5").unwrap();
    assert!(less.matches(&labels(&[("n", "-4")])));
    assert!(!less.matches(&labels(&[("n", "5")])));
    assert!(!less.matches(&labels(&[("n", "10")])));
}
