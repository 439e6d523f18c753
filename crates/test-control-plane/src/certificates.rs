//! Certificates of the server and of its clients.

pub use kube_test_control_plane_server::certificates::{
    CertificateError, ClientAuthorities, ClientCertificate, PemError, ServingCertificate,
    TlsMaterial,
};
