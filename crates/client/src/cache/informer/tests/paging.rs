//! Tests of paged lists.

use tracing::Level;

use super::*;
use crate::fake::CapturedLog;

/// One byte more than the maximum length of a page after which the limit stays.
const LARGE: usize = 16 * 1024 * 1024 + 1;

/// A large page.
fn large_page(version: &str, next: &str, object: &str) -> Answer {
    let Answer::Text(mut page) = page(version, next, &[object.to_owned()]) else {
        unreachable!("a page is text");
    };
    page.insert_str(page.len() - 1, &" ".repeat(LARGE - page.len()));
    Answer::Text(page)
}

/// A page that stops after an object.
fn slow_page(object: &str) -> Answer {
    let begin = format!(r#"{{"metadata":{{"resourceVersion":"10"}},"items":[{object},"#);
    Answer::Watch(vec![Step::Bytes(begin.into_bytes()), Step::Hang])
}

/// Returns the limits and continue tokens of the list requests.
fn limits(asked: &[String]) -> Vec<&str> {
    let limit = |target: &'_ String| target.find("limit=").map(|at| at + "limit=".len());
    asked
        .iter()
        .filter_map(|target| target.get(limit(target)?..))
        .collect()
}

#[tokio::test(start_paused = true)]
async fn expired_pages_restart_list() {
    let (heard, asked) = run(
        5,
        vec![
            large_page("10", "next", &object("gone", "2")),
            Answer::Refuse(410, "Expired"),
            page("20", "other", &[object("a", "1")]),
            page("20", "", &[object("b", "2")]),
            Answer::Watch(vec![Step::Hang]),
        ],
    )
    .await;
    assert_eq!(heard, ["+a:1 initial @20", "+b:2 initial @20"]);
    assert_eq!(
        limits(&asked),
        ["500", "62&continue=next", "62", "124&continue=other"]
    );
    assert_eq!(asked.last().unwrap(), "watch from 20");
}

#[tokio::test(start_paused = true)]
async fn repeatedly_expired_list_ends_without_pages() {
    let expiring = [
        page("10", "next", &[object("a", "1")]),
        Answer::Refuse(410, "Expired"),
    ];
    let mut script = vec![expiring; 3].concat();
    script.extend([list("20", &[object("a", "1")])]);
    let log = CapturedLog::at(Level::WARN);
    let (heard, asked) = run(5, script).await;
    assert_eq!(heard, ["+a:1 initial @20"]);
    assert_eq!(limits(&asked), ["500", "500&continue=next"].repeat(3));
    assert_eq!(asked[6..], ["/api/v1/pods", "watch from 20"]);
    assert_eq!(log.take(), [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn pages_shrink_for_large_objects() {
    let (heard, asked) = run(
        60,
        vec![
            large_page("10", "v", &object("a", "1")),
            large_page("10", "w", &object("b", "2")),
            page("10", "x", &[object("c", "3")]),
            large_page("10", "y", &object("d", "4")),
            large_page("10", "z", &object("e", "5")),
            page("10", "", &[object("f", "6")]),
        ],
    )
    .await;
    assert_eq!(heard.len(), 6);
    assert_eq!(
        limits(&asked),
        [
            "500",
            "62&continue=v",
            "7&continue=w",
            "14&continue=x",
            "1&continue=y",
            "1&continue=z"
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn slow_pages_are_requested_with_fewer_objects() {
    let (heard, asked) = run(
        600,
        vec![
            slow_page(&object("gone", "1")),
            slow_page(&object("gone", "1")),
            page("10", "", &[object("a", "2")]),
            Answer::Watch(vec![Step::Hang]),
        ],
    )
    .await;
    assert_eq!(heard, ["+a:2 initial @10"]);
    assert_eq!(limits(&asked), ["500", "62", "7"]);
}

#[tokio::test(start_paused = true)]
async fn broken_page_is_requested_again() {
    let broken = |items: &str, end: &str| {
        let (metadata, object) = (r#"{"resourceVersion":"10"}"#, object("gone", "1"));
        Answer::Text(format!(
            r#"{{"metadata":{metadata},"items":[{object}{items}]{end}"#
        ))
    };
    let script = vec![
        broken(r#",{"metadata":{"name":}}"#, "}"),
        broken("", ""),
        broken("", r#","it\u0065ms":[1]}"#),
        page("10", "", &[object("a", "2")]),
        Answer::Watch(vec![Step::Hang]),
    ];
    let (heard, asked) = run(600, script).await;
    assert_eq!(heard, ["+a:2 initial @10"]);
    assert_eq!(limits(&asked), ["500"; 4]);
}
