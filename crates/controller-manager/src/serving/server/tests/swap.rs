//! Tests of certificate files that change while the server runs: effects on the next handshake and
//! on the next request.

use std::fs;

use hyper::client::conn::http1::{SendRequest, handshake};
use rcgen::{CertificateParams, KeyPair};
use tokio::time::sleep;

use super::*;
use crate::serving::certificate::pair;
use crate::serving::client_ca::ClientCa;
use crate::serving::files::{Refresh, follow};
use crate::serving::fixture::CertificateAttributes;

/// Longer than the interval between file reads.
const A_LOOK_LATER: Duration = Duration::from_secs(6);

/// A certificate for this host.
struct Pair {
    chain: String,
    key: String,
    certificate: CertificateDer<'static>,
}

impl Pair {
    fn new() -> Self {
        let params = CertificateParams::new(vec!["127.0.0.1".to_owned()]).unwrap();
        let key = KeyPair::generate().unwrap();
        let certificate = params.self_signed(&key).unwrap();
        Self {
            chain: certificate.pem(),
            key: key.serialize_pem(),
            certificate: certificate.der().clone(),
        }
    }
}

/// A sender for one connection, and the server's certificate from its handshake.
struct Connection {
    sender: SendRequest<Empty<Bytes>>,
    shown: CertificateDer<'static>,
}

impl Connection {
    async fn open(started: &Started, identity: Option<Identity>) -> Self {
        let (stream, _) = started.connect();
        let connector = started.client("http/1.1", identity);
        let stream = connector.connect(host(), stream).await.unwrap();
        let shown = stream.get_ref().1.peer_certificates().unwrap()[0]
            .clone()
            .into_owned();
        let (sender, connection) = handshake(TokioIo::new(stream)).await.unwrap();
        // The connection ends with its sender.
        spawn(connection);
        Self { sender, shown }
    }

    async fn ask(&mut self, path: &str) -> u16 {
        let request = request("GET", path, "");
        let answer = self.sender.send_request(request).await.unwrap();
        answer.status().as_u16()
    }
}

#[tokio::test(start_paused = true)]
async fn next_handshake_uses_the_changed_certificate() {
    let folder = tempfile::tempdir().unwrap();
    let [crt, key] = ["crt", "key"].map(|name| folder.path().join(name));
    let (first, second) = (Pair::new(), Pair::new());
    fs::write(&crt, &first.chain).unwrap();
    fs::write(&key, &first.key).unwrap();
    let certificates = Certificates::from_files(pair(&crt, &key, &provider()).unwrap());
    let followed = certificates.refreshed();
    let mut started = server_of(handler(None), Ca::new(), certificates);
    started.roots.add(second.certificate.clone()).unwrap();
    let following = spawn(follow(followed, started.stop.clone()));
    let mut open = Connection::open(&started, None).await;
    assert_eq!(open.shown, first.certificate);

    // Between the two writes the files don't match.
    fs::write(&crt, &second.chain).unwrap();
    sleep(A_LOOK_LATER).await;
    let next = Connection::open(&started, None).await;
    assert_eq!(
        next.shown, first.certificate,
        "half a change is not applied"
    );
    fs::write(&key, &second.key).unwrap();
    sleep(A_LOOK_LATER).await;
    let mut next = Connection::open(&started, None).await;
    assert_eq!(next.shown, second.certificate);
    assert_eq!(next.ask("/healthz").await, 200);
    assert_eq!(
        open.ask("/healthz").await,
        200,
        "open connections keep working"
    );
    started.stop.cancel();
    following.await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn next_request_uses_the_changed_client_authorities() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("ca");
    let (old, new) = (Ca::new(), Ca::new());
    fs::write(&file, old.pem()).unwrap();
    let believed = Arc::new(ClientCa::file("client CA", &file, &provider()).unwrap());
    let mut handler = handler(None);
    handler.authentication.client_ca = Some(Arc::clone(&believed));
    let certificates = Certificates::own(now(), &provider()).unwrap();
    let started = server_of(handler, Ca::new(), certificates);
    let followed = vec![believed as Arc<dyn Refresh>];
    let following = spawn(follow(followed, started.stop.clone()));
    let connection = async |ca: &Ca| {
        let wanted = CertificateAttributes {
            name: "jane",
            group: "system:masters",
            ..CertificateAttributes::default()
        };
        Connection::open(&started, Some(ca.sign(&wanted))).await
    };
    let (mut of_old, mut of_new) = (connection(&old).await, connection(&new).await);

    for (text, expected) in [
        (old.pem(), [200, 401]),
        // An authority rotation: both are trusted for a while.
        (old.pem() + &new.pem(), [200, 200]),
        (new.pem(), [401, 200]),
        ("no authority".to_owned(), [401, 200]),
    ] {
        fs::write(&file, text).unwrap();
        sleep(A_LOOK_LATER).await;
        let codes = [of_old.ask("/metrics").await, of_new.ask("/metrics").await];
        assert_eq!(codes, expected);
    }
    started.stop.cancel();
    following.await.unwrap();
}
