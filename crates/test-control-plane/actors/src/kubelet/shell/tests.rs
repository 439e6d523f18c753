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
    let mut shell = Shell::new(environment, Files::default(), streams);
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
    let mut shell = Shell::new([], Files::default(), streams);
    let command = ["sh", "-c", "while true; do echo tick; sleep 1; done"].map(str::to_owned);
    shell.run(&command).now_or_never().unwrap();
    let (parts, _) = shell.into_streams().into_timed();
    let times: Vec<u64> = parts.iter().map(|(time, _)| time.as_secs()).collect();
    assert_eq!(times, [0, 1, 2]);
}
