//! Certificate signing requests: user, conditions, and the permission to approve them.

use kube_test_control_plane_api::kinds::{Subresource, Target};
use kube_test_control_plane_api::members::{list_at, object_mut, text};
use kube_test_control_plane_api::object::Draft;
use kube_test_control_plane_api::status::{ApiError, ApiResult};
use kube_test_control_plane_store::clock::Clock;
use serde_json::{Map, Value, json};

use crate::access;
use crate::auth::attributes::{Attributes, Resource};
use crate::auth::identity::Identity;
use crate::route::ResourceRequest;
use crate::state::{Access, now_text};

/// The storage of the requests.
const REQUESTS: &str = "certificatesigningrequests";

/// The conditions that only `/approval` changes.
const APPROVALS: [&str; 2] = ["Approved", "Denied"];

/// Sets the user of a new certificate signing request.
pub(crate) fn note_requester(request: &ResourceRequest, draft: &mut Draft) {
    if &*request.kind.storage != REQUESTS || !draft.value["spec"].is_object() {
        return;
    }
    let admin = Identity::admin();
    let user = request.user.as_deref().unwrap_or(&admin).to_user_info();
    let spec = object_mut(&mut draft.value, "spec");
    for member in ["username", "uid", "groups", "extra"] {
        spec.remove(member);
    }
    spec.extend(user.as_object().cloned().unwrap_or_default());
}

/// Completes an update of a certificate signing request: the status keeps the approval, and
/// new conditions get their times.
pub(crate) fn complete_signing_request(
    clock: &dyn Clock,
    request: &ResourceRequest,
    old: &Draft,
    new: &mut Draft,
) {
    if &*request.kind.storage != REQUESTS {
        return;
    }
    let now = json!(now_text(clock));
    let is_approval = |condition: &Value| APPROVALS.contains(&text(condition, "type"));
    let before: Vec<Value> = list_at(&old.value, "/status/conditions").cloned().collect();
    let mut conditions: Vec<Value> = list_at(&new.value, "/status/conditions").cloned().collect();
    if request.target == Target::Part(Subresource::Status) {
        conditions.retain(|condition| !is_approval(condition));
        let kept = before.iter().filter(|condition| is_approval(condition));
        conditions.splice(0..0, kept.cloned());
    }
    if conditions.is_empty() {
        return;
    }
    for condition in conditions.iter_mut().filter_map(Value::as_object_mut) {
        let same = |it: &&Value| {
            ["type", "status"].map(|m| it.get(m)) == ["type", "status"].map(|m| condition.get(m))
        };
        let since = before
            .iter()
            .find(same)
            .and_then(|it| it.get("lastTransitionTime"));
        let since = since.filter(|since| !since.is_null()).cloned();
        set_if_null(
            condition,
            "lastTransitionTime",
            since.unwrap_or(now.clone()),
        );
        set_if_null(condition, "lastUpdateTime", now.clone());
    }
    object_mut(&mut new.value, "status").insert("conditions".to_owned(), json!(conditions));
}

/// Rejects an approval by a user without permission to approve for the signer.
///
/// Upstream: the admission plugin `CertificateApproval`
pub(crate) fn check_approval(
    access: &Access,
    request: &ResourceRequest,
    old: &Draft,
) -> ApiResult<()> {
    if request.target != Target::Part(Subresource::Approval) {
        return Ok(());
    }
    let admin = Identity::admin();
    let user = request.user.as_deref().unwrap_or(&admin);
    let signer = old.text("/spec/signerName").unwrap_or_default();
    let domain = signer.split_once('/').map_or(signer, |(domain, _)| domain);
    let may = |name: &str| {
        let signers = Resource {
            group: "certificates.k8s.io".into(),
            plural: "signers".into(),
            name: name.into(),
            ..Resource::default()
        };
        let wanted = Attributes::resource("approve", signers);
        access::decide(access, user, &wanted).is_allowed()
    };
    if may(signer) || may(&format!("{domain}/*")) {
        return Ok(());
    }
    let why = format!("user not permitted to approve requests with signerName {signer:?}");
    Err(ApiError::forbidden(&request.kind, &request.name, &why))
}

fn set_if_null(members: &mut Map<String, Value>, member: &str, value: Value) {
    let slot = members.entry(member).or_insert(Value::Null);
    if slot.is_null() {
        *slot = value;
    }
}
