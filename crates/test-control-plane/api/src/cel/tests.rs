//! Tests of expressions about a value.

use std::collections::BTreeMap;

use super::environment::{duration, timestamp};
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
            ("__namespace__".to_owned(), text()),
        ]),
        2,
    )
}

fn value() -> Value {
    let named = ["namespace", "__namespace__"].map(|name| (name, values::text("a")));
    let ints = |list: &[i64]| list.iter().map(|n| values::int(*n)).collect();
    let texts = |list: &[&str]| list.iter().map(|text| values::text(text)).collect();
    values::map(
        [
            ("name", values::text("käse")),
            ("n", values::int(3)),
            ("d", values::double(2.5)),
            ("list", values::list(ints(&[1, 2, 3]), Identity::Index)),
            ("names", values::list(texts(&["a", "b"]), Identity::Index)),
            ("set", values::list(texts(&["a", "b"]), Identity::Itself)),
            ("map", values::map(vec![("k".to_owned(), values::int(1))])),
            ("any", values::text("50%")),
            ("time", timestamp("2021-02-03T04:05:06Z")),
            ("wait", duration("1h30m")),
            ("bytes", values::bytes(b"hi".to_vec())),
        ]
        .into_iter()
        .chain(named)
        .map(|(name, value)| (name.to_owned(), value))
        .collect(),
    )
}

