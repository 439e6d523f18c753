//! Objects that can't be decoded, and their neighbours.

use tracing::Level;

use super::*;
use crate::fake::CapturedLog;

/// An object whose uid no test object can hold.
fn odd(name: &str, version: &str) -> String {
    object(name, version).replace(r#""name":"#, r#""uid":7,"name":"#)
}

#[tokio::test(start_paused = true)]
async fn an_undecodable_object_leaves_its_neighbours_alone() {
    let log = CapturedLog::at(Level::INFO);
    let (heard, asked) = run(
        60,
        vec![
            list("10", &[odd("a", "7"), object("b", "8")]),
            Answer::Watch(vec![
                event("MODIFIED", &odd("a", "11")),
                event("MODIFIED", &object("b", "12")),
                event("MODIFIED", &object("a", "13")),
                Step::Hang,
            ]),
        ],
    )
    .await;
    assert_eq!(heard, ["+b:8 initial @10", "*b:8>12 @12", "+a:13 @13"]);
    assert_eq!(asked.len(), 2, "{asked:?}");
    let log = log.take();
    assert_eq!(log.len(), 2, "{log:#?}");
    assert!(log[0].contains("object=ns/a"), "{log:#?}");
    assert!(
        log[0].contains("error=invalid type: integer `7`"),
        "{log:#?}"
    );
    assert!(
        log[1].contains("can be decoded again, or is gone resource=pods object=ns/a"),
        "{log:#?}"
    );
}

#[tokio::test(start_paused = true)]
async fn the_last_state_stays_until_the_object_is_gone() {
    let (heard, _) = run(
        60,
        vec![
            list(
                "10",
                &[object("a", "7"), object("b", "8"), object("c", "9")],
            ),
            Answer::Watch(vec![
                event("MODIFIED", &odd("a", "11")),
                event("MODIFIED", &odd("b", "12")),
                Step::Break,
            ]),
            Answer::Refuse(410, "Expired"),
            // Still there, whatever it holds now, and so not gone.
            list("20", &[odd("a", "11"), odd("b", "12")]),
            Answer::Watch(vec![event("DELETED", &odd("a", "21")), Step::Hang]),
        ],
    )
    .await;
    assert_eq!(
        heard,
        [
            "+a:7 initial @10",
            "+b:8 initial @10",
            "+c:9 initial @10",
            "-c:9 unknown @20",
            "-a:7 unknown @21",
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn a_watch_goes_on_from_an_undecodable_version() {
    let (_, asked) = run(
        60,
        vec![
            list("10", &[]),
            Answer::Watch(vec![event("ADDED", &odd("a", "11")), Step::Break]),
            Answer::Watch(vec![Step::Hang]),
        ],
    )
    .await;
    assert_eq!(asked[1..], ["watch from 10", "watch from 11"]);
}

#[tokio::test(start_paused = true)]
async fn invalid_utf8_is_read_with_replacements() {
    let page = br#"{"metadata":{"resourceVersion":"10"},"items":[
        {"metadata":{"namespace":"ns","name":"a","resourceVersion":"1","owner":"\xff"}}]}"#;
    let page = page.to_vec();
    let event = br#"{"type":"ADDED","object":{"metadata":{"namespace":"ns","name":"b","resourceVersion":"11","owner":"\xff"}}}"#;
    let mut event = event.to_vec();
    event.push(b'\n');
    let unescaped = |text: Vec<u8>| {
        let at = text.windows(4).position(|it| it == br"\xff").unwrap();
        [&text[..at], b"\xff", &text[at + 4..]].concat()
    };
    let (heard, _) = run(
        60,
        vec![
            Answer::Bytes(unescaped(page)),
            Answer::Watch(vec![Step::Bytes(unescaped(event)), Step::Hang]),
        ],
    )
    .await;
    assert_eq!(heard, ["+a:1 initial @10", "+b:11 @11"]);
}

#[tokio::test(start_paused = true)]
async fn pages_shrink_where_objects_are_large() {
    let padding = " ".repeat(17 * 1024 * 1024);
    let limits = |asked: Vec<String>| -> Vec<String> {
        let limit = |target: String| target.split("limit=").nth(1).map(str::to_owned);
        asked.into_iter().filter_map(limit).collect()
    };
    let (heard, asked) = run(
        60,
        vec![
            Answer::Text(padding.clone()),
            Answer::Text(padding.clone()),
            page("10", "x", &[object("a", "1")]),
            page("10", "y", &[object("b", "2")]),
            Answer::Text(padding),
            page("10", "", &[object("c", "3")]),
        ],
    )
    .await;
    assert_eq!(heard.len(), 3);
    assert_eq!(
        limits(asked),
        [
            "500",
            "62",
            "7",
            "14&continue=x",
            "28&continue=y",
            "3&continue=y"
        ]
    );
}
