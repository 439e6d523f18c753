//! A session: one server and its requests, all determined by one seed.

use std::fmt::Write as _;
use std::panic::AssertUnwindSafe;
use std::time::{Duration, Instant};

use bytes::Bytes;
use futures::FutureExt as _;
use http::{HeaderMap, Request};
use http_body_util::{BodyExt as _, Full};
use kube_test_control_plane::{ApiServer, TestControlPlane};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use serde_json::Value;

use crate::check;
use crate::corpus::Corpus;
use crate::requests::{self, Attempt, Known};

/// Number of requests in a session.
const REQUESTS: usize = 200;

/// Time limit of a response. The server's timers don't count, since time is paused.
const ANSWER_MAX: Duration = Duration::from_secs(10);

/// Pause between two requests, in paused time.
const PAUSE: Duration = Duration::from_millis(100);

/// Pause after the last request, in paused time.
const SETTLES: Duration = Duration::from_secs(3600);

/// Limit of a response in bytes.
const ANSWER_BYTES_MAX: usize = 1 << 26;

/// Limit of a body in a report, in bytes.
const SHOWN_MAX: usize = 4_000;

/// A response with its body.
pub(crate) struct Answer {
    pub(crate) code: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Vec<u8>,
}

/// Runs one session and returns the number of its requests.
///
/// # Errors
///
/// The problem and the request.
pub(crate) fn run(corpus: &Corpus, seed: u64, verbose: bool) -> Result<usize, String> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .start_paused(true)
        .build()
        .map_err(|err| format!("starting a runtime: {err}"))?;
    runtime.block_on(async {
        let plane = TestControlPlane::builder()
            .seed(seed)
            .all_actors()
            .start()
            .await;
        let mut random = StdRng::seed_from_u64(seed);
        let mut known: Vec<Known> = Vec::new();
        for _ in 0..REQUESTS {
            let attempt = requests::attempt(&mut random, corpus, &known);
            if verbose {
                print(&attempt);
            }
            let report = |why: String| {
                let text = shown(&attempt);
                format!("seed {seed}: {why}\n{text}")
            };
            let started = Instant::now();
            let answer = send(plane.server(), &attempt).await.map_err(report)?;
            if verbose {
                eprintln!("took {:?}\n", started.elapsed());
            }
            // Lets the actors run.
            tokio::time::sleep(PAUSE).await;
            let Some(answer) = answer else { continue };
            check::answer(&attempt, &answer).map_err(report)?;
            remember(&attempt, &answer, &mut known);
            if random.random_ratio(1, 4)
                && let Some(last) = known.last()
            {
                // Revision data is compared as text, and reading it escapes some characters.
                if last.path.contains("/controllerrevisions/") {
                    continue;
                }
                put_back(plane.server(), &last.path).await.map_err(report)?;
            }
        }
        // Long enough for all planned steps of the actors.
        tokio::time::sleep(SETTLES).await;
        let stopped = AssertUnwindSafe(plane.stop()).catch_unwind().await;
        stopped.map_err(|_| format!("seed {seed}: an actor panicked"))?;
        Ok(REQUESTS)
    })
}

#[expect(clippy::print_stderr, reason = "the program's answer")]
fn print(attempt: &Attempt) {
    eprintln!("{}\n", shown(attempt));
}

fn shown(attempt: &Attempt) -> String {
    let mut text = format!("{} {}", attempt.method, attempt.target);
    for (name, value) in &attempt.headers {
        let _ = write!(text, "\n{name}: {value}");
    }
    let body = &attempt.body[..attempt.body.len().min(SHOWN_MAX)];
    let _ = write!(text, "\n\n{}", String::from_utf8_lossy(body));
    if attempt.body.starts_with(b"k8s\0") {
        let _ = write!(text, "\n{body:02x?}");
    }
    text
}

/// Sends a request. Returns `None` if HTTP forbids it, or if the server drops the connection.
async fn send(server: &ApiServer, attempt: &Attempt) -> Result<Option<Answer>, String> {
    let mut request = Request::builder()
        .method(attempt.method.as_str())
        .uri(&attempt.target);
    for (name, value) in &attempt.headers {
        request = request.header(*name, value);
    }
    let Ok(request) = request.body(Full::new(Bytes::from(attempt.body.clone()))) else {
        return Ok(None);
    };
    let started = Instant::now();
    let answered = async {
        let Ok(reply) = server.serve(request).await else {
            // The server drops the connection where upstream would panic.
            return Ok(None);
        };
        let (parts, mut body) = reply.into_parts();
        let mut read = Vec::new();
        while let Some(frame) = body.frame().await {
            let frame = frame.map_err(|err| format!("reading the answer: {err}"))?;
            read.extend_from_slice(frame.data_ref().map_or(&[], |data| data));
            if read.len() > ANSWER_BYTES_MAX {
                return Err(format!("the answer has more than {ANSWER_BYTES_MAX} bytes"));
            }
        }
        Ok(Some(Answer {
            code: parts.status.as_u16(),
            headers: parts.headers,
            body: read,
        }))
    };
    let answer = AssertUnwindSafe(answered).catch_unwind().await;
    let answer = answer.map_err(|_| "the server panicked".to_owned())??;
    let took = started.elapsed();
    if took > ANSWER_MAX {
        return Err(format!("the answer took {took:?}"));
    }
    Ok(answer)
}

/// Stores the object in a response for later changes.
fn remember(attempt: &Attempt, answer: &Answer, known: &mut Vec<Known>) {
    let Ok(object) = serde_json::from_slice::<Value>(&answer.body) else {
        return;
    };
    let path = attempt.target.split('?').next().unwrap_or_default();
    let name = object.pointer("/metadata/name").and_then(Value::as_str);
    let is_stored = object.pointer("/metadata/uid").is_some();
    let (Some(name), true) = (name, is_stored) else {
        return;
    };
    let mut path = path.trim_end_matches('/').to_owned();
    match attempt.method.as_str() {
        "POST" => path = format!("{path}/{name}"),
        "PUT" | "PATCH" if path.ends_with(&format!("/{name}")) => {}
        _ => return,
    }
    known.retain(|other| other.path != path);
    known.push(Known { path, object });
}

/// Checks that writing back a read object changes nothing.
async fn put_back(server: &ApiServer, path: &str) -> Result<(), String> {
    let get = Attempt {
        method: "GET".to_owned(),
        target: path.to_owned(),
        ..Attempt::default()
    };
    let Some(read) = send(server, &get).await? else {
        return Ok(());
    };
    if read.code != 200 {
        return Ok(());
    }
    let put = Attempt {
        method: "PUT".to_owned(),
        target: path.to_owned(),
        headers: vec![("content-type", "application/json".to_owned())],
        body: read.body.clone(),
    };
    let Some(written) = send(server, &put).await? else {
        return Ok(());
    };
    check::answer(&put, &written)?;
    check::same_object(path, &read, &written)
}
