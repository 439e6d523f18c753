//! Tests of lists that come in several pages.

use tracing::Level;

use super::*;
use crate::fake::CapturedLog;

/// Longer than a page may be that isn't of one object.
const TOO_LONG: usize = 16 * 1024 * 1024 + 1;

/// An answer that is too long, and isn't read.
fn too_long() -> Answer {
    Answer::Bytes(vec![b' '; TOO_LONG])
}

/// The limits, and the tokens, of the lists asked for.
fn limits(asked: &[String]) -> Vec<&str> {
    let limit = |target: &'_ String| target.find("limit=").map(|at| at + "limit=".len());
    asked
        .iter()
        .filter_map(|target| target.get(limit(target)?..))
        .collect()
}

#[tokio::test(start_paused = true)]
async fn pages_that_expire_are_listed_from_the_beginning() {
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
async fn a_list_that_expires_over_and_over_fails_and_is_tried_later() {
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
async fn pages_shrink_where_objects_are_large() {
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
async fn a_page_of_one_object_is_read_at_any_length() {
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
