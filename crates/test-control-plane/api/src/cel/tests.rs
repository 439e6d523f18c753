//! Tests of expressions about a value.

use std::collections::BTreeMap;

use super::values::{self, Identity, Value};
use super::{Kind, Outcome, Program, REQUEST_MAX, Scalar, Shape, Variables};

/// The shape of the value in these tests.
fn shape() -> Shape {
    let text = || Shape::scalar(Scalar::Text, 2, 80);
    let int = || Shape::scalar(Scalar::Int, 1, 0);
    Shape::object(
        BTreeMap::from([
            ("name".to_owned(), text()),
            ("n".to_owned(), int()),
            ("d".to_owned(), Shape::scalar(Scalar::Double, 1, 0)),
            ("list".to_owned(), Shape::list(int(), Some(10))),
            ("names".to_owned(), Shape::list(text(), None)),
            ("set".to_owned(), Shape::list(text(), Some(10))),
            ("map".to_owned(), Shape::map(int(), Some(10))),
            ("any".to_owned(), Shape::scalar(Scalar::Any, 1, REQUEST_MAX)),
            ("time".to_owned(), Shape::scalar(Scalar::Timestamp, 22, 37)),
            ("wait".to_owned(), Shape::scalar(Scalar::Duration, 4, 32)),
            ("bytes".to_owned(), Shape::scalar(Scalar::Bytes, 2, 80)),
        ]),
        2,
    )
}

fn value() -> Value {
    let ints = |list: &[i64]| list.iter().map(|n| values::int(*n)).collect();
    let texts = |list: &[&str]| list.iter().map(|text| values::text(text)).collect();
    values::map(
        [
            ("name", values::text("käse")),
            ("n", values::int(3)),
            ("d", values::double(2.5)),
            ("list", values::list(ints(&[1, 2, 3]), Identity::Place)),
            ("names", values::list(texts(&["a", "b"]), Identity::Place)),
            ("set", values::list(texts(&["a", "b"]), Identity::Itself)),
            ("map", values::map(vec![("k".to_owned(), values::int(1))])),
            ("any", values::text("50%")),
            ("time", values::timestamp("2021-02-03T04:05:06Z")),
            ("wait", values::duration("1h30m")),
            ("bytes", values::bytes(b"hi".to_vec())),
        ]
        .into_iter()
        .map(|(name, value)| (name.to_owned(), value))
        .collect(),
    )
}

fn evaluate(source: &str) -> Result<Outcome, String> {
    let program = Program::parse(source)?;
    program.check(&shape(), true)?;
    let own = value();
    let old = values::optional(None);
    let (own, old) = (&own, Some(&old));
    program.evaluate(&Variables { own, old })
}

#[test]
fn expressions_about_a_value_hold() {
    for source in [
        "self.name.size() == 4 && size(self.name) == 4",
        "self.name.startsWith('k') && self.name.endsWith('se') && self.name.contains('ä')",
        "self.name.matches('^k.*$') && !self.name.matches('^a')",
        "self.name.upperAscii() == 'KäSE' && 'A'.lowerAscii() == 'a'",
        "self.name.replace('k', 'c') == 'cäse' && self.name.substring(1, 2) == 'ä'",
        "self.name.charAt(0) == 'k' && self.name.indexOf('s') == 2",
        "'a,b'.split(',') == ['a', 'b'] && ['a', 'b'].join('-') == 'a-b'",
        "' x '.trim() == 'x' && '%s-%d'.format(['a', 1]) == 'a-1'",
        "self.name.find('[a-z]+') == 'k' && 'a1b22'.findAll('[0-9]+') == ['1', '22']",
        "'a1b22'.findAll('[0-9]+', 1) == ['1']",
        "self.n > 2 && self.n < 3.5 && self.n % 2 == 1 && -self.n == -3",
        "self.d * 2.0 == 5.0 && int(self.d) == 2 && double('1.5') == 1.5",
        "self.list.all(x, x > 0) && self.list.exists(x, x == 2) && self.list.exists_one(x, x == 3)",
        "self.list.map(x, x * 2) == [2, 4, 6] && self.list.filter(x, x > 1).size() == 2",
        "self.list.sum() == 6 && self.list.min() == 1 && self.list.max() == 3",
        "self.list.isSorted() && ![2, 1].isSorted() && self.list.indexOf(2) == 1",
        "[1, 1].lastIndexOf(1) == 1 && [1, 1].indexOf(5) == -1",
        "sets.contains(self.list, [1]) && sets.intersects(self.list, [3, 9])",
        "sets.equivalent([1, 2], [2, 1]) && !sets.contains([1], [2])",
        "self.set == ['b', 'a'] && self.names != ['b', 'a'] && ['a', 'b'] == self.set",
        "(self.set + ['b', 'c']).size() == 3 && 'a' in self.set && !('z' in self.names)",
        "has(self.map.k) && !has(self.map.z) && self.map['k'] == 1 && 'k' in self.map",
        "self.map.all(k, self.map[k] == 1)",
        "self.?name.hasValue() && self.map[?'z'].orValue(7) == 7",
        "!oldSelf.hasValue() && optional.of(1).value() == 1",
        "type(self.any) == string ? self.any.endsWith('%') : self.any > 0",
        "self.time > timestamp('2020-01-01T00:00:00Z') && self.time.getFullYear() == 2021",
        "self.time + duration('1h') > self.time && self.time.getHours() == 4",
        "self.wait > duration('1h') && self.wait.getMinutes() == 90",
        "self.bytes == b'hi' && string(self.bytes) == 'hi'",
        "quantity('1Gi').isGreaterThan(quantity('1000Mi')) && quantity('1') == quantity('1000m')",
        "isQuantity('5Mi') && !isQuantity('five') && quantity('-2').sign() == -1",
        "quantity('2').isInteger() && quantity('2k').asInteger() == 2000",
        "quantity('1500m').asApproximateFloat() == 1.5 && !quantity('1500m').isInteger()",
        "quantity('1').compareTo(quantity('2')) == -1 && quantity('1').isLessThan(quantity('2'))",
        "isIP('10.0.0.1') && !isIP('10.0.0.01') && !isIP('::ffff:10.0.0.1')",
        "ip('10.0.0.1').family() == 4 && ip('::1').isLoopback() && string(ip('::1')) == '::1'",
        "ip.isCanonical('::1') && !ip.isCanonical('0::1')",
        "ip('224.0.0.9').isLinkLocalMulticast() && ip('fe80::1').isLinkLocalUnicast()",
        "ip('8.8.8.8').isGlobalUnicast() && ip('0.0.0.0').isUnspecified()",
        "cidr('10.0.0.0/8').containsIP('10.1.2.3') && !cidr('10.0.0.0/8').containsIP(ip('11.0.0.1'))",
        "cidr('10.0.0.0/8').containsCIDR('10.1.0.0/16') && !isCIDR('10.0.0.0/33')",
        "cidr('10.1.2.3/8').masked() == cidr('10.0.0.0/8') && cidr('::/0').prefixLength() == 0",
        "string(cidr('10.1.2.3/8')) == '10.1.2.3/8' && cidr('10.1.2.3/8').ip() == ip('10.1.2.3')",
        "false || (1 / 0 > 0 || true)",
    ] {
        assert_eq!(evaluate(source), Ok(Outcome::Bool(true)), "{source}");
    }
}

