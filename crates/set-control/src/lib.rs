//! The decision core: revisions, partition into replicas and condemned, phases, status.
