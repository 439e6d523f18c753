//! Permissions for `--use-service-account-credentials`: the permission to request the account's
//! tokens, and the account's own permissions.
//!
//! These checks request no token: a program that waits for the lease needs none.

use serde::Deserialize;
use serde_json::{Value, json};
use statefulset_client::resource::{
    CONTROLLER_REVISIONS, PERSISTENT_VOLUME_CLAIMS, PODS, Resource, SERVICE_ACCOUNTS, STATEFUL_SETS,
};
use statefulset_client::rest::RestClient;
use statefulset_client::transport::ServiceAccountName;

use super::obstacle::Obstacle;

/// Access reviews for the program's own user.
const SELF_REVIEWS: Resource = review("selfsubjectaccessreviews", "SelfSubjectAccessReview");
/// Access reviews for other users.
const REVIEWS: Resource = review("subjectaccessreviews", "SubjectAccessReview");
/// Writes of the controller: one right per resource represents all others.
const WRITES: [(&str, Resource, &str); 4] = [
    ("create", PODS, ""),
    ("create", PERSISTENT_VOLUME_CLAIMS, ""),
    ("create", CONTROLLER_REVISIONS, ""),
    ("update", STATEFUL_SETS, "status"),
];

const fn review(plural: &'static str, kind: &'static str) -> Resource {
    Resource {
        group: "authorization.k8s.io",
        version: "v1",
        plural,
        kind,
    }
}

/// Checks that the program may request tokens of the account.
pub(super) async fn check_tokens(
    client: &RestClient,
    account: &ServiceAccountName,
) -> Result<(), Obstacle> {
    let ServiceAccountName { namespace, name } = account;
    let mut needed = vec![("create", SERVICE_ACCOUNTS, "token")];
    match client.get(&SERVICE_ACCOUNTS, namespace, name).await {
        Ok(_) => {}
        Err(error) if error.is_not_found() => needed.insert(0, ("create", SERVICE_ACCOUNTS, "")),
        Err(error) if error.is_forbidden() => needed.insert(0, ("get", SERVICE_ACCOUNTS, "")),
        Err(error) => {
            let action = format!("get the service account {account}");
            return Err(Obstacle::of(&error, &action));
        }
    }
    let spec = |mut right: Object| {
        right.insert("namespace".to_owned(), json!(namespace));
        right.insert("name".to_owned(), json!(name));
        json!({"resourceAttributes": right})
    };
    let missing = denied(client, &SELF_REVIEWS, spec, &needed).await;
    if missing.is_empty() {
        return Ok(());
    }
    Err(Obstacle::Rights {
        missing: format!("{missing} in the namespace {namespace:?}"),
        error: String::new(),
        advice: "--use-service-account-credentials needs the ClusterRole \
                 system:kube-controller-manager, or one with the same rules, bound to this user"
            .to_owned(),
    })
}

/// Warns if the account lacks permissions of the controller. Forbidden requests would show it
/// later.
pub(super) async fn warn_of_missing_rights(client: &RestClient, account: &ServiceAccountName) {
    let namespace = &account.namespace;
    let spec = |right: Object| {
        json!({
            "user": account.user(),
            "groups": [
                "system:serviceaccounts",
                format!("system:serviceaccounts:{namespace}"),
                "system:authenticated",
            ],
            "resourceAttributes": right,
        })
    };
    let missing = denied(client, &REVIEWS, spec, &WRITES).await;
    if !missing.is_empty() {
        tracing::warn!(
            %account, %missing,
            "the service account lacks permissions; bind the ClusterRole \
             system:controller:statefulset-controller to it"
        );
    }
}

type Object = serde_json::Map<String, Value>;

/// Returns, as text, the permissions (verb, resource, subresource) that reviews deny. `spec` builds
/// the spec of a review from the attributes of a permission.
async fn denied(
    client: &RestClient,
    reviews: &Resource,
    spec: impl Fn(Object) -> Value,
    rights: &[(&str, Resource, &str)],
) -> String {
    let mut denied = Vec::new();
    for (verb, resource, subresource) in rights {
        let right = [
            ("verb", *verb),
            ("group", resource.group),
            ("version", resource.version),
            ("resource", resource.plural),
            ("subresource", *subresource),
        ];
        let right = right.map(|(name, value)| (name.to_owned(), json!(value)));
        if is_denied(client, reviews, &spec(Object::from_iter(right))).await {
            let separator = if subresource.is_empty() { "" } else { "/" };
            let resource = resource.group_resource();
            denied.push(format!("{verb} {resource}{separator}{subresource}"));
        }
    }
    denied.join(", ")
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Answer {
    status: AnswerStatus,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct AnswerStatus {
    allowed: bool,
}

/// Returns true if a review denies the permission. A review that fails counts as allowed; later
/// requests will show missing permissions.
async fn is_denied(client: &RestClient, reviews: &Resource, spec: &Value) -> bool {
    let review = json!({
        "apiVersion": reviews.api_version(), "kind": reviews.kind, "spec": spec,
    });
    match client.create(reviews, "", review.to_string()).await {
        Ok(text) => {
            let answer = serde_json::from_str::<Answer>(&text);
            answer.is_ok_and(|answer| !answer.status.allowed)
        }
        Err(error) => {
            tracing::debug!(%error, %review, "cannot send an access review");
            false
        }
    }
}

#[cfg(test)]
mod tests;
