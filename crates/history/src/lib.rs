//! ControllerRevision: data, hash, name, order, equality, create, renumber, delete, adopt, truncate.
