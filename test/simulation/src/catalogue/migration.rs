//! Takeover of sets that another controller made.

use serde_json::{Value, json};

use super::{Scenario, settings};
use crate::plan::{Action, Plan, SetSpec};

pub(super) const SCENARIOS: &[Scenario] = &[Scenario {
    number: 75,
    name: "equal revisions of an old bug, with hashes above 31 bits",
    origin: &[61998, 69967, 69400],
    plans: || {
        vec![
            Plan::new(1, settings())
                .at(0, revision("4294967295", 1))
                .at(0, revision("9999999999", 1))
                .at(100, Action::Create(SetSpec::default()))
                .at(30_000, Action::crash())
                .at(200_000, Action::delete_pod(1))
                .at(230_000, Action::annotate("statefulsets", "web", "x")),
        ]
    },
    expect: |it, check| {
        let revisions = it.revisions(50);
        let equal = revisions.len() == 2 && revisions[0].data == revisions[1].data;
        check.occurred("two revisions are equal", equal);
        check.occurred("another process leads", it.leaders().len() == 2);
        check.equal("revisions", it.revisions_ever(), 2);
        let used = |at| {
            let pods = it.pods(at);
            let mut names: Vec<String> = pods.iter().map(|it| it.revision.clone()).collect();
            names.dedup();
            names
        };
        check.holds("one is used", used(20_000).len() == 1);
        check.holds("and stays in use", used(it.end()) == used(20_000));
        check.equal("deletions", it.deletions(), 0);
        check.equal(
            "writes of the next process",
            it.writes_in(30_001, 199_000),
            0,
        );
    },
}];

/// Creates a revision with the template of the default set, as an older controller did.
fn revision(hash: &str, number: u32) -> Action {
    let template: Value = json!({
        "$patch": "replace",
        "metadata": {"labels": {"app": "web"}},
        "spec": {
            "containers": [{
                "image": "a",
                "imagePullPolicy": "Always",
                "name": "main",
                "resources": {},
                "terminationMessagePath": "/dev/termination-log",
                "terminationMessagePolicy": "File",
            }],
            "dnsPolicy": "ClusterFirst",
            "restartPolicy": "Always",
            "schedulerName": "default-scheduler",
            "securityContext": {},
            "terminationGracePeriodSeconds": 10,
        },
    });
    Action::CreateObject {
        resource: "controllerrevisions".to_owned(),
        object: json!({
            "apiVersion": "apps/v1",
            "kind": "ControllerRevision",
            "metadata": {
                "name": format!("web-{hash}"),
                "labels": {"app": "web", "controller.kubernetes.io/hash": hash},
            },
            "revision": number,
            "data": {"spec": {"template": template}},
        }),
    }
}
