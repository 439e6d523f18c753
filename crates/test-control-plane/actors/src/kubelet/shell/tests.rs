//! Tests of the shell with captured streams.

use super::*;
use std::time::Duration;

/// Runs a script. Returns its output, its errors and its exit code.
fn run(script: &str, input: &str) -> (String, String, i32) {
    let streams = Streams::new(
        Input::text(input.as_bytes().to_vec()),
        Sink::captured(),
        Sink::captured(),
        Pause::Virtual(Duration::ZERO, Duration::from_secs(60)),
        None,
    );
    let environment = [("NAME", "web-0"), ("LIST", "a b")];
    let environment = environment.map(|(name, value)| (name.to_owned(), value.to_owned()));
    let mut shell = Shell::new(
        environment,
        Files::default(),
        streams,
        Timestamp::UNIX_EPOCH,
    );
    let command = ["/bin/sh", "-c", script].map(str::to_owned);
    let code = shell.run(&command).now_or_never().unwrap();
    let mut streams = shell.into_streams();
    let text = |sink: Sink| String::from_utf8(sink.into_bytes()).unwrap();
    let out = text(streams.replace_out(Sink::Null));
    (out, text(streams.replace_err(Sink::Null)), code)
}

fn output(script: &str) -> String {
    run(script, "").0
}

#[test]
fn scripts_expand_variables_and_output() {
    for (script, expected) in [
        ("for i in $(seq 1 3); do echo $i; done", "1\n2\n3\n"),
        (
            "echo \"$NAME\" '$NAME' ${NAME}x ${NONE:-none}",
            "web-0 $NAME web-0x none\n",
        ),
        (
            "for x in $LIST \"$LIST\"; do echo [$x]; done",
            "[a]\n[b]\n[a b]\n",
        ),
        ("X=$(echo a; echo b) && echo \"$X\"", "a\nb\n"),
        ("printf '%s=%d\\n' a 1 b 2", "a=1\nb=2\n"),
        ("echo a | cat | cat -", "a\n"),
        (
            "echo x > /tmp/f; echo y >> /tmp/f; cat /tmp/f < /dev/null",
            "x\ny\n",
        ),
        (
            "if [ $NAME = web-0 ]; then echo yes; else echo no; fi",
            "yes\n",
        ),
        (
            "i=0; while test $i -lt 2; do echo $i; i=$(if [ $i = 0 ]; then echo 1; else echo 2; fi); done",
            "0\n1\n",
        ),
        ("false || echo a && echo b; true || echo c", "a\nb\n"),
        ("( exit 3 ); echo $?", "3\n"),
        ("echo hi # a comment", "hi\n"),
    ] {
        assert_eq!(output(script), expected, "{script}");
    }
}

#[test]
fn scripts_end_with_their_status() {
    for (script, code) in [
        ("exit 3", 3),
        ("false", 1),
        ("nothing-like-this", 127),
        ("echo 'a", 2),
        ("sh -c 'exit 4'", 4),
        ("while true; do :; done", 124),
    ] {
        assert_eq!(run(script, "").2, code, "{script}");
    }
}

#[test]
fn errors_go_to_their_stream() {
    let (out, err, _) = run("echo a >&2; nope; nope 2>/dev/null; cat missing 2>&1", "");
    assert_eq!(err, "a\nsh: nope: not found\n");
    assert_eq!(
        out,
        "cat: can't open 'missing': No such file or directory\n"
    );
}

#[test]
fn input_is_shared_by_shell_and_programs() {
    let (out, _, code) = run("sh", "echo a\nread x y\n1 2 3\necho $y\ncat\nrest\n");
    assert_eq!((out.as_str(), code), ("a\n2 3\nrest\n", 0));
    let (out, ..) = run("cat", "a\nb");
    assert_eq!(out, "a\nb");
}

#[test]
fn deep_scripts_are_refused() {
    let nested = format!("{}true{}", "( ".repeat(100), " )".repeat(100));
    assert_eq!(run(&nested, "").2, 2);
    let (_, err, _) = run("f='sh -c'; sh -c 'sh -c \"exit 1\"'", "");
    assert_eq!(err, "");
}

