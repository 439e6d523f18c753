//! Ages in kubectl's short form.

use jiff::Timestamp;
use kube_apimachinery::time;

/// Formats the time from a timestamp to `now`; `<unknown>` without a timestamp.
pub(super) fn age(timestamp: &str, now: Timestamp) -> String {
    match time::parse(timestamp) {
        Ok(then) => human_duration(now.duration_since(then).as_secs()),
        Err(_) => "<unknown>".to_owned(),
    }
}

/// Formats a time in seconds.
pub(super) fn human_duration(seconds: i64) -> String {
    let with_rest = |big: i64, unit: &str, small: i64, small_unit: &str| {
        if small == 0 {
            format!("{big}{unit}")
        } else {
            format!("{big}{unit}{small}{small_unit}")
        }
    };
    let (minutes, hours) = (seconds / 60, seconds / 3600);
    match seconds {
        i64::MIN..=-2 => "<invalid>".to_owned(),
        -1 => "0s".to_owned(),
        0..120 => format!("{seconds}s"),
        _ if minutes < 10 => with_rest(minutes, "m", seconds % 60, "s"),
        _ if minutes < 180 => format!("{minutes}m"),
        _ if hours < 8 => with_rest(hours, "h", minutes % 60, "m"),
        _ if hours < 48 => format!("{hours}h"),
        _ if hours < 24 * 8 => with_rest(hours / 24, "d", hours % 24, "h"),
        _ if hours < 24 * 365 * 2 => format!("{}d", hours / 24),
        _ if hours < 24 * 365 * 8 => {
            let days = hours / 24;
            with_rest(days / 365, "y", days % 365, "d")
        }
        _ => format!("{}y", hours / 24 / 365),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_match_kubectl() {
        for (seconds, text) in [
            (-5, "<invalid>"),
            (-1, "0s"),
            (119, "119s"),
            (120, "2m"),
            (278, "4m38s"),
            (720, "12m"),
            (3 * 3600, "3h"),
            (3 * 3600 + 60, "3h1m"),
            (40 * 3600, "40h"),
            (50 * 3600, "2d2h"),
            (300 * 86400, "300d"),
            (800 * 86400, "2y70d"),
        ] {
            assert_eq!(human_duration(seconds), text);
        }
    }
}
