//! Tests of health responses.

use std::sync::atomic::{AtomicBool, Ordering};

use http::header::CONTENT_TYPE;
use http_body_util::BodyExt as _;

use super::*;

struct Switch {
    name: &'static str,
    works: AtomicBool,
}

impl HealthCheck for Switch {
    fn name(&self) -> &str {
        self.name
    }

    fn check(&self) -> Result<(), String> {
        if self.works.load(Ordering::Relaxed) {
            Ok(())
        } else {
            Err("secret".to_owned())
        }
    }
}

fn switch(name: &'static str, works: bool) -> Arc<Switch> {
    Arc::new(Switch {
        name,
        works: works.into(),
    })
}

/// A check by name, and whether it passes.
type Works = (&'static str, bool);

fn health(checks: &[Works]) -> Health {
    let health = Health::default();
    for (name, works) in checks {
        health.add(switch(name, *works));
    }
    health
}

async fn asked(health: &Health, endpoint: Endpoint, query: &str) -> (u16, String) {
    let answer = health.answer(endpoint, query);
    assert_eq!(answer.headers()[CONTENT_TYPE], "text/plain; charset=utf-8");
    assert_eq!(answer.headers()["x-content-type-options"], "nosniff");
    let code = answer.status().as_u16();
    let bytes = answer.into_body().collect().await.unwrap().to_bytes();
    (code, String::from_utf8(bytes.to_vec()).unwrap())
}

#[tokio::test]
async fn responses_match_the_reference() {
    let well = [("leaderElection", true), ("statefulset-controller", true)];
    let ill = [("leaderElection", false), ("statefulset-controller", true)];
    let passed = "[+]leaderElection ok\n[+]statefulset-controller ok\nhealthz check passed\n";
    let failed = "[-]leaderElection failed: reason withheld\n[+]statefulset-controller ok\n\
                  healthz check failed\n";
    let table: [(&[Works], &str, u16, &str); 11] = [
        (&[], "", 200, "ok"),
        (&[], "verbose", 200, "healthz check passed\n"),
        (&well, "", 200, "ok"),
        (&well, "verbose", 200, passed),
        (&well, "verbose=false", 200, passed),
        (&ill, "", 500, failed),
        (&ill, "verbose", 500, failed),
        (&ill, "exclude=leaderElection", 200, "ok"),
        (
            &ill,
            "exclude=leaderElection&verbose",
            200,
            "[+]leaderElection excluded: ok\n[+]statefulset-controller ok\nhealthz check passed\n",
        ),
        (
            &well,
            "verbose&exclude=x%22y&exclude=b",
            200,
            "[+]leaderElection ok\n[+]statefulset-controller ok\n\
             warn: some health checks cannot be excluded: no matches for \"b\", \"x\\\"y\"\n\
             healthz check passed\n",
        ),
        (&well, "exclude=nope&exclude=", 200, "ok"),
    ];
    for (checks, query, code, expected) in table {
        let (found, body) = asked(&health(checks), Endpoint::Healthz, query).await;
        assert_eq!((found, body.as_str()), (code, expected), "{query}");
    }
}

#[tokio::test]
async fn readyz_has_additional_checks() {
    let health = health(&[("leaderElection", true)]);
    let synced = switch("informer-sync", false);
    health.add_readiness(Arc::clone(&synced) as Arc<dyn HealthCheck>);
    assert_eq!(asked(&health, Endpoint::Healthz, "").await.0, 200);
    assert_eq!(asked(&health, Endpoint::Livez, "").await.0, 200);
    let (code, body) = asked(&health, Endpoint::Readyz, "").await;
    assert_eq!(
        (code, body.as_str()),
        (
            500,
            "[+]leaderElection ok\n[-]informer-sync failed: reason withheld\nreadyz check failed\n"
        )
    );
    synced.works.store(true, Ordering::Relaxed);
    assert_eq!(asked(&health, Endpoint::Readyz, "").await.1, "ok");
}

#[tokio::test]
async fn checks_can_be_added_later() {
    let health = Health::default();
    assert_eq!(asked(&health, Endpoint::Healthz, "").await.0, 200);
    health.add(switch("late", false));
    assert_eq!(asked(&health, Endpoint::Healthz, "").await.0, 500);
}
