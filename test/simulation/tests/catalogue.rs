//! The catalogue of scenarios: one test for each variant of each. Nextest gives each test a separate
//! process, which a run needs to be reproducible.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write as _;
use std::ops::RangeInclusive;
use std::process::{Command, Stdio};

use simulation::catalogue::{Check, ISSUES, NOT_PLAYED, RunView, scenario, scenarios};
use simulation::history::History;
use simulation::outcome::Outcome;
use simulation::plan::{Action, Millis, Trigger};
use simulation::run::run;

/// Number of scenarios of the catalogue.
const COUNT: u32 = 84;

/// A test for each scenario, by name and number, or one for each of its variants.
macro_rules! scenarios {
    ($($name:ident = $number:literal $([$($variant:ident)*])?,)*) => {
        /// Numbers of the scenarios, and of their variants.
        const TESTED: &[(u32, &[&str])] = &[
            $(($number, &[$($(stringify!($variant)),*)?])),*
        ];

        $(tests! { $name = $number $($($variant)*)? })*
    };
}

/// The tests of one scenario.
macro_rules! tests {
    ($name:ident = $number:literal) => {
        #[test]
        fn $name() {
            play($number, 0);
        }
    };
    ($name:ident = $number:literal $($variant:ident)+) => {
        mod $name {
            const VARIANTS: &[&str] = &[$(stringify!($variant)),+];

            $(
                #[test]
                fn $variant() {
                    let name = stringify!($variant);
                    let nth = VARIANTS.iter().position(|it| *it == name);
                    super::play($number, nth.expect("the variant is in the list"));
                }
            )+
        }
    };
}

fn play(number: u32, variant: usize) {
    let scenario = scenario(number).expect("the scenario is in the catalogue");
    if let Err(failures) = scenario.play(variant) {
        panic!("{failures}");
    }
}

scenarios! {
    one_pod_per_ordinal_before_events = 1,
    lagging_pod_events_during_a_scale_up = 2 [ordered parallel],
    status_is_not_written_twice = 3,
    one_revision_before_its_event = 4,
    claim_that_exists_already = 5,
    gone_pod_does_not_stop_a_scale_down = 6,
    takeover_from_a_frozen_replica_during_a_roll = 7,
    new_leader_with_stale_replicas_deletes_no_pod = 8,
    takeover_by_a_reader_of_a_deleted_set = 9,
    takeover_by_a_reader_of_an_old_template = 10,
    expired_watches_cause_no_write = 11,
    pod_deleted_before_its_event = 12,
    events_of_different_ages = 13 [late_sets late_pods],
    crash_between_claim_and_pod = 14,
    crash_after_a_pod_is_created = 15,
    crash_between_claim_and_scale_down = 16 [finished taken_back],
    crash_after_a_deletion_for_an_update = 17,
    crash_after_a_revision_is_created = 18 [first later],
    crash_after_a_revision_is_raised = 19,
    crash_in_a_burst_of_creations = 20,
    crash_while_releasing_or_adopting = 21 [release adoption],
    rollout_survives_crash_at_every_kth_write = 22 [
        every_1 every_2 every_3 every_4 every_5 every_6 every_7 every_8 every_9
        every_10 every_11 every_12 every_13 every_14 every_15 every_16 every_17 every_18 every_19 every_20
    ],
    pod_is_unready_for_a_moment = 23 [ordered parallel],
    pod_is_replaced_by_a_stranger = 24,
    reverted_scale_up_creates_no_pod = 25,
    reverted_template_creates_no_revision = 26,
    pods_deleted_unseen_are_replaced_in_order = 27,
    lost_event_of_a_deletion = 28,
    rollout_survives_a_third_of_writes_failing = 29 [internal_error too_many_requests],
    lost_answers_of_every_kind = 30,
    quota_below_the_replicas = 31,
    quota_that_condemned_pods_fill = 32,
    template_that_admission_denies = 33 [ordered parallel],
    pods_that_admission_changes = 34,
    forbidden_owners_of_claims = 35,
    outage_during_a_roll = 36,
    pod_repair_survives_conflicts = 37,
    bad_first_image = 38 [ordered parallel],
    broken_pod_below_the_partition = 39 [two_pods percent],
    unready_updated_pods = 40,
    deleted_pod_during_a_roll = 41 [all_pods above_the_partition],
    scaled_to_zero_below_the_partition = 42,
    rollback_by_partition = 43,
    partition_above_the_first_ordinal = 44,
    template_back_and_forth = 45,
    update_on_delete = 46,
    scaling_back_and_forth = 47,
    min_ready_seconds = 48,
    clock_ahead_or_behind = 49 [ahead behind],
    failed_and_succeeded_pods = 50 [ordered parallel],
    first_pod_deleted_while_the_next_is_unready = 51,
    lost_node = 52,
    unhealthy_pods_scaled_to_zero = 53,
    deleted_claim_under_protection = 54,
    lost_claim_of_a_pending_pod = 55,
    retention_changed_back_and_forth = 56 [to_retain to_delete],
    claims_with_other_owners = 57,
    scale_up_waits_for_deletion_of_its_claim = 58,
    pod_killed_during_downtime_keeps_its_claim = 59,
    two_sets_with_the_same_claims = 60,
    labels_of_claims_in_a_burst = 61,
    orphaned_while_adopting = 62,
    orphaned_and_adopted_with_another_template = 63,
    orphaned_and_adopted_with_another_claim = 64,
    overlapping_selectors = 65,
    released_pod_that_keeps_its_name = 66,
    set_created_again_before_its_pods_are_gone = 67,
    pods_with_names_that_are_not_canonical = 68,
    name_that_is_too_long = 69,
    late_deletion_meets_a_new_pod = 70,
    frequent_takeovers_repeat_no_write = 71,
    two_versions_that_take_turns = 72 [v1_33 v1_34],
    takeover_from_an_older_version = 73 [v1_33 v1_34 v1_35],
    field_from_upgraded_server_restarts_no_pod = 74,
    equal_revisions_of_large_hashes = 75,
    wedged_and_hot_sets_among_many = 77,
    burst_of_creations_with_failures = 78,
    corrected_template_with_repair = 79 [evict delete],
    image_missing_for_ever_with_repair = 80 [ordered parallel],
    gated_scale_down_that_deletes_claims = 81 [ordered parallel],
    paused_rollout = 82,
    deadline_that_pauses = 83 [one_leader new_leader],
    built_in_controller_of_a_blocked_rollout = 84,
}

