//! `authorization.k8s.io/v1`.

use super::review;
use crate::kinds::Kind;

const GROUP: &str = "authorization.k8s.io";

pub(super) const KINDS: &[Kind] = &[
    Kind {
        namespaced: true,
        ..review(
            GROUP,
            "LocalSubjectAccessReview",
            "localsubjectaccessreviews",
            "localsubjectaccessreview",
        )
    },
    review(
        GROUP,
        "SelfSubjectAccessReview",
        "selfsubjectaccessreviews",
        "selfsubjectaccessreview",
    ),
    review(
        GROUP,
        "SelfSubjectRulesReview",
        "selfsubjectrulesreviews",
        "selfsubjectrulesreview",
    ),
    review(
        GROUP,
        "SubjectAccessReview",
        "subjectaccessreviews",
        "subjectaccessreview",
    ),
];
