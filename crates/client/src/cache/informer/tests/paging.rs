//! Tests of paged lists.

use tracing::Level;

use super::*;
use crate::fake::CapturedLog;

/// One byte more than the maximum length of a page with several objects.
const TOO_LONG: usize = 16 * 1024 * 1024 + 1;

/// An answer that exceeds the length limit.
fn too_long() -> Answer {
    Answer::Bytes(vec![b' '; TOO_LONG])
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
            too_long(),
            page("10", "next", &[object("a", "1"), object("gone", "2")]),
            too_long(),
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
        [
            "500",
            "62",
            "124&continue=next",
            "15&continue=next",
            "15",
            "30&continue=other"
        ]
    );
    assert_eq!(asked.last().unwrap(), "watch from 20");
}

#[tokio::test(start_paused = true)]
async fn repeatedly_expired_list_fails_and_is_retried() {
    let expiring = [
        page("10", "next", &[object("a", "1")]),
        Answer::Refuse(410, "Expired"),
    ];
    let mut script = vec![expiring; 3].concat();
    script.extend([list("20", &[object("a", "1")])]);
    let log = CapturedLog::at(Level::WARN);
    let (heard, asked) = run(5, script).await;
    assert_eq!(heard, ["+a:1 initial @20"]);
    let asked = limits(&asked);
    assert_eq!(asked[..6], ["500", "500&continue=next"].repeat(3));
    assert_eq!(asked[6..], ["500"]);
    let log = log.take();
    assert_eq!(log.len(), 1, "{log:#?}");
    assert!(
        log[0].contains("cannot list pods, trying again: Expired"),
        "{log:#?}"
    );
}

#[tokio::test(start_paused = true)]
async fn pages_shrink_for_large_objects() {
    let (heard, asked) = run(
        60,
        vec![
            too_long(),
            too_long(),
            page("10", "x", &[object("a", "1")]),
            page("10", "y", &[object("b", "2")]),
            too_long(),
            page("10", "", &[object("c", "3")]),
        ],
    )
    .await;
    assert_eq!(heard.len(), 3);
    assert_eq!(
        limits(&asked),
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

#[tokio::test(start_paused = true)]
async fn page_of_one_object_has_no_length_limit() {
    let mut long = vec![b' '; TOO_LONG];
    let object = object("a", "1");
    let page = format!(r#"{{"metadata":{{"resourceVersion":"10"}},"items":[{object}]}}"#);
    long[..page.len()].copy_from_slice(page.as_bytes());
    let (heard, asked) = run(
        60,
        vec![
            too_long(),
            too_long(),
            too_long(),
            Answer::Bytes(long),
            Answer::Watch(vec![Step::Hang]),
        ],
    )
    .await;
    assert_eq!(heard, ["+a:1 initial @10"]);
    assert_eq!(limits(&asked), ["500", "62", "7", "1"]);
}
