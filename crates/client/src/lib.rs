//! What client-go gives upstream: informers with indexed caches, work queue, retries, events, clock, feature gates.