#[test]
fn failures_have_the_texts_of_the_reference() {
    for (source, wanted) in [
        ("self.n / 0 == 1", "division by zero"),
        ("self.n % 0 == 1", "modulus by zero"),
        ("self.n * 9223372036854775807 == 1", "integer overflow"),
        ("self.list[7] == 1", "index out of bounds: 7"),
        ("self.map['z'] == 1", "no such key: z"),
        ("self.any > 5", "no such overload"),
        (
            "int(self.name) == 1",
            "type conversion error from 'string' to 'int'",
        ),
    ] {
        assert_eq!(evaluate(source), Err(wanted.to_owned()), "{source}");
    }
}

#[test]
fn faults_show_their_place() {
    for (source, wanted) in [
        (
            "self.nmae == 'x'",
            "ERROR: <input>:1:5: undefined field 'nmae'\n | self.nmae == 'x'\n | ....^",
        ),
        (
            "has(self.nmae)",
            "ERROR: <input>:1:4: undefined field 'nmae'\n | has(self.nmae)\n | ...^",
        ),
        (
            "'ä' == 'b' &&\n  self.n == 'x'",
            "ERROR: <input>:2:10: found no matching overload for '_==_' applied to '(int, string)'\
             \n |   self.n == 'x'\n | .........^",
        ),
        (
            "self.n.all(x, x)",
            "ERROR: <input>:1:5: expression of type 'int' cannot be range of a comprehension (must \
             be list, map, or dynamic)\n | self.n.all(x, x)\n | ....^",
        ),
        (
            "self.name.startsWith(1)",
            "ERROR: <input>:1:21: found no matching overload for 'startsWith' applied to \
             'string.(int)'\n | self.name.startsWith(1)\n | ....................^",
        ),
        (
            "url(self.name).getHost() == 'x'",
            "ERROR: <input>:1:4: this server lacks the function 'url' of Kubernetes: leave the rule \
             out\n | url(self.name).getHost() == 'x'\n | ...^\nERROR: <input>:1:23: undeclared \
             reference to 'getHost' (in container '')\n | url(self.name).getHost() == 'x'\n | \
             ......................^",
        ),
        (
            "timestamp('x') < self.time",
            "ERROR: <input>:1:11: invalid timestamp argument\n | timestamp('x') < self.time\n | \
             ..........^",
        ),
    ] {
        assert_eq!(evaluate(source), Err(wanted.to_owned()), "{source}");
    }
}

#[test]
fn hostile_expressions_are_refused() {
    for source in [
        "(".repeat(10_000),
        "[".repeat(10_000),
        format!("{}1", "-".repeat(10_000)),
        "x".repeat(10_001),
        "a.".repeat(5_000),
        format!("1{}", " + 1".repeat(5_000)),
        "\u{0}".to_owned(),
        "'\\".to_owned(),
        String::new(),
    ] {
        let shown: String = source.chars().take(20).collect();
        let error = Program::parse(&source).unwrap_err();
        assert!(error.starts_with("ERROR: "), "{shown}: {error}");
    }
}

#[test]
fn deep_expressions_are_evaluated() {
    for source in [
        format!("1{} > 0", " + 1".repeat(240)),
        format!("self.list{} == self.list", ".map(x, x)".repeat(40)),
        format!("{}true", "!".repeat(240)),
    ] {
        let shown: String = source.chars().take(20).collect();
        assert_eq!(evaluate(&source), Ok(Outcome::Bool(true)), "{shown}");
    }
}

#[test]
fn costs_grow_with_unlimited_sizes() {
    let cost = |source: &str| {
        let program = Program::parse(source).unwrap();
        let checked = program.check(&shape(), false).unwrap();
        assert_eq!(checked.kind, Kind::Bool);
        checked.cost
    };
    assert_eq!(cost("self.n > 1"), 3);
    assert!(cost("self.list.all(x, x > 0)") < 100);
    assert!(cost("self.names.all(x, self.names.all(y, x != y))") > 100_000_000);
    assert!(cost("self.list.all(x, self.list.all(y, x != y))") < 1_000);
    assert!(cost("'x' + string(self.n) == 'x1'") > 100_000_000);
}
