//! Who is claimed, adopted, released, and left alone.
