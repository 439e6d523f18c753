//! Compact cached types, the controller-reference manager, and the consistency store.
