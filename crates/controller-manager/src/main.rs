//! The binary: flags, kubeconfig, shutdown.
fn main() {}
