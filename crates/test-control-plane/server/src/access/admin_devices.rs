//! Requests for devices in use, which only some namespaces may make.

use kube_test_control_plane_api::kinds::{self, Subresource, Target};
use kube_test_control_plane_api::object::Key;
use kube_test_control_plane_api::status::FieldError;
use kube_test_control_plane_api::validation::Subject;
use serde_json::Value;

use crate::state::Reads;

/// The label of namespaces that may use devices of others.
const LABEL: &str = "resource.kubernetes.io/admin-access";

/// Returns the error of a request for administrative access outside a namespace with the label.
///
/// Upstream: `AuthorizedForAdmin`, `AuthorizedForAdminStatus`
pub(crate) fn check_admin_devices(reads: &Reads, subject: Subject<'_>) -> Option<FieldError> {
    let (pointer, path) = match (&*subject.kind.storage, subject.target, subject.old) {
        ("resourceclaims", Target::Object, None) => {
            ("/spec/devices/requests", "spec.devices.requests")
        }
        ("resourceclaimtemplates", Target::Object, None) => {
            ("/spec/spec/devices/requests", "spec.devices.requests")
        }
        ("resourceclaims", Target::Part(Subresource::Status), Some(old)) => {
            let results = "/status/allocation/devices/results";
            if first_request(old.value.pointer(results)).is_some() {
                return None;
            }
            (results, "status.allocation.devices.results")
        }
        _ => return None,
    };
    let index = first_request(subject.new.value.pointer(pointer))?;
    let key = Key::new(
        kinds::by_resource("", "v1", "namespaces")?,
        "",
        subject.new.metadata().namespace(),
    );
    let is_open = reads
        .store
        .get(&key)
        .is_some_and(|namespace| namespace.draft().value["metadata"]["labels"][LABEL] == "true");
    let detail = format!(
        "admin access to devices requires the `{LABEL}: true` label on the containing namespace"
    );
    (!is_open).then(|| FieldError::forbidden(format!("{path}[{index}].adminAccess"), &detail))
}

/// Returns the index of the first element with administrative access.
fn first_request(list: Option<&Value>) -> Option<usize> {
    let mut elements = list?.as_array()?.iter();
    elements.position(|element| {
        element["adminAccess"] == true || element["exactly"]["adminAccess"] == true
    })
}
