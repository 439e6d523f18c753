//! Tests of lists on request.

use super::*;

/// Creates an informer with a script that opens an endless watch after each list, and its relister.
fn informer(lists: Vec<Answer>) -> (ScriptedApi, Informer<TestObject>) {
    let watched = |list| [list, Answer::Watch(vec![Step::Hang])];
    let api = ScriptedApi::new(lists.into_iter().flat_map(watched).collect());
    let informer = Informer::new(api.client(), PODS, &InformerConfig::default());
    (api, informer)
}

#[tokio::test(start_paused = true)]
async fn relist_lists_immediately() {
    let (api, mut informer) = informer(vec![
        list("10", &[object("gone", "1"), object("kept", "2")]),
        list("50", &[object("kept", "2"), object("new", "45")]),
    ]);
    let heard = Arc::default();
    informer.add_handler(Arc::new(Listener {
        indexer: informer.indexer(),
        heard: Arc::clone(&heard),
    }));
    let (relister, mut synced) = (informer.relister(), informer.has_synced());
    let token = CancellationToken::new();
    let ask = async {
        synced.wait_for(|synced| *synced).await.unwrap();
        sleep(Duration::from_secs(20)).await;
        let start = Instant::now();
        relister.relist().await;
        assert_eq!(start.elapsed(), Duration::ZERO);
        assert_eq!(
            heard.lock().unwrap()[2..],
            [
                "*kept:2>2 @50",
                "+new:45 @50",
                "-gone:1 unknown @50",
                "relisted @50"
            ]
        );
        sleep(Duration::from_secs(20)).await;
        token.cancel();
    };
    tokio::join!(informer.run(token.clone()), ask);
    let list = "/api/v1/pods?limit=500";
    assert_eq!(
        api.asked(),
        [list, "watch from 10", list, "watch from 50"],
        "the watch continued without another list"
    );
}

#[tokio::test(start_paused = true)]
async fn first_list_satisfies_earlier_requests() {
    let (api, informer) = informer(vec![list("10", &[])]);
    let (first, second) = (informer.relister(), informer.relister());
    let (token, indexer) = (CancellationToken::new(), informer.indexer());
    let ask = async {
        tokio::join!(first.relist(), second.relist());
        assert_eq!(&*indexer.last_sync_resource_version(), "10");
        sleep(Duration::from_secs(20)).await;
        token.cancel();
    };
    // Request before the informer runs.
    tokio::join!(biased; ask, informer.run(token.clone()));
    assert_eq!(api.asked(), ["/api/v1/pods?limit=500", "watch from 10"]);
}

#[tokio::test(start_paused = true)]
async fn failed_list_does_not_complete_relist() {
    let (api, informer) = informer(vec![list("10", &[])]);
    let answers = [
        Answer::Refuse(500, "InternalError"),
        list("20", &[]),
        Answer::Watch(vec![Step::Hang]),
    ];
    api.then(answers);
    let (relister, mut synced) = (informer.relister(), informer.has_synced());
    let (token, indexer) = (CancellationToken::new(), informer.indexer());
    let ask = async {
        synced.wait_for(|synced| *synced).await.unwrap();
        relister.relist().await;
        token.cancel();
        assert_eq!(&*indexer.last_sync_resource_version(), "20");
    };
    tokio::join!(informer.run(token.clone()), ask);
    let list = "/api/v1/pods?limit=500";
    assert_eq!(api.asked()[..4], [list, "watch from 10", list, list]);
}
