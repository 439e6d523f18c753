//! Scripted API server on a loopback port.

use std::io::{BufRead as _, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::mpsc::Sender;

use rustls::pki_types::PrivatePkcs8KeyDer;
use rustls::{ServerConfig, ServerConnection, StreamOwned};

/// One request.
pub(crate) struct Request {
    pub(crate) method: String,
    pub(crate) path: String,
    pub(crate) body: String,
    pub(crate) query: String,
    /// The `Accept` header, in lower case.
    pub(crate) accept: String,
}

impl Request {
    pub(crate) fn is_watch(&self) -> bool {
        self.query.contains("watch=true")
    }
}

/// Response to a request.
pub(crate) enum Answer {
    /// A code and a JSON body.
    Body(u16, String),
    /// Headers of a stream that stays empty.
    Stream,
    /// The same; reports the end of the connection.
    Watch(Sender<()>),
    /// No response on an open connection.
    Silence,
}

impl Answer {
    pub(crate) fn ok(body: &str) -> Self {
        Self::Body(200, body.to_owned())
    }

    pub(crate) fn failure(code: u16, reason: &str, message: &str) -> Self {
        let status = serde_json::json!({
            "kind": "Status", "apiVersion": "v1", "status": "Failure",
            "code": code, "reason": reason, "message": message,
        });
        Self::Body(code, status.to_string())
    }

    pub(crate) fn list(items: &[&str]) -> Self {
        let items = items.join(",");
        Self::ok(&format!(
            r#"{{"kind":"List","metadata":{{"resourceVersion":"1"}},"items":[{items}]}}"#
        ))
    }

    /// Response of an API server that stores the request's object.
    pub(crate) fn stored(request: &Request) -> Self {
        let mut object: serde_json::Value = serde_json::from_str(&request.body).unwrap();
        object["metadata"]["uid"] = "u".into();
        object["metadata"]["resourceVersion"] = "2".into();
        Self::Body(201, object.to_string())
    }

    /// Response of an API server without objects.
    pub(crate) fn empty_list_or_watch(request: &Request) -> Self {
        if request.is_watch() {
            Self::Stream
        } else {
            Self::list(&[])
        }
    }
}

type Script = dyn Fn(&Request) -> Answer + Send + Sync;

/// A server that follows a script until the test ends.
pub(crate) struct FakeApi {
    address: SocketAddr,
    scheme: &'static str,
}

impl FakeApi {
    pub(crate) fn new(script: impl Fn(&Request) -> Answer + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        Self::over(listener, script, "http", Ok)
    }

    /// A TLS server, and its certificate as PEM.
    pub(crate) fn over_tls(
        script: impl Fn(&Request) -> Answer + Send + Sync + 'static,
    ) -> (Self, String) {
        let pair = rcgen::generate_simple_self_signed(vec!["127.0.0.1".to_owned()]).unwrap();
        let key = PrivatePkcs8KeyDer::from(pair.signing_key.serialize_der());
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![pair.cert.der().clone()], key.into())
            .unwrap();
        let config = Arc::new(config);
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let api = Self::over(listener, script, "https", move |stream| {
            let connection = ServerConnection::new(Arc::clone(&config));
            connection
                .map(|connection| StreamOwned::new(connection, stream))
                .map_err(std::io::Error::other)
        });
        (api, pair.cert.pem())
    }

    /// A server on a free address.
    pub(crate) fn at(
        address: SocketAddr,
        script: impl Fn(&Request) -> Answer + Send + Sync + 'static,
    ) -> Self {
        Self::over(TcpListener::bind(address).unwrap(), script, "http", Ok)
    }

    fn over<S: Read + Write + Send + 'static>(
        listener: TcpListener,
        script: impl Fn(&Request) -> Answer + Send + Sync + 'static,
        scheme: &'static str,
        accept: impl Fn(TcpStream) -> std::io::Result<S> + Send + 'static,
    ) -> Self {
        let address = listener.local_addr().unwrap();
        let script: Arc<Script> = Arc::new(script);
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let script = Arc::clone(&script);
                let stream = accept(stream).unwrap();
                // The client may close a connection at any moment.
                std::thread::spawn(move || drop(serve(stream, &*script)));
            }
        });
        Self { address, scheme }
    }

    pub(crate) fn address(&self) -> String {
        format!("{}://{}", self.scheme, self.address)
    }
}

/// Serves the requests of one connection in sequence.
fn serve(stream: impl Read + Write, script: &Script) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream);
    let mut closing = Vec::new();
    while let Some(request) = read_request(&mut reader)? {
        let answer = script(&request);
        let stream = reader.get_mut();
        match answer {
            Answer::Body(code, body) => {
                let length = body.len();
                write!(
                    stream,
                    "HTTP/1.1 {code} X\r\ncontent-type: application/json\r\n\
                     content-length: {length}\r\n\r\n{body}"
                )?;
            }
            Answer::Stream => begin_stream(stream)?,
            Answer::Watch(closed) => {
                closing.push(Closing(closed));
                begin_stream(stream)?;
            }
            Answer::Silence => {}
        }
        stream.flush()?;
    }
    Ok(())
}

fn begin_stream(stream: &mut impl Write) -> std::io::Result<()> {
    write!(
        stream,
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"
    )
}

/// Reports on drop that the connection has ended.
struct Closing(Sender<()>);

impl Drop for Closing {
    fn drop(&mut self) {
        // The test may have ended.
        let _ = self.0.send(());
    }
}

fn read_request(reader: &mut BufReader<impl Read + Write>) -> std::io::Result<Option<Request>> {
    let first = reader.fill_buf()?.first().copied();
    if first.is_some_and(|byte| !byte.is_ascii_uppercase()) {
        // API servers respond like this to TLS clients on a plain port.
        reader
            .get_mut()
            .write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n")?;
        return Ok(None);
    }
    let mut line = String::new();
    reader.read_line(&mut line)?;
    let mut words = line.split_whitespace();
    let (Some(method), Some(target)) = (words.next(), words.next()) else {
        return Ok(None);
    };
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let mut request = Request {
        method: method.to_owned(),
        path: path.to_owned(),
        body: String::new(),
        query: query.to_owned(),
        accept: String::new(),
    };
    let mut length = 0;
    loop {
        let mut header = String::new();
        reader.read_line(&mut header)?;
        let header = header.trim().to_ascii_lowercase();
        if header.is_empty() {
            break;
        }
        if let Some(value) = header.strip_prefix("content-length:") {
            length = value.trim().parse().unwrap_or(0);
        }
        if let Some(value) = header.strip_prefix("accept:") {
            value.trim().clone_into(&mut request.accept);
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    request.body = String::from_utf8_lossy(&body).into_owned();
    Ok(Some(request))
}
