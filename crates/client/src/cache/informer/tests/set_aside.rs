//! Tests of undecodable objects and their neighbours.

use tracing::Level;

use super::*;
use crate::fake::CapturedLog;

/// Returns an object with a uid that a test object can't hold.
fn odd(name: &str, version: &str) -> String {
    object(name, version).replace(r#""name":"#, r#""uid":7,"name":"#)
}

#[tokio::test(start_paused = true)]
async fn undecodable_object_does_not_affect_others() {
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
async fn last_good_state_stays_until_deletion() {
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
            // The list still has it, so it isn't deleted.
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
            "relisted @20",
            "-a:7 unknown @21",
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn watch_resumes_from_undecodable_version() {
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
async fn invalid_utf8_is_decoded_with_replacements() {
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
async fn delete_event_reports_missed_state_first() {
    let (heard, _) = run(
        60,
        vec![
            list("10", &[object("a", "7")]),
            Answer::Watch(vec![
                event("MODIFIED", &odd("a", "11")),
                event("DELETED", &object("a", "12")),
                event("ADDED", &odd("b", "13")),
                event("DELETED", &object("b", "14")),
                Step::Hang,
            ]),
        ],
    )
    .await;
    assert_eq!(
        heard,
        [
            "+a:7 initial @10",
            "*a:7>12 @12",
            "-a:12 @12",
            "+b:14 @14",
            "-b:14 @14",
        ]
    );
}

/// Records every reported count of set-aside objects.
#[derive(Default)]
struct Counts(Mutex<Vec<usize>>);

impl InformerMetrics for Counts {
    fn set_aside(&self, objects: usize) {
        self.0.lock().unwrap().push(objects);
    }
}

#[tokio::test(start_paused = true)]
async fn set_asides_are_counted_and_logged_once() {
    let api = ScriptedApi::new(vec![
        list("10", &[odd("a", "1"), odd("b", "2"), object("c", "3")]),
        Answer::Watch(vec![
            event("MODIFIED", &odd("a", "11")),
            event("MODIFIED", &odd("c", "12")),
            event("MODIFIED", &object("c", "13")),
            event("DELETED", &odd("b", "14")),
            Step::Break,
        ]),
        Answer::Refuse(410, "Expired"),
        list("20", &[odd("d", "19")]),
        Answer::Watch(vec![event("DELETED", &object("d", "21")), Step::Hang]),
    ]);
    let log = CapturedLog::at(Level::INFO);
    let counts = Arc::new(Counts::default());
    let informer = Informer::<TestObject>::new(api.client(), PODS, &InformerConfig::default())
        .with_metrics(Arc::clone(&counts) as Arc<dyn InformerMetrics>);
    let ran = timeout(
        Duration::from_secs(60),
        informer.run(CancellationToken::new()),
    );
    assert!(ran.await.is_err());
    let mut counts = counts.0.lock().unwrap().clone();
    counts.dedup();
    assert_eq!(counts, [2, 3, 2, 1, 0]);
    let log = log.take();
    let lines = log.iter().filter(|line| line.contains("object=ns/"));
    let lines = lines.map(|line| {
        let object = line.split("object=ns/").nth(1).unwrap();
        let sign = if line.contains("cannot decode") {
            '+'
        } else {
            '-'
        };
        format!("{sign}{}", &object[..1])
    });
    assert_eq!(
        lines.collect::<Vec<_>>(),
        ["+a", "+b", "+c", "-c", "-b", "-a", "+d", "-d"]
    );
}

#[tokio::test(start_paused = true)]
async fn twenty_set_asides_are_named_and_more_are_mentioned() {
    let names: Vec<String> = (10..34).map(|number| format!("a{number}")).collect();
    let odds: Vec<String> = names.iter().map(|name| odd(name, "1")).collect();
    let log = CapturedLog::at(Level::INFO);
    let script = vec![
        list("10", &odds),
        Answer::Watch(vec![
            event("MODIFIED", &object("a10", "11")),
            event("MODIFIED", &odd("a33", "12")),
            event("MODIFIED", &odd("a32", "13")),
            Step::Hang,
        ]),
    ];
    run(60, script).await;
    let log = log.take();
    let count = |part: &str| log.iter().filter(|line| line.contains(part)).count();
    assert_eq!(count("cannot decode an object"), 21, "{log:#?}");
    assert_eq!(count("cannot decode more than 20 objects"), 2, "{log:#?}");
    let named = log
        .iter()
        .filter(|line| line.contains("cannot decode an object"));
    let last = named.max().unwrap();
    assert!(last.contains("object=ns/a33"), "{log:#?}");
}
