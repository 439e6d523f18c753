//! Runners that replay recorded reference behaviour.
