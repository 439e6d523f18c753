//! Number of live reads, and the calls that share one.

use futures::future::join_all;
use statefulset_controller_util::testing::Call;
use statefulset_controller_util::testing::builders;

use super::*;
use crate::fake::FakeObjectManager;
use crate::test_world::boom;

fn stored() -> (FakeObjectManager, StatefulSet) {
    let objects = FakeObjectManager::default();
    let set = builders::set("web").build();
    objects.sets.add(set.clone());
    (objects, set)
}

#[tokio::test]
async fn concurrent_calls_share_a_live_read() {
    let (objects, set) = stored();
    let check = LiveSetCheck::new();
    let call = async || check.passes(&objects, &set).await.map(drop);
    for batch in 1..=3 {
        let calls = (0..WRITES_PER_READ_MAX).map(|_| call());
        assert!(join_all(calls).await.iter().all(Result::is_ok));
        assert_eq!(objects.tracker.requests(Call::ReadSet), batch);
    }
}

#[tokio::test]
async fn each_live_read_allows_a_few_writes() {
    let (objects, set) = stored();
    let check = LiveSetCheck::new();
    // Each write takes time, as under the client's rate limit.
    let write = async || {
        let turn = check.passes(&objects, &set).await.unwrap();
        for _ in 0..100 {
            tokio::task::yield_now().await;
        }
        drop(turn);
    };
    join_all((0..WRITES_PER_READ_MAX * 3).map(|_| write())).await;
    assert_eq!(objects.tracker.requests(Call::ReadSet), 3);

    // A change of the set stops the writes without a live read.
    let (objects, set) = stored();
    let check = LiveSetCheck::new();
    let write = async |number: usize| {
        let turn = check.passes(&objects, &set).await?;
        tokio::task::yield_now().await;
        if number == 0 {
            objects.sets.add(builders::set("web").generation(2).build());
        }
        drop(turn);
        Ok::<(), String>(())
    };
    let written = join_all((0..WRITES_PER_READ_MAX * 3).map(write)).await;
    assert_eq!(
        written.iter().filter(|write| write.is_ok()).count(),
        WRITES_PER_READ_MAX
    );
}

#[tokio::test]
async fn earlier_live_read_is_not_reused() {
    let (objects, set) = stored();
    let check = LiveSetCheck::new();
    drop(check.passes(&objects, &set).await.unwrap());
    objects.sets.add(builders::set("web").generation(2).build());
    let error = check.passes(&objects, &set).await.unwrap_err();
    assert_eq!(
        error,
        "StatefulSet ns/web changed: generation 2 instead of 1"
    );
}

#[tokio::test]
async fn failed_live_read_is_the_last_of_its_sync() {
    let (objects, set) = stored();
    let check = LiveSetCheck::new();
    objects.tracker.fail_after(Call::ReadSet, 0, boom);
    for _ in 0..3 {
        let error = check.passes(&objects, &set).await.unwrap_err();
        assert_eq!(error, "can't read StatefulSet ns/web: boom");
    }
    assert_eq!(objects.tracker.requests(Call::ReadSet), 1);
    drop(LiveSetCheck::new().passes(&objects, &set).await.unwrap());
}
