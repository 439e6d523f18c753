//! An embedded Kubernetes control plane for tests: API server, kubelet, volume binder, garbage collector.
