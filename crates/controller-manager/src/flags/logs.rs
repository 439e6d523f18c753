//! Logging flags.

use std::time::Duration;

use super::values;
use crate::logging::Format;

/// Upstream: `LoggingConfiguration`.
#[derive(Debug, Clone, PartialEq, clap::Args)]
#[command(next_help_heading = "Logs flags")]
pub(crate) struct LogsFlags {
    /// Log verbosity: 0 and 1 log failures and state changes, 2 and 3 also events, 4 debug
    /// messages, 5 or more everything
    #[arg(short = 'v', long = "v", value_name = "int", default_value = "0", value_parser = values::int)]
    pub(crate) verbosity: i32,

    /// Log format: text or json
    #[arg(long, value_name = "string", default_value = "text", value_parser = format)]
    pub(crate) logging_format: Format,

    /// Accepted for compatibility; every line is written immediately
    #[arg(long, value_name = "duration", default_value = "5s", value_parser = values::duration)]
    pub(crate) log_flush_frequency: Duration,
}

fn format(text: &str) -> Result<Format, &'static str> {
    match text {
        "text" => Ok(Format::Text),
        "json" => Ok(Format::Json),
        _ => Err("must be text or json"),
    }
}
