//! Defaults that the API server gives to pods, claims and stateful sets.
