//! Wanted pods that have ended or are on their way out: their claims outlive them.

use super::*;

fn set() -> Builder<StatefulSet> {
    web().claim_template("data").retention("Delete", "Retain")
}

/// A cluster with one pod, which owns its claim.
fn owning(set: &Builder<StatefulSet>, pod: &Builder<Pod>) -> Cluster {
    let cluster = cluster(set);
    cluster.put(pod);
    let owner = builders::owner_reference(("v1", "Pod"), "web-0", "web-0-uid", Some(true));
    let claim = builders::claim(&set.build(), "data", 0).owner(owner);
    cluster.objects.claims.put(claim.json());
    cluster
}

fn is_owned(cluster: &Cluster) -> bool {
    let claim = cluster.objects.claims.json("ns", "data-web-0").unwrap();
    claim["metadata"].get("ownerReferences").is_some()
}

#[tokio::test]
async fn the_claims_of_an_ended_pod_outlive_it() {
    for phase in ["Failed", "Succeeded"] {
        for set in [set(), set().parallel()] {
            let cluster = owning(&set, &pod(&set, 0).phase(phase));
            let waiting = Waiting::PodRemoval {
                pod: "web-0".into(),
            };
            assert_eq!(cluster.step().await, Some(waiting));
            assert!(!cluster.pods().contains(&"web-0".to_owned()));
            assert!(!is_owned(&cluster), "{phase}");
            assert_eq!(cluster.objects.read_set_tracker.requests(), 0);
        }
    }
}

#[tokio::test]
async fn an_ended_pod_stays_while_it_owns_its_claim() {
    for set in [set(), set().parallel()] {
        let cluster = owning(&set, &pod(&set, 0).phase("Failed"));
        cluster.objects.update_claim_tracker.fail_after(0, boom);
        let error = cluster.sync().await.error.unwrap().to_string();
        let text = "could not update claim data-web-0 for delete policy ownerRefs: boom";
        assert_eq!(error, text);
        assert!(cluster.pods().contains(&"web-0".to_owned()));
        assert_eq!(cluster.objects.delete_pod_tracker.requests(), 0);
    }
}

#[tokio::test]
async fn the_claims_of_a_wanted_pod_on_its_way_out_outlive_it() {
    for set in [set(), set().parallel()] {
        let cluster = owning(&set, &pod(&set, 0).terminating());
        cluster.step().await;
        assert!(!is_owned(&cluster));
        assert_eq!(cluster.objects.delete_pod_tracker.requests(), 0);
    }
}

#[tokio::test]
async fn the_claims_of_a_condemned_pod_that_ended_go_with_it() {
    let set = set().replicas(0);
    let cluster = owning(&set, &pod(&set, 0).unready().phase("Failed"));
    cluster.step().await;
    assert!(is_owned(&cluster));
    assert!(cluster.pods().is_empty());
}
