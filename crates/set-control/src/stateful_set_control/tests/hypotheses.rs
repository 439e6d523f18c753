//! Assumptions about what the sources of 1.37 leave open. A recording may flip a line of the
//! table; `docs/versions.md` lists the same questions.

use statefulset_client::feature_gates::KubeVersion;

use super::*;

/// Assumptions that a recording of 1.37 may change.
const PRESENT: [(&str, bool); 6] = [
    ("changed condition alone is written", true),
    ("changed time alone is written", false),
    ("first creation ends in completed", true),
    ("later sync writes completed again", false),
    ("progress stays under another strategy", true),
    ("completion needs availability", false),
];

fn at_1_37(set: &Builder<StatefulSet>) -> World {
    let gates = FeatureGates::parse("StatefulSetRecreateStrategy=true", KubeVersion::v1(37));
    with_gates(set, gates.unwrap())
}

impl World {
    /// Returns reason and time of the condition `Progressing`.
    fn reason_and_time(&self) -> Option<(String, String)> {
        let conditions = self.set.status.conditions.clone()?.list();
        let own = conditions
            .iter()
            .find(|it| *it.condition_type == *"Progressing")?;
        Some((own.reason.to_string(), own.last_transition_time.to_string()))
    }

    fn writes(&self) -> usize {
        self.requests(Call::UpdateStatus)
    }

    /// Replaces the recorded conditions, and returns true if the next sync writes the status.
    async fn writes_after(&mut self, member: &str, value: &str) -> bool {
        let mut status = serde_json::to_value(&*self.set.status).unwrap();
        status["conditions"][0][member] = value.into();
        let status = serde_json::from_value(status).unwrap();
        self.update(|set| set.status = Arc::new(status));
        let before = self.writes();
        self.step().await;
        self.writes() > before
    }
}

#[tokio::test]
async fn open_questions_have_their_current_answers() {
    let set = web().recreate();
    let mut world = at_1_37(&set);
    world.settle().await;
    let created = world.reason_and_time();
    let writes = world.writes();
    world.step().await;
    let later_sync_writes_completed_again = world.writes() > writes;
    let changed_condition_alone_is_written = world.writes_after("message", "x").await;
    let time = "2020-01-01T00:00:00Z";
    let changed_time_alone_is_written = world.writes_after("lastTransitionTime", time).await;
    world.apply(&web().generation(2));
    world.step().await;
    let progress_stays_under_another_strategy = world.reason_and_time().is_some();

    let slow = set.min_ready_seconds(1_000_000);
    let mut world = at_1_37(&slow);
    for ordinal in 0..3 {
        world.put_pod(&pod(&slow, ordinal));
    }
    world.step().await;
    let completion_needs_availability = world.reason_and_time().is_none();

    let answers = [
        changed_condition_alone_is_written,
        changed_time_alone_is_written,
        created.is_some_and(|(reason, _)| reason == "RecreateCompleted"),
        later_sync_writes_completed_again,
        progress_stays_under_another_strategy,
        completion_needs_availability,
    ];
    assert_eq!(answers, PRESENT.map(|(_, answer)| answer), "{PRESENT:?}");
}
