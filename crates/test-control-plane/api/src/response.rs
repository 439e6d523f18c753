//! The form of a response: its media type, and whole objects, table rows or metadata.

pub mod negotiate;
pub mod pretty;
pub mod represent;
pub mod table;
pub mod yaml;
