//! Schedules of cron jobs and time zones as Go reads them.

/// The names of all time zones.
const TIME_ZONES: &str = include_str!("time_zones.txt");

/// The names that stand for a schedule.
const SCHEDULE_NAMES: [&str; 7] = [
    "@yearly",
    "@annually",
    "@monthly",
    "@weekly",
    "@daily",
    "@midnight",
    "@hourly",
];

const MONTHS: [&str; 12] = [
    "jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec",
];

const DAYS: [&str; 7] = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"];

/// The fields of a schedule: the first and last value of each, and the names of values.
const FIELDS: [Field; 5] = [
    (0, 59, &[]),
    (0, 23, &[]),
    (1, 31, &[]),
    (1, 12, &MONTHS),
    (0, 6, &DAYS),
];

type Field = (u64, u64, &'static [&'static str]);

/// Returns the error of a time zone's name.
///
/// Upstream: `time.LoadLocation`.
pub(crate) fn load_location(name: &str) -> Result<(), String> {
    if matches!(name, "" | "Local") {
        return Ok(());
    }
    if name.contains("..") || name.starts_with(['/', '\\']) {
        return Err("time: invalid location name".to_owned());
    }
    if TIME_ZONES.split_whitespace().any(|known| known == name) {
        return Ok(());
    }
    Err(format!("unknown time zone {name}"))
}

/// Returns the error of a schedule.
///
/// Upstream: `ParseCronScheduleWithPanicRecovery`.
pub(crate) fn parse(schedule: &str) -> Result<(), String> {
    if schedule.is_empty() {
        return Err("empty spec string".to_owned());
    }
    let mut rest = schedule;
    if let Some(zone) = ["TZ=", "CRON_TZ="]
        .iter()
        .find_map(|start| schedule.strip_prefix(start))
    {
        let Some((name, times)) = zone.split_once(' ') else {
            let why = "runtime error: slice bounds out of range [:-1]";
            return Err(format!("invalid schedule format: {why}"));
        };
        load_location(name).map_err(|why| format!("provided bad location {name}: {why}"))?;
        rest = times.trim();
    }
    if rest.starts_with('@') {
        return descriptor(rest);
    }
    let fields: Vec<&str> = rest.split_whitespace().collect();
    if fields.len() != FIELDS.len() {
        let (count, shown) = (fields.len(), fields.join(" "));
        return Err(format!(
            "expected exactly 5 fields, found {count}: [{shown}]"
        ));
    }
    for (text, field) in fields.iter().zip(FIELDS) {
        for part in text.split(',').filter(|part| !part.is_empty()) {
            range(part, field)?;
        }
    }
    Ok(())
}

fn descriptor(text: &str) -> Result<(), String> {
    if SCHEDULE_NAMES.contains(&text) {
        return Ok(());
    }
    let Some(duration) = text.strip_prefix("@every ") else {
        return Err(format!("unrecognized descriptor: {text}"));
    };
    if kube_apimachinery::go_duration::parse(duration).is_some() {
        return Ok(());
    }
    let is_number = !duration.is_empty() && duration.bytes().all(|b| b.is_ascii_digit());
    let why = if is_number {
        "missing unit in duration"
    } else {
        "invalid duration"
    };
    Err(format!(
        "failed to parse duration {text}: time: {why} {duration:?}"
    ))
}

/// Upstream: `getRange`.
fn range(text: &str, (min, max, names): Field) -> Result<(), String> {
    let parts: Vec<&str> = text.split('/').collect();
    let ends: Vec<&str> = parts.first().map_or("", |range| range).split('-').collect();
    let value = |text: &str| match names.iter().position(|name| *name == text.to_lowercase()) {
        Some(i) => Ok(min + u64::try_from(i).unwrap_or_default()),
        None => number(text),
    };
    let (start, mut end) = match ends[..] {
        ["*" | "?", ..] => (min, max),
        [one] => (value(one)?, value(one)?),
        [first, last] => (value(first)?, value(last)?),
        _ => return Err(format!("too many hyphens: {text}")),
    };
    let step = match parts[..] {
        [_] => 1,
        [_, step] => {
            let step = number(step)?;
            if ends.len() == 1 {
                end = max;
            }
            step
        }
        _ => return Err(format!("too many slashes: {text}")),
    };
    if start < min {
        return Err(format!(
            "beginning of range ({start}) below minimum ({min}): {text}"
        ));
    }
    if end > max {
        return Err(format!(
            "end of range ({end}) above maximum ({max}): {text}"
        ));
    }
    if start > end {
        return Err(format!(
            "beginning of range ({start}) beyond end of range ({end}): {text}"
        ));
    }
    if step == 0 {
        return Err(format!("step of range should be a positive number: {text}"));
    }
    Ok(())
}

/// Upstream: `mustParseInt`.
fn number(text: &str) -> Result<u64, String> {
    let why = |why: &str| {
        format!("failed to parse int from {text}: strconv.Atoi: parsing {text:?}: {why}")
    };
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return Err(why("invalid syntax"));
    }
    let number: i64 = text.parse().map_err(|_| why("value out of range"))?;
    u64::try_from(number).map_err(|_| format!("negative number ({number}) not allowed: {text}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn schedules_are_checked_by_field() {
        for text in [
            "*/5 * * * *",
            "0 0 1 jan SUN",
            "1,2,3-9/2 0-23 ? * *",
            "@hourly",
            "@every 1h30m",
            "TZ=Europe/Paris 0 0 * * *",
        ] {
            assert_eq!(parse(text), Ok(()), "{text}");
        }
        for (text, detail) in [
            ("", "empty spec string"),
            ("a b", "expected exactly 5 fields, found 2: [a b]"),
            ("60 * * * *", "end of range (60) above maximum (59): 60"),
            ("* * 0 * *", "beginning of range (0) below minimum (1): 0"),
            (
                "*/0 * * * *",
                "step of range should be a positive number: */0",
            ),
            (
                "5-1 * * * *",
                "beginning of range (5) beyond end of range (1): 5-1",
            ),
            ("1-2-3 * * * *", "too many hyphens: 1-2-3"),
            ("1/2/3 * * * *", "too many slashes: 1/2/3"),
            (
                "x * * * *",
                "failed to parse int from x: strconv.Atoi: parsing \"x\": invalid syntax",
            ),
            ("@often", "unrecognized descriptor: @often"),
            (
                "@every 5",
                "failed to parse duration @every 5: time: missing unit in duration \"5\"",
            ),
            (
                "TZ=x 0 0 * * *",
                "provided bad location x: unknown time zone x",
            ),
        ] {
            assert_eq!(parse(text), Err(detail.to_owned()), "{text}");
        }
    }

    #[test]
    fn time_zones_have_names() {
        assert_eq!(load_location("America/New_York"), Ok(()));
        assert!(load_location("america/new_york").is_err());
        assert!(load_location("../x").is_err());
    }
}
