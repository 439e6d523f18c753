//! Check of the permission to read the lease.
//!
//! A replica that may not read its lease never takes over, so it must not report ready: otherwise a
//! rollout with a wrong lease name, or without its role binding, would stop the last working
//! replica.

use statefulset_client::leaderelection::LeaseName;
use statefulset_client::resource::LEASES;
use statefulset_client::rest::RestClient;

use super::obstacle::Obstacle;

/// Checks that the lease is readable. A missing lease passes; leader election creates it.
pub(super) async fn check_lease(client: &RestClient, lease: &LeaseName) -> Result<(), Obstacle> {
    let LeaseName { namespace, name } = lease;
    let resource = LEASES.group_resource();
    match client.get(&LEASES, namespace, name).await {
        Ok(_) => Ok(()),
        Err(error) if error.is_not_found() => Ok(()),
        Err(error) if error.is_forbidden() => Err(Obstacle::Rights {
            missing: format!("get {resource} {name:?} in the namespace {namespace:?}"),
            error: error.to_string(),
            advice: format!(
                "bind a Role to this user that allows get and update of this lease and create of \
                 {resource}, or name another lease with --leader-elect-resource-name and \
                 --leader-elect-resource-namespace"
            ),
        }),
        Err(error) => Err(Obstacle::of(&error, &format!("get the lease {lease}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scripted::{Said, client, failure};

    const LEASE: &str = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/mine";

    async fn checked(said: Said) -> Result<(), Obstacle> {
        let lease = LeaseName::new("kube-system", "mine");
        let client = client(move |path| {
            assert_eq!(path, LEASE);
            said.clone()
        });
        check_lease(&client, &lease).await
    }

    #[tokio::test(start_paused = true)]
    async fn readable_or_missing_lease_passes() {
        assert_eq!(checked(Ok((200, "{}".to_owned()))).await, Ok(()));
        assert_eq!(checked(Ok(failure(404, "NotFound", "none"))).await, Ok(()));
    }

    #[tokio::test(start_paused = true)]
    async fn forbidden_lease_reports_the_permissions_to_grant() {
        let message = "leases.coordination.k8s.io \"mine\" is forbidden: User \"jane\" cannot get";
        let Err(Obstacle::Rights {
            missing,
            error,
            advice,
        }) = checked(Ok(failure(403, "Forbidden", message))).await
        else {
            panic!("no permission is missing");
        };
        assert_eq!(
            missing,
            "get leases.coordination.k8s.io \"mine\" in the namespace \"kube-system\""
        );
        assert_eq!(error, message);
        assert!(advice.contains("--leader-elect-resource-name"), "{advice}");
    }

    #[tokio::test(start_paused = true)]
    async fn failed_lease_read_is_reported() {
        let failed = Obstacle::Request(
            "cannot get the lease kube-system/mine: etcd failed, trying again".to_owned(),
        );
        let said = Ok(failure(500, "InternalError", "etcd failed"));
        assert_eq!(checked(said).await, Err(failed));
    }
}
