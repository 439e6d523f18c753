//! A server that responds from a script.

use std::collections::VecDeque;
use std::io::{Error as IoError, ErrorKind};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use futures::stream::{self, BoxStream, StreamExt as _};
use http::{Request, Response, header};
use http_body::Frame;
use http_body_util::StreamBody;
use kube::client::Body;
use kube_apimachinery::protobuf;
use serde_json::json;
use tower::{BoxError, service_fn};

use crate::rest::RestClient;

/// The response to any one request.
#[derive(Clone)]
pub(super) enum Answer {
    /// A body.
    Text(String),
    /// A body that may be invalid UTF-8.
    Bytes(Vec<u8>),
    /// An error with a code and a reason.
    Refuse(u16, &'static str),
    /// A lost connection.
    Reset,
    /// A stream of lines.
    Watch(Vec<Step>),
    /// A stream of protobuf messages.
    ProtobufWatch(Vec<Step>),
}

/// One step of a watch stream.
#[derive(Clone)]
pub(super) enum Step {
    Line(String),
    /// A line that may be invalid UTF-8, with its line break.
    Bytes(Vec<u8>),
    /// Silence for this many seconds.
    Wait(u64),
    /// Silence until the client gives up.
    Hang,
    /// A lost connection.
    Break,
    End,
}

pub(super) fn object(name: &str, version: &str) -> String {
    json!({"metadata": {"namespace": "ns", "name": name, "resourceVersion": version}}).to_string()
}

pub(super) fn page(version: &str, next: &str, objects: &[String]) -> Answer {
    let items = objects.join(",");
    Answer::Text(format!(
        r#"{{"metadata":{{"resourceVersion":"{version}","continue":"{next}"}},"items":[{items}]}}"#
    ))
}

pub(super) fn list(version: &str, objects: &[String]) -> Answer {
    page(version, "", objects)
}

pub(super) fn event(event_type: &str, object: &str) -> Step {
    Step::Line(format!(r#"{{"type":"{event_type}","object":{object}}}"#))
}

/// A server that responds from a script, and never after its end.
#[derive(Clone)]
pub(super) struct ScriptedApi {
    answers: Arc<Mutex<VecDeque<Answer>>>,
    asked: Arc<Mutex<Vec<String>>>,
    accepted: Arc<Mutex<Vec<String>>>,
}

type Stream = BoxStream<'static, Result<Frame<Bytes>, IoError>>;

impl ScriptedApi {
    pub(super) fn new(script: Vec<Answer>) -> Self {
        Self {
            answers: Arc::new(Mutex::new(script.into())),
            asked: Arc::default(),
            accepted: Arc::default(),
        }
    }

    /// Appends responses to the script.
    pub(super) fn then(&self, answers: impl IntoIterator<Item = Answer>) {
        self.answers.lock().unwrap().extend(answers);
    }

    /// Returns the targets of the requests so far; watches as `watch from <version>`.
    pub(super) fn asked(&self) -> Vec<String> {
        self.asked.lock().unwrap().clone()
    }

    /// Returns the `Accept` headers of the requests so far.
    pub(super) fn accepted(&self) -> Vec<String> {
        self.accepted.lock().unwrap().clone()
    }

    pub(super) fn client(&self) -> RestClient {
        let this = self.clone();
        let service = service_fn(move |request: Request<Body>| {
            this.note(&request.uri().to_string());
            let accept = request.headers()[header::ACCEPT].to_str().unwrap();
            this.accepted.lock().unwrap().push(accept.to_owned());
            let answer = this.answers.lock().unwrap().pop_front();
            async move { respond(answer).await }
        });
        RestClient::new(kube::Client::new(service, "default"))
    }

    fn note(&self, target: &str) {
        let line = match target.split_once("resourceVersion=") {
            Some((_, rest)) => format!("watch from {}", rest.split('&').next().unwrap()),
            None => target.to_owned(),
        };
        self.asked.lock().unwrap().push(line);
    }
}

async fn respond(answer: Option<Answer>) -> Result<Response<StreamBody<Stream>>, BoxError> {
    let mut response = Response::builder();
    if let Some(Answer::ProtobufWatch(_)) = answer {
        response = response.header(header::CONTENT_TYPE, protobuf::MEDIA_TYPE);
    }
    let (code, body): (u16, Stream) = match answer {
        None => std::future::pending().await,
        Some(Answer::Text(text)) => (200, text_stream(text)),
        Some(Answer::Bytes(bytes)) => (200, stream::iter([Ok(Frame::data(bytes.into()))]).boxed()),
        Some(Answer::Refuse(code, reason)) => {
            let status = json!({
                "kind": "Status", "status": "Failure",
                "code": code, "reason": reason, "message": reason,
            });
            (code, text_stream(status.to_string()))
        }
        Some(Answer::Reset) => return Err(IoError::from(ErrorKind::ConnectionReset).into()),
        Some(Answer::Watch(steps) | Answer::ProtobufWatch(steps)) => {
            let ends = |step: &Step| matches!(step, Step::End);
            let steps: Vec<_> = steps.into_iter().take_while(|step| !ends(step)).collect();
            (200, stream::iter(steps).then(play).boxed())
        }
    };
    Ok(response.status(code).body(StreamBody::new(body))?)
}

fn text_stream(text: String) -> Stream {
    stream::iter([Ok(Frame::data(text.into()))]).boxed()
}

async fn play(step: Step) -> Result<Frame<Bytes>, IoError> {
    match step {
        Step::Bytes(bytes) => Ok(Frame::data(bytes.into())),
        Step::Line(line) => Ok(Frame::data((line + "\n").into())),
        Step::Wait(seconds) => {
            tokio::time::sleep(Duration::from_secs(seconds)).await;
            Ok(Frame::data(Bytes::new()))
        }
        Step::Break => Err(IoError::from(ErrorKind::ConnectionReset)),
        Step::Hang | Step::End => std::future::pending().await,
    }
}
