//! The version of the API server.

use serde_json::Value;

use super::check::{Check, Verdict};
use crate::release::{NEWEST, OLDEST};
use crate::server::Server;

const NAME: &str = "server";
/// The minor version whose behaviour is the default.
const DEFAULT: u32 = 36;

pub(super) async fn check(server: &Server) -> Check {
    match server.version().await {
        Ok(version) => judge(&version),
        Err(error) => Check::unread(NAME, &error),
    }
}

fn judge(version: &Value) -> Check {
    let member = |name: &str| version.get(name).and_then(Value::as_str).unwrap_or("");
    let shown = member("gitVersion");
    let Some(minor) = crate::server::minor(version) else {
        let text = format!("the version {shown:?} is not a Kubernetes version");
        return Check::new(NAME, Verdict::Stop, text);
    };
    let check = |verdict, text: String| Check::new(NAME, verdict, format!("{shown}: {text}"));
    match minor {
        ..OLDEST => check(
            Verdict::Stop,
            format!("upgrade to v1.{OLDEST} or later first"),
        ),
        DEFAULT => check(Verdict::Ok, "its behaviour is the default".to_owned()),
        OLDEST..=NEWEST => check(
            Verdict::Ok,
            format!("run with --emulated-version=1.{minor} to keep its behaviour"),
        ),
        _ => check(
            Verdict::Todo,
            format!(
                "newer than v1.{NEWEST}, whose behaviour is the newest known: read the changes of \
                 its StatefulSet controller"
            ),
        ),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn versions_are_judged_by_their_minor() {
        let judged = |minor: &str| {
            let git = format!("v1.{minor}.2");
            judge(&json!({"major": "1", "minor": minor, "gitVersion": git}))
        };
        assert_eq!(judged("32").verdict, Verdict::Stop);
        assert_eq!(judged("36").text, "v1.36.2: its behaviour is the default");
        assert_eq!(judged("36+").verdict, Verdict::Ok);
        let emulated = "v1.34.2: run with --emulated-version=1.34 to keep its behaviour";
        assert_eq!(judged("34").text, emulated);
        assert_eq!(judged("38").verdict, Verdict::Todo);
        assert_eq!(judge(&json!({})).verdict, Verdict::Stop);
    }
}