#[test]
fn every_scenario_is_tested_or_listed() {
    let plays = scenarios().into_iter().map(|it| {
        let variants = (it.plans)().len();
        (it.number, variants)
    });
    let plays: BTreeMap<u32, usize> = plays.collect();
    assert_eq!(plays.len(), scenarios().len(), "two have the same number");
    let tested = TESTED
        .iter()
        .map(|(number, variants)| (*number, variants.len().max(1)));
    assert_eq!(plays, tested.collect());
    let listed = NOT_PLAYED.iter().map(|it| it.number);
    let mut all: Vec<u32> = plays.into_keys().chain(listed).collect();
    all.sort_unstable();
    assert_eq!(all, (1..=COUNT).collect::<Vec<u32>>());
}

#[test]
fn every_issue_of_a_scenario_has_a_status() {
    let named = scenarios().into_iter().flat_map(|it| it.origin);
    let named: BTreeSet<u32> = named.copied().collect();
    let listed: Vec<u32> = ISSUES.iter().map(|(number, _)| *number).collect();
    assert_eq!(named.into_iter().collect::<Vec<_>>(), listed);
}

#[test]
fn run_in_a_test_is_the_same_as_in_the_program() {
    let scenario = scenario(16).expect("the scenario is in the catalogue");
    let plan = (scenario.plans)().remove(0);
    let mut program = Command::new(env!("CARGO_BIN_EXE_simulate"))
        .args(["run", "--plan", "-", "--print", "json"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the program starts");
    let mut input = program.stdin.take().expect("its input is a pipe");
    let text = plan.to_json();
    input.write_all(text.as_bytes()).expect("it reads the plan");
    drop(input);
    let output = program.wait_with_output().expect("it ends");
    let theirs: Outcome = serde_json::from_slice(&output.stdout).expect("an outcome");
    assert_eq!(Outcome::of(&plan).trace, theirs.trace);
}

/// A scenario must not pass if nothing happens in it but the creation of its first objects.
fn assert_situations_needed(numbers: RangeInclusive<u32>) {
    let mut passed = Vec::new();
    for scenario in scenarios() {
        if !numbers.contains(&scenario.number) {
            continue;
        }
        let whole = (scenario.plans)().remove(0);
        let mut plan = whole.clone();
        plan.steps.retain(|step| {
            let is_first = step.at == Trigger::Time(Millis(0));
            is_first && !matches!(step.action, Action::Fault { .. })
        });
        let record = run(&plan);
        let history = History::read(&record);
        let mut check = Check::default();
        (scenario.expect)(&RunView::new(0, &plan, &record, &history), &mut check);
        if check.failures().is_empty() && plan != whole {
            passed.push(scenario.number);
        }
    }
    assert!(passed.is_empty(), "{passed:?} pass without their situation");
}

#[test]
fn scenarios_1_to_28_need_their_situations() {
    assert_situations_needed(1..=28);
}

#[test]
fn scenarios_29_to_53_need_their_situations() {
    assert_situations_needed(29..=53);
}

#[test]
fn scenarios_54_to_84_need_their_situations() {
    assert_situations_needed(54..=84);
}
