//! Check that the labels of namespaces and the fence can be read. The permissions in a namespace are
//! needed only once it has the label.

use statefulset_client::resource::{
    NAMESPACES, VALIDATING_ADMISSION_POLICIES, VALIDATING_ADMISSION_POLICY_BINDINGS,
};
use statefulset_client::rest::{ListOptions, RestClient, Selectors};
use statefulset_controller::fence::{NamespaceSelector, names};

use super::obstacle::Obstacle;

/// Checks the lists of the fence's informers, with their selectors.
pub(super) async fn check_fence(
    client: &RestClient,
    selector: &NamespaceSelector,
) -> Result<(), Obstacle> {
    let labels = Selectors::default().labels(selector.to_string());
    let named = |name: &str| Selectors::default().fields(format!("metadata.name={name}"));
    let mut lists = vec![(NAMESPACES, labels)];
    for name in [names::FENCE, names::MIRROR] {
        lists.push((VALIDATING_ADMISSION_POLICIES, named(name)));
        lists.push((VALIDATING_ADMISSION_POLICY_BINDINGS, named(name)));
    }
    for (resource, selectors) in lists {
        let options = ListOptions::default().limit(1).selectors(selectors);
        let name = resource.group_resource().to_string();
        match client.list(&resource, &options).await {
            Ok(_) => {}
            Err(error) if error.is_forbidden() => {
                return Err(Obstacle::Rights {
                    missing: format!("list {name}"),
                    error: error.to_string(),
                    advice: "bind the ClusterRole statefulset-controller-manager:fence of the \
                             manifests to this user"
                        .to_owned(),
                });
            }
            // The log of API health reports these too for lists.
            Err(error) if error.is_server_failure() => return Err(Obstacle::AlreadyLogged),
            Err(error) => return Err(Obstacle::of(&error, &format!("list {name}"))),
        }
    }
    Ok(())
}
