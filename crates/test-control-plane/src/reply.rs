//! Responses of the server.

pub use kube_test_control_plane_api::status::{ApiError, FieldError};
pub use kube_test_control_plane_server::reply::{BoxError, Reply, ResponseBody};
pub use kube_test_control_plane_server::server::ConnectionDropped;
