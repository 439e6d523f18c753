//! `authentication.k8s.io/v1`.

use super::review;
use crate::kinds::Kind;

const GROUP: &str = "authentication.k8s.io";

pub(super) const KINDS: &[Kind] = &[
    review(
        GROUP,
        "SelfSubjectReview",
        "selfsubjectreviews",
        "selfsubjectreview",
    ),
    review(GROUP, "TokenReview", "tokenreviews", "tokenreview"),
];

/// The body of `serviceaccounts/NAME/token`, a kind without a resource.
pub static TOKEN_REQUEST: Kind = Kind {
    namespaced: true,
    ..review(GROUP, "TokenRequest", "tokenrequests", "tokenrequest")
};
