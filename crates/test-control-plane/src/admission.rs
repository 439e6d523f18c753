//! Admission by the test: hooks, and handlers of webhooks.

pub use kube_test_control_plane_server::admission::{
    AdmissionHook, AdmissionHooks, AdmissionRequest, Denial, Operation, WebhookHandler,
    WebhookServices,
};