/// Evaluates an expression, which gives the same with and without checks of what it reads.
fn evaluate(source: &str) -> Result<Outcome, String> {
    let program = Program::parse(source)?;
    program.check(&shape(), true)?;
    let (own, old) = (value(), values::optional(None));
    let [plain, checked] = [false, true].map(|has_unreadable| {
        let (own, old) = (&own, Some(&old));
        program.evaluate(&Variables {
            own,
            old,
            has_unreadable,
        })
    });
    assert_eq!(plain, checked, "{source}");
    plain.outcome
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
        "self.name.indexOf('s', 9) == -1 && self.name.lastIndexOf('s', 3) == 2",
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
        ".self.n == 3 && .self.list.all(x, .x <= .self.n) && !.oldSelf.hasValue()",
        "self.?name.hasValue() && self.map[?'z'].orValue(7) == 7",
        "!oldSelf.hasValue() && optional.of(1).value() == 1",
        "self.list.first().value() == 1 && self.list.last().value() == 3 && !self.list.filter(x, false).first().hasValue()",
        "self.set.last() == optional.of('b') && dyn(self.list).first() == optional.of(1)",
        "optional.unwrap([optional.of(1), optional.none()]) == [1] && [optional.of(2)].unwrapOpt() == [2]",
        "dyn(self.map).all(k, v, k == 'k' && v == 1) && dyn(self.list).exists(i, v, i == 2 && v == 3)",
        "self.namespace == 'a' && has(self.__namespace__)",
        "self.names.min() == 'a' && self.names.sort() == ['a', 'b'] && dyn(self.list).max() == 3",
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
        "quantity('1Gi').add(quantity('1Mi')) == quantity('1025Mi')",
        "quantity('50k').add(20) == quantity('50020') && quantity('1').sub(2) == quantity('-1')",
        "quantity('1').sub(quantity('100m')) == quantity('900m')",
        "isURL('https://a.example/x') && isURL('/x') && !isURL('a b') && !isURL('')",
        "url('https://u@a.example:80/x%2Fy?q=1&q=2#f').getHost() == 'a.example:80'",
        "url('HTTPS://a.example:80').getScheme() == 'https' && url('/x').getHost() == ''",
        "url('https://[::1]:80/').getHostname() == '::1' && url('https://a:80').getPort() == '80'",
        "url('https://a/b c').getEscapedPath() == '/b%20c'",
        "url('https://a/?q=1&q=2&r').getQuery() == {'q': ['1', '2'], 'r': ['']}",
        "isSemver('1.2.3-a+b') && !isSemver('1.2') && isSemver('v1.2', true)",
        "semver('1.2.3').major() == 1 && semver('1.2.3').minor() == 2 && semver('1.2.3').patch() == 3",
        "semver('1.2.3').isGreaterThan(semver('1.2.3-rc.1')) && semver('v1', true) == semver('1.0.0')",
        "semver('1.0.0').compareTo(semver('1.0.1')) == -1 && semver('1.0.0').isLessThan(semver('2.0.0'))",
        "!format.dns1123Label().validate('a-b').hasValue()",
        "format.dns1123Label().validate('a.b').value() == ['must not contain dots']",
        "format.named('uuid').value().validate('x').value() == ['does not match the UUID format']",
        "!format.named('none').hasValue() && !format.dns1123LabelPrefix().validate('a-').hasValue()",
        "!format.date().validate('2021-01-01').hasValue() && format.byte().validate('!').hasValue()",
        "self.list.all(i, x, x == i + 1) && self.list.exists(i, x, i == 2 && x == 3)",
        "self.list.existsOne(i, x, i + x == 3) && !self.map.exists(k, v, v != 1)",
        "self.list.transformList(i, x, i * x) == [0, 2, 6]",
        "self.list.transformList(i, x, i > 0, x) == [2, 3]",
        "self.list.transformMap(i, x, x > 1, string(x)) == {1: '2', 2: '3'}",
        "{'b': 1, 'a': 2}.transformList(k, v, k + string(v)) == ['a2', 'b1']",
        "self.map.transformMap(k, v, v + 1) == {'k': 2}",
        "self.map.transformMapEntry(k, v, {v: k}) == {1: 'k'}",
        "self.list.transformMapEntry(i, x, x > 2, {x: i}) == {3: 2}",
        "[[1, 2], [3]].all(i, l, l.all(j, x, i <= x && [i].all(i, y, y < 2)))",
        "{'b': 1, 'a': 1, 'c': 1}.map(k, k) == ['a', 'b', 'c']",
        "['bb', 'a'].sortBy(x, x.size()) == ['a', 'bb'] && [3, 1].sort() == [1, 3]",
        "[[[1]], [[2]]].flatten(2) == [1, 2] && [[1], [2]].flatten() == [1, 2]",
        "[1, 1, 2].distinct() == [1, 2] && [1, 2].reverse() == [2, 1] && lists.range(2) == [0, 1]",
        "[1, 2, 3].slice(0, 2) == [1, 2] && self.?name.optMap(x, x.size()).value() == 4",
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
        ("dyn(self.name).x == 1", "no such key: x"),
        ("dyn(self.n).x == 1", "no such key: x"),
        ("self.any > 5", "no such overload"),
        (
            "int(self.name) == 1",
            "type conversion error from 'string' to 'int'",
        ),
        (
            "url('a b').getHost() == 'x'",
            "URL parse error during conversion from string: parse \"a b\": invalid URI for request",
        ),
        (
            "semver('1').major() == 1",
            "No Major.Minor.Patch elements found",
        ),
        (
            "ip(self.any).family() == 4",
            "IP Address \"50%\" parse error during conversion from string: ParseAddr(\"50%\"): \
             missing IPv6 address",
        ),
        (
            "ip('::1%eth0').family() == 6",
            "IP address \"::1%eth0\" with zone value is not allowed",
        ),
        (
            "ip('::ffff:1.2.3.4').family() == 4",
            "IPv4-mapped IPv6 address \"::ffff:1.2.3.4\" is not allowed",
        ),
        (
            "cidr('1.2.3.4').prefixLength() == 8",
            "network address parse error during conversion from string: network address parse error \
             during conversion from string: netip.ParsePrefix(\"1.2.3.4\"): no '/'",
        ),
        ("cidr('10.0.0.0/8').containsIP('x')", "no such overload"),
        (
            "self.name.matches(self.name + '(')",
            "error parsing regexp: missing closing ): `käse(`",
        ),
        (
            "self.name.find(self.name + '(') == ''",
            "Illegal regex: error parsing regexp: missing closing ): `käse(`",
        ),
        (
            "duration(self.name) == duration('1s')",
            "type conversion error from 'string' to 'google.protobuf.Duration'",
        ),
        (
            "timestamp(self.name) == self.time",
            "type conversion error from 'string' to 'google.protobuf.Timestamp'",
        ),
        ("self.name.indexOf('s', -1) == 2", "index out of range: -1"),
        (
            "self.list.transformMapEntry(i, x, {'k': x}).size() == 1",
            "insert failed: key k already exists",
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
            "base64.encode(b'x') == 'x'",
            "ERROR: <input>:1:1: undeclared reference to 'base64' (in container '')\n | \
             base64.encode(b'x') == 'x'\n | ^\nERROR: <input>:1:14: undeclared reference to \
             'encode' (in container '')\n | base64.encode(b'x') == 'x'\n | .............^",
        ),
        (
            "authorizer.group('').resource('pods').check('get').allowed()",
            "ERROR: <input>:1:1: undeclared reference to 'authorizer' (in container '')\n | \
             authorizer.group('').resource('pods').check('get').allowed()\n | ^",
        ),
        (
            "self.n && true || self.name",
            "ERROR: <input>:1:5: expected type 'bool' but found 'int'\n | self.n && true || \
             self.name\n | ....^\nERROR: <input>:1:23: expected type 'bool' but found 'string'\n | \
             self.n && true || self.name\n | ......................^",
        ),
        (
            "[[1]].min() == [1]",
            "ERROR: <input>:1:10: found no matching overload for 'min' applied to 'list(list(int)).\
             ()'\n | [[1]].min() == [1]\n | .........^",
        ),
        (
            "quantity('1').x == ip('::1').y",
            "ERROR: <input>:1:14: unexpected failed resolution of 'kubernetes.Quantity'\n | \
             quantity('1').x == ip('::1').y\n | .............^\nERROR: <input>:1:29: type 'net.IP' \
             does not support field selection\n | quantity('1').x == ip('::1').y\n | \
             ............................^",
        ),
        (
            "self.list.all(x, x, x > 0)",
            "ERROR: <input>:1:18: duplicate variable name: x\n | self.list.all(x, x, x > 0)\n | \
             .................^",
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
fn constants_without_a_value_are_found_before_evaluation() {
    for (source, wanted) in [
        (
            "self.name.find('(') == ''",
            Err("error parsing regexp: missing closing ): `(`"),
        ),
        (
            "self.name.findAll('a**', 2).size() == 1",
            Err("error parsing regexp: invalid nested repetition operator: `**`"),
        ),
        (
            "int('x') == 1 || int('y') == 1",
            Err("type conversion error from 'string' to 'int'"),
        ),
        (
            "bool(string('x'))",
            Err("type conversion error from 'string' to 'bool'"),
        ),
        ("self.n == 1 && int(self.name) == 1", Ok(())),
        ("ip('bad').family() == 4", Ok(())),
        ("self.name.find(self.name + '(') == ''", Ok(())),
    ] {
        let program = Program::parse(source).unwrap();
        program.check(&shape(), true).unwrap();
        let found = program.instantiate();
        assert_eq!(
            found.as_ref().map_err(String::as_str),
            wanted.as_ref().map_err(|text| *text),
            "{source}"
        );
    }
}

#[test]
fn constant_formats_are_checked() {
    for (source, wanted) in [
        (
            "'%d'.format(['x']) == ''",
            "1:14: error during formatting: decimal clause can only be used on integers, was given \
             string",
        ),
        (
            "'%z'.format([1]) == ''",
            "1:12: could not parse formatting clause: unrecognized formatting clause \"z\"",
        ),
        ("'%s %s'.format([1]) == ''", "1:15: index 1 out of range"),
        ("'%'.format([1]) == ''", "1:11: unexpected end of string"),
        (
            "'a'.format([1]) == ''",
            "1:11: too many arguments supplied to string.format (expected 0, got 1)",
        ),
        (
            "'%s'.format([[1, ip('::1')]]) == ''",
            "1:20: error during formatting: string clause can only be used on strings, bools, bytes, \
             ints, doubles, maps, lists, types, durations, and timestamps, was given net.IP",
        ),
        (
            "'%.2'.format([1.5]) == ''",
            "1:13: could not parse formatting clause: error while parsing precision: could not find \
             end of precision specifier",
        ),
    ] {
        let program = Program::parse(source).unwrap();
        let found = program.check(&shape(), true).unwrap_err();
        let wanted = format!("ERROR: <input>:{wanted}\n");
        assert!(found.starts_with(&wanted), "{source}: {found}");
    }
    for source in [
        "'%d%% %s %.2f'.format([self.n, self.list, self.d]) == ''",
        "'%x %b %e'.format([self.bytes, true, dyn(self.n)]) == ''",
        "self.name.format([1]) == ''",
    ] {
        let program = Program::parse(source).unwrap();
        assert!(program.check(&shape(), true).is_ok(), "{source}");
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
fn evaluations_stop_at_their_limit() {
    let source = "lists.range(99).all(i, lists.range(99).all(j, [{}, {}, {}, {}].size() > 0))";
    let limit = Err("operation cancelled: actual cost limit exceeded".to_owned());
    assert_eq!(evaluate(source), limit);
    assert_eq!(evaluate(&format!("{source} || true")), limit);
    assert_eq!(
        evaluate("lists.range(99).map(i, lists.range(99).map(j, [{}, {}, {}, {}])).size() > 0"),
        limit
    );
    let cheap = "lists.range(99).exists(i, lists.range(99).exists(j, [{}, {}, {}, {}] != []))";
    assert_eq!(evaluate(cheap), Ok(Outcome::Bool(true)));
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
    // Upstream knows the size of quantities only where they are equal.
    assert!(cost("quantity('1') != quantity('1000m')") > 100_000_000);
    for (source, wanted) in [
        ("quantity('1') == quantity('1000m')", 3),
        ("ip('::1') == ip('::2')", 3),
        ("format.uri() == format.uuid()", 9),
        ("quantity('1').add(2).isLessThan(quantity('3'))", 4),
        ("isURL('https://a') && url('https://a').getPort() == ''", 3),
        ("sets.contains(['a', 'b'], ['b'])", 23),
        ("[3, 1].sort() == [1, 3]", 40),
        ("lists.range(5).reverse() == []", 42),
        ("'abcd'.replace('b', 'xyz') == ''", 1),
        ("'a,b'.split(',').size() == 2", 3),
        ("!format.uri().validate('/x').hasValue()", 35),
        ("['a', 'b'].exists(x, self.name.startsWith(x))", 25),
        ("[1, 2].all(i, x, x > i)", 23),
    ] {
        assert_eq!(cost(source), wanted, "{source}");
    }
}

/// Evaluates an expression about an object with unreadable parts.
fn evaluate_unreadable(source: &str) -> Result<Outcome, String> {
    let program = Program::parse(source)?;
    let ints = |first| {
        let ints = vec![first, values::int(2)];
        values::list(ints, Identity::Index)
    };
    let unreadable = || values::unreadable("not an int");
    let own = [
        ("n", unreadable()),
        ("m", values::int(3)),
        ("list", ints(unreadable())),
        ("map", values::map(vec![("k".to_owned(), unreadable())])),
    ];
    let own = own.map(|(name, value)| (name.to_owned(), value));
    program
        .evaluate(&Variables {
            own: &values::map(own.into()),
            old: None,
            has_unreadable: true,
        })
        .outcome
}

#[test]
fn unreadable_parts_are_errors_once_read() {
    for source in [
        "self.n > 1",
        "self.n == 3",
        "3 != self.n",
        "string(self.n) == '3'",
        "self['n'] == 3",
        "!has(self.n) || self.n > 1",
        "self.list.all(x, x > 0)",
        "self.list.exists(x, x == 3)",
        "self.list[0] == 3",
        "self.list.map(x, x + 1).size() == 2",
        "dyn(self.list).all(i, v, v > i)",
        "self.map.all(k, self.map[k] == 3)",
        "[self.n].size() == 1",
        "self.n == 3 || self.m == 2",
    ] {
        let found = evaluate_unreadable(source);
        assert_eq!(found, Err("not an int".to_owned()), "{source}");
    }
    for source in [
        "has(self.n) && 'n' in self",
        "self.m == 3",
        "self.m == 3 || self.n > 1",
        "self.n > 1 || self.m == 3",
        "!(self.n > 1 && self.m == 2)",
        "self.list.size() == 2 && self.list[1] == 2",
        "self.list.exists(x, x == 2)",
        "self.m == 2 ? self.n > 1 : true",
    ] {
        let found = evaluate_unreadable(source);
        assert_eq!(found, Ok(Outcome::Bool(true)), "{source}");
    }
}
