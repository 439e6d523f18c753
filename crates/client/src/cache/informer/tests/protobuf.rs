//! Tests of protobuf watches, and of the fallback to JSON.

use super::*;
use crate::fake::message::{self as encoding, field};
use crate::rest::MediaType;

/// Encodes an object's message.
fn message(name: &str, version: &str) -> Vec<u8> {
    let metadata = [field(1, name), field(3, "ns"), field(6, version)].concat();
    field(1, metadata)
}

fn event_of(event_type: &str, message: &[u8]) -> Step {
    Step::Bytes(encoding::event(event_type, "Pod", message))
}

const PROTOBUF: &str = "application/vnd.kubernetes.protobuf,application/json;q=0.9";
const JSON: &str = "application/json";

/// Runs an informer for a minute. Returns the handler's events, the requests and their formats.
async fn run(api: &ScriptedApi) -> Vec<String> {
    let mut informer = Informer::new(api.client(), PODS, &InformerConfig::default());
    let heard = Arc::default();
    informer.add_handler(Arc::new(Listener {
        indexer: informer.indexer(),
        heard: Arc::clone(&heard),
    }));
    let _ = timeout(
        Duration::from_secs(60),
        informer.run(CancellationToken::new()),
    )
    .await;
    heard.lock().unwrap().clone()
}

#[tokio::test(start_paused = true)]
async fn protobuf_events_change_the_cache() {
    let api = ScriptedApi::new(vec![
        list("10", &[object("a", "7")]),
        Answer::ProtobufWatch(vec![
            event_of("ADDED", &message("b", "11")),
            event_of("MODIFIED", &message("a", "12")),
            event_of("DELETED", &message("b", "13")),
            event_of("BOOKMARK", &field(1, field(6, "20"))),
            Step::End,
        ]),
        Answer::ProtobufWatch(vec![Step::Hang]),
    ]);
    let heard = run(&api).await;
    assert_eq!(
        heard,
        ["+a:7 initial @10", "+b:11 @11", "*a:7>12 @12", "-b:13 @13"]
    );
    assert_eq!(api.asked()[1..], ["watch from 10", "watch from 20"]);
    assert_eq!(api.accepted(), [JSON, PROTOBUF, PROTOBUF]);
}

#[tokio::test(start_paused = true)]
async fn unreadable_protobuf_is_watched_as_json() {
    // A name that is invalid UTF-8, an event without an envelope, and a stream without an end.
    let odd_name = field(1, [field(1, [0xff]), field(6, "12")].concat());
    let broken = [
        event_of("MODIFIED", &odd_name),
        Step::Bytes(vec![0, 0, 0, 0]),
        Step::Break,
    ];
    for step in broken {
        let api = ScriptedApi::new(vec![
            list("10", &[]),
            Answer::ProtobufWatch(vec![event_of("ADDED", &message("a", "11")), step]),
            Answer::Watch(vec![event("MODIFIED", &object("a", "12")), Step::End]),
            Answer::ProtobufWatch(vec![event_of("MODIFIED", &message("a", "13")), Step::Hang]),
        ]);
        let heard = run(&api).await;
        assert_eq!(heard, ["+a:11 @11", "*a:11>12 @12", "*a:12>13 @13"]);
        let versions = ["watch from 10", "watch from 11", "watch from 12"];
        assert_eq!(api.asked()[1..], versions);
        assert_eq!(api.accepted(), [JSON, PROTOBUF, JSON, PROTOBUF]);
    }
}

#[tokio::test(start_paused = true)]
async fn json_client_watches_json() {
    let api = ScriptedApi::new(vec![
        list("10", &[]),
        Answer::Watch(vec![event("ADDED", &object("a", "11")), Step::Hang]),
    ]);
    let client = api.client().with_media_type(MediaType::Json);
    let informer = Informer::<TestObject>::new(client, PODS, &InformerConfig::default());
    let indexer = informer.indexer();
    let running = informer.run(CancellationToken::new());
    let _ = timeout(Duration::from_secs(60), running).await;
    assert_eq!(indexer.len(), 1);
    assert_eq!(api.accepted(), [JSON, JSON]);
}
