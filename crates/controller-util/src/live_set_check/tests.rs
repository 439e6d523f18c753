//! Number of live reads, and the calls that share one.

use std::sync::Mutex as StdMutex;
use std::sync::atomic::AtomicUsize;

use async_trait::async_trait;
use futures::future::join_all;
use kube_apimachinery::object_key::ObjectKey;
use statefulset_client::error::Error;

use super::*;
use crate::testing::builders;

/// The stored set. Counts its live reads.
struct Stored {
    set: StdMutex<StatefulSet>,
    reads: AtomicUsize,
    fails: bool,
}

#[async_trait]
impl SetReader for Stored {
    async fn read_stateful_set(&self, _: &ObjectKey) -> Result<StatefulSet, Error> {
        self.reads.fetch_add(1, Ordering::Relaxed);
        if self.fails {
            return Err(Error::api(500, "InternalError", "boom"));
        }
        Ok(self.set.lock().unwrap().clone())
    }
}

impl Stored {
    fn reads(&self) -> usize {
        self.reads.load(Ordering::Relaxed)
    }

    fn change(&self) {
        *self.set.lock().unwrap() = builders::set("web").generation(2).build();
    }
}

fn stored() -> (Stored, StatefulSet) {
    let set = builders::set("web").build();
    let stored = Stored {
        set: StdMutex::new(set.clone()),
        reads: AtomicUsize::new(0),
        fails: false,
    };
    (stored, set)
}

#[tokio::test]
async fn concurrent_calls_share_a_live_read() {
    let (objects, set) = stored();
    let check = LiveSetCheck::default();
    let call = async || check.passes(&objects, &set).await.map(drop);
    for batch in 1..=3 {
        let calls = (0..WRITES_PER_READ_MAX).map(|_| call());
        assert!(join_all(calls).await.iter().all(Result::is_ok));
        assert_eq!(objects.reads(), batch);
    }
}

#[tokio::test]
async fn each_live_read_allows_a_few_writes() {
    let (objects, set) = stored();
    let check = LiveSetCheck::default();
    // Each write takes time, as under the client's rate limit.
    let write = async || {
        let turn = check.passes(&objects, &set).await.unwrap();
        for _ in 0..100 {
            tokio::task::yield_now().await;
        }
        drop(turn);
    };
    join_all((0..WRITES_PER_READ_MAX * 3).map(|_| write())).await;
    assert_eq!(objects.reads(), 3);

    // A change of the set stops the writes without a live read.
    let (objects, set) = stored();
    let check = LiveSetCheck::default();
    let write = async |number: usize| {
        let turn = check.passes(&objects, &set).await?;
        tokio::task::yield_now().await;
        if number == 0 {
            objects.change();
        }
        drop(turn);
        Ok::<(), Arc<LiveSetError>>(())
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
    let check = LiveSetCheck::default();
    drop(check.passes(&objects, &set).await.unwrap());
    objects.change();
    let error = check.passes(&objects, &set).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "StatefulSet ns/web changed: generation 2 instead of 1"
    );
}

#[tokio::test]
async fn failed_live_read_is_the_last_of_its_sync() {
    let (objects, set) = stored();
    let objects = Stored {
        fails: true,
        ..objects
    };
    let check = LiveSetCheck::default();
    for _ in 0..3 {
        let error = check.passes(&objects, &set).await.unwrap_err();
        assert_eq!(error.to_string(), "can't read StatefulSet ns/web: boom");
    }
    assert_eq!(objects.reads(), 1);
    let (objects, _) = stored();
    drop(
        LiveSetCheck::default()
            .passes(&objects, &set)
            .await
            .unwrap(),
    );
}
