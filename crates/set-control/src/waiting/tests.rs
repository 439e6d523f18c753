//! Texts of the reasons to wait.

use super::*;

#[test]
fn each_reason_names_its_pod() {
    let pod: Box<str> = "web-1".into();
    let about = |pod: &str| pod.into();
    let reasons = [
        Waiting::PodRemoval(about(&pod)),
        Waiting::OldPodRemoval(about(&pod)),
        Waiting::StaleClaim {
            pod: about(&pod),
            claim: "data-web-1".into(),
        },
        Waiting::PodCreated(about(&pod)),
        Waiting::PodTerminating(about(&pod)),
        Waiting::PodNotReady(about(&pod)),
        Waiting::PodNotAvailable(about(&pod)),
        Waiting::ScaledDown(about(&pod)),
        Waiting::ScaleDownBlocked {
            pod: about(&pod),
            unavailable: "web-0".into(),
        },
        Waiting::PodUpdated(about(&pod)),
        Waiting::UpdatedPodUnavailable(about(&pod)),
        Waiting::PodDeletionByUser(about(&pod)),
    ];
    let mut texts = std::collections::BTreeSet::new();
    for reason in &reasons {
        assert_eq!(reason.pod(), Some("web-1"));
        let text = reason.to_string();
        assert!(text.contains("web-1"), "{text}");
        assert!(texts.insert(text), "each text is unique");
    }
    let budget = Waiting::UnavailableBudget {
        pod: about("web-1"),
        unavailable: 3,
        max_unavailable: 2,
    };
    assert_eq!(budget.pod(), Some("web-1"));
    assert_eq!(
        budget.to_string(),
        "3 pods are unavailable, first web-1, of at most 2"
    );
}

#[test]
fn reasons_about_the_set_itself_name_no_pod() {
    let selector = Waiting::InvalidSelector("it selects nothing".into());
    for (reason, text) in [
        (Waiting::SetGone, "set no longer exists"),
        (
            selector,
            "the set's selector cannot be used: it selects nothing",
        ),
        (Waiting::SetDeleted, "set is being deleted"),
    ] {
        assert_eq!((reason.pod(), reason.to_string().as_str()), (None, text));
    }
}