#[test]
fn time_passes_virtually() {
    let sink = Sink::Timed(Vec::new());
    let limit = Duration::from_secs(3);
    let pause = Pause::Virtual(Duration::ZERO, limit);
    let streams = Streams::new(Input::Empty, sink, Sink::Null, pause, None);
    let mut shell = Shell::new([], Files::default(), streams, Timestamp::UNIX_EPOCH);
    let command = ["sh", "-c", "while true; do echo tick; sleep 1; done"].map(str::to_owned);
    shell.run(&command).now_or_never().unwrap();
    let (parts, _) = shell.into_streams().into_timed();
    let times: Vec<u64> = parts.iter().map(|(time, _)| time.as_secs()).collect();
    assert_eq!(times, [0, 1, 2]);
}

#[test]
fn programs_handle_files() {
    for (script, expected) in [
        ("mkdir -p /data/a; touch /data/b; ls /data", "a\nb\n"),
        ("echo x > /tmp/t; cd /tmp; ls; cat t; pwd", "t\nx\n/tmp\n"),
        (
            "echo a > /f; cp /f /tmp; mv /tmp/f /tmp/g; cat /tmp/g; rm /f; test -f /f || echo gone",
            "a\ngone\n",
        ),
        (
            "dd if=/dev/zero of=/z bs=1k count=2 2>/dev/null; wc -c /z; wc -c < /z",
            "2048 /z\n2048\n",
        ),
        ("dd if=/dev/urandom bs=1 count=7 2>/dev/null | wc -c", "7\n"),
        (
            "printf 'a\nb\nc\n' > /l; head -n 1 /l; tail -1 /l; head -c 2 /l | wc -l; wc /l",
            "a\nc\n1\n        3         3         6 /l\n",
        ),
        (
            "printf 'one\ntwo\n' | grep -n 'o[nx]'; echo $?; echo z | grep -q y; echo $?",
            "1:one\n0\n1\n",
        ),
        (
            "echo 'a+b' | grep 'a+b'; echo ab | grep -E '(a|c)b+'; echo a.b | grep -cF .",
            "a+b\nab\n1\n",
        ),
        (
            "date; sleep 5; date +%s; id -u; whoami; uname",
            "Thu Jan  1 00:00:00 UTC 1970\n5\n0\nroot\nLinux\n",
        ),
        (
            "date -d @86400 +%F; date -u -d 2026-01-01T00:00:00Z +%Y; sleep 30; uptime",
            "1970-01-02\n2026\n 00:00:30 up 0 min,  load average: 0.00, 0.00, 0.00\n",
        ),
        (
            "printf abc | gzip | gzip -d; echo a > /a; gzip /a; test -f /a || zcat /a.gz; gunzip -k /a.gz; cat /a; ls /a.gz",
            "abca\na\n/a.gz\n",
        ),
    ] {
        assert_eq!(output(script), expected, "{script}");
    }
}

#[test]
fn missing_files_are_reported() {
    for (script, expected) in [
        ("ls /none", "ls: /none: No such file or directory\n"),
        (
            "rm /none",
            "rm: can't remove '/none': No such file or directory\n",
        ),
        (
            "mkdir /tmp",
            "mkdir: can't create directory '/tmp': File exists\n",
        ),
        ("head /none", "head: /none: No such file or directory\n"),
        (
            "dd if=/none of=/x",
            "dd: can't open '/none': No such file or directory\n",
        ),
        ("date tomorrow", "date: invalid date 'tomorrow'\n"),
        ("date -d soon +%s", "date: invalid date 'soon'\n"),
        ("echo a | gunzip", "gunzip: invalid magic\n"),
        ("touch /a; gunzip /a", "gunzip: /a: unknown suffix\n"),
    ] {
        let (_, error, code) = run(script, "");
        assert_eq!((error.as_str(), code), (expected, 1), "{script}");
    }
    assert_eq!(run("rm -f /none", "").2, 0);
    assert_eq!(run("grep x /none", "").2, 2);
}
