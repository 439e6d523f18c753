//! The cells of jobs.

use jiff::Timestamp;
use kube_apimachinery::time;
use serde_json::Value;

use super::age::{age, human_duration};
use super::texts::{list, number, text};

/// The conditions that name a job's status, in the order of their precedence.
const STATUSES: [&str; 3] = ["Suspended", "FailureTarget", "SuccessCriteriaMet"];

pub(super) fn status(job: &Value) -> &'static str {
    let has = |wanted: &str| {
        list(job, "/status/conditions")
            .any(|it| text(it, "/type") == wanted && text(it, "/status") == "True")
    };
    let ended = ["Complete", "Failed"].into_iter().find(|it| has(it));
    let is_deleting = !text(job, "/metadata/deletionTimestamp").is_empty();
    let deleting = is_deleting.then_some("Terminating");
    let other = STATUSES.into_iter().find(|it| has(it));
    ended.or(deleting).or(other).unwrap_or("Running")
}

pub(super) fn completions(job: &Value) -> String {
    let succeeded = number(job, "/status/succeeded");
    let wanted = job.pointer("/spec/completions").and_then(Value::as_i64);
    match (wanted, number(job, "/spec/parallelism")) {
        (Some(wanted), _) => format!("{succeeded}/{wanted}"),
        (None, parallelism @ 2..) => format!("{succeeded}/1 of {parallelism}"),
        (None, _) => format!("{succeeded}/1"),
    }
}

pub(super) fn duration(job: &Value, now: Timestamp) -> String {
    let [start, end] = ["/status/startTime", "/status/completionTime"].map(|at| text(job, at));
    match (time::parse(start), time::parse(end)) {
        (Err(_), _) => String::new(),
        (Ok(_), Err(_)) => age(start, now),
        (Ok(start), Ok(end)) => human_duration(end.duration_since(start).as_secs()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn job_cells_follow_its_status() {
        let now = "2026-01-01T00:10:00Z".parse().unwrap();
        let mut job = json!({"spec": {"completions": 3}, "status": {"succeeded": 1}});
        let cells = |job: &Value| (status(job), completions(job), duration(job, now));
        assert_eq!(cells(&job), ("Running", "1/3".to_owned(), String::new()));
        job["spec"] = json!({"parallelism": 2});
        job["status"]["startTime"] = json!("2026-01-01T00:00:00Z");
        let expected = ("Running", "1/1 of 2".to_owned(), "10m".to_owned());
        assert_eq!(cells(&job), expected);
        job["spec"] = json!({"parallelism": 1});
        job["status"]["completionTime"] = json!("2026-01-01T00:00:05Z");
        job["status"]["conditions"] = json!([
            {"type": "Suspended", "status": "True"},
            {"type": "Complete", "status": "True"},
        ]);
        let expected = ("Complete", "1/1".to_owned(), "5s".to_owned());
        assert_eq!(cells(&job), expected);
    }
}
