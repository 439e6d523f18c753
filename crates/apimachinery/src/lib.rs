//! Pure Kubernetes rules: object keys, owner references, selectors, Go-compatible JSON, API defaulting.
