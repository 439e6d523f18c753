//! Names, labels and messages of the fence. Installations depend on them: never change them.

/// Label of the namespaces that this program serves.
pub const LABEL_KEY: &str = "statefulset-controller-manager/served";
/// Value of the label.
pub const LABEL_VALUE: &str = "true";

/// Name of the policy that denies the built-in controller's writes, and of its binding.
pub const FENCE: &str = "statefulset-controller-manager-fence";
/// Name of the policy that denies this program's writes, and of its binding.
pub const MIRROR: &str = "statefulset-controller-manager-mirror";

/// Message of a write that the fence denies.
pub const FENCE_MESSAGE: &str =
    "the StatefulSets of this namespace are served by statefulset-controller-manager";
/// Message of a write that the mirror denies.
pub const MIRROR_MESSAGE: &str =
    "the StatefulSets of this namespace are not served by statefulset-controller-manager";

/// Name of an object that the fence denies to every user, so that anybody can see that it is in
/// force.
pub const FENCE_PROBE: &str = "statefulset-controller-manager-fence-probe";
/// Name of an object that the mirror denies to every user.
pub const MIRROR_PROBE: &str = "statefulset-controller-manager-mirror-probe";

/// The namespace that the fence never covers.
pub const SYSTEM_NAMESPACE: &str = "kube-system";
/// The user of the built-in StatefulSet controller under `--use-service-account-credentials`.
pub const BUILT_IN_USER: &str = "system:serviceaccount:kube-system:statefulset-controller";
/// The user that the shipped manifests give this program in `kube-system`.
pub const USER_DEFAULT: &str = "system:serviceaccount:kube-system:statefulset-controller-manager";
