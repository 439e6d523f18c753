//! Intervals of indexes.

/// Parses intervals of indexes such as `1,3-5`.
///
/// Upstream: `validateIndexesFormat`.
pub(super) fn intervals(text: &str, completions: i64) -> Result<Vec<(i64, i64)>, String> {
    let mut found: Vec<(i64, i64)> = Vec::new();
    for part in text.split(',').filter(|_| !text.is_empty()) {
        let (from, to) = interval(part, completions)?;
        if let Some((_, last)) = found.last().filter(|(_, last)| *last >= from) {
            return Err(format!(
                "non-increasing order, previous: {last}, current: {from}"
            ));
        }
        found.push((from, to));
    }
    Ok(found)
}

/// Upstream: `parseIndexInterval`.
fn interval(text: &str, completions: i64) -> Result<(i64, i64), String> {
    let index = |text: &str| match text.parse::<i64>() {
        Err(_) => Err(format!(
            "cannot convert string to integer for index: {text:?}"
        )),
        Ok(index) if index >= completions => Err(format!("too large index: {text:?}")),
        Ok(index) => Ok(index),
    };
    let parts: Vec<&str> = text.split('-').collect();
    match parts[..] {
        [one] => index(one).map(|index| (index, index)),
        [from, to] => match (index(from)?, index(to)?) {
            (from, to) if from >= to => Err(format!(
                "non-increasing order, previous: {from}, current: {to}"
            )),
            both => Ok(both),
        },
        _ => Err(format!(
            "the fragment {text:?} violates the requirement that an index interval can have at \
             most two parts separated by '-'"
        )),
    }
}
