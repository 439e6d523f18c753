//! Messages of WebSocket connections byte by byte: forwarded ports in a tunnel of SPDY frames, as
//! kubectl opens it, and channels for clients that name no protocol.

use http::{Request, StatusCode};
use hyper_util::rt::TokioIo;
use kube::client::Body;
use kube_test_control_plane::TestControlPlane;
use kube_test_control_plane::actors::KubeletConfig;
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::support::{Plane, eventually, is_ready};

const POD: &str = "/api/v1/namespaces/default/pods/p";

/// Frames that open the streams 1 and 3 for errors and data of port 8080.
const STREAMS: [&[u8]; 2] = [
    b"\x80\x03\x00\x01\x00\x00\x00\x3d\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00\x78\xf9\xe3\xc6\
      \xa7\xc2\x02\x25\x3a\x48\xf9\x5b\x04\x4e\xea\x16\x06\x16\x06\x40\x9a\xb3\x08\x12\x5f\x99\
      \xa0\x74\xcc\x68\x00\x4e\x89\x25\x45\xa9\x89\xb9\xd0\xc2\x86\x35\x15\x14\x15\x00\x00\x00\
      \x00\xff\xff",
    b"\x80\x03\x00\x01\x00\x00\x00\x16\x00\x00\x00\x03\x00\x00\x00\x00\x00\x00\x22\x53\x33\xa8\
      \xa4\x4a\x04\x00\x00\x00\xff\xff",
];

/// Responses that accept the two streams.
const ACCEPTED: [&[u8]; 2] = [
    b"\x80\x03\x00\x02\x00\x00\x00\x14\x00\x00\x00\x01\x78\x01\x00\x04\x00\xfb\xff\x00\x00\x00\x00\
      \x00\x00\x00\xff\xff",
    b"\x80\x03\x00\x02\x00\x00\x00\x12\x00\x00\x00\x03\x00\x04\x00\xfb\xff\x00\x00\x00\x00\x00\x00\
      \x00\xff\xff",
];

/// Opens a tunnel.
async fn tunnel(plane: &Plane) -> TokioIo<hyper::upgrade::Upgraded> {
    let protocol = "SPDY/3.1+portforward.k8s.io";
    connect(plane, "portforward", Some(protocol)).await
}

/// Opens a WebSocket connection to a subresource of the pod.
async fn connect(
    plane: &Plane,
    part: &str,
    protocol: Option<&str>,
) -> TokioIo<hyper::upgrade::Upgraded> {
    let mut request = Request::get(format!("{POD}/{part}"))
        .header("connection", "Upgrade")
        .header("upgrade", "websocket")
        .header("sec-websocket-version", "13")
        .header("sec-websocket-key", "AAAAAAAAAAAAAAAAAAAAAA==");
    if let Some(protocol) = protocol {
        request = request.header("sec-websocket-protocol", protocol);
    }
    let request = request.body(Body::empty()).unwrap();
    let answer = plane.0.client().send(request).await.unwrap();
    assert_eq!(answer.status(), StatusCode::SWITCHING_PROTOCOLS);
    let chosen = answer.headers().get("sec-websocket-protocol");
    assert_eq!(chosen.map(|it| it.to_str().unwrap()), protocol);
    TokioIo::new(hyper::upgrade::on(answer).await.unwrap())
}

/// Returns a message of the client, masked with zeros.
fn message(frame: &[u8]) -> Vec<u8> {
    let length = u8::try_from(frame.len()).unwrap();
    [&[0x82, 0x80 | length, 0, 0, 0, 0], frame].concat()
}

/// A control plane with a running pod.
async fn running() -> Plane {
    let builder = TestControlPlane::builder().kubelet(KubeletConfig::default());
    let plane = Plane::new(builder.start().await);
    let pod = json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"},
        "spec": {"containers": [{"name": "c", "image": "img:1", "ports": [{"containerPort": 8080}]}]},
    });
    plane.create("/api/v1/namespaces/default/pods", &pod).await;
    eventually(|| async { is_ready(&plane.get(POD).await) }).await;
    plane
}

/// Reads messages until all of this data has come.
async fn expect(io: &mut (impl AsyncReadExt + Unpin), messages: &[&[u8]]) {
    for expected in messages {
        let mut header = [0; 2];
        io.read_exact(&mut header).await.unwrap();
        let mut data = vec![0; usize::from(header[1])];
        io.read_exact(&mut data).await.unwrap();
        assert_eq!(&data, expected);
    }
}

#[tokio::test(start_paused = true)]
async fn clients_without_a_protocol_get_channels() {
    let plane = running().await;
    let mut port = connect(&plane, "portforward?ports=8080", None).await;
    expect(&mut port, &[b"\x00\x90\x1f", b"\x01\x90\x1f"]).await;
    port.write_all(&message(b"\x00ping")).await.unwrap();
    expect(&mut port, &[b"\x00ping"]).await;

    let fails = "exec?stdout=true&command=sh&command=-c&command=echo+no;+exit+3";
    let mut process = connect(&plane, fails, None).await;
    let status = b"\x03command terminated with non-zero exit code: command terminated with exit \
                   code 3";
    expect(&mut process, &[b"\x01", b"\x01no\n", status]).await;

    let succeeds = "exec?stdout=true&command=echo&command=yes";
    let mut process = connect(&plane, succeeds, None).await;
    let closed = b"\x03\xe8";
    expect(&mut process, &[b"\x01", b"\x01yes\n", closed]).await;
    plane.stop().await;
}

#[tokio::test(start_paused = true)]
async fn tunnels_carry_data_of_ports() {
    let plane = running().await;
    let mut io = tunnel(&plane).await;
    let data: &[u8] = b"\x00\x00\x00\x03\x00\x00\x00\x04ping";
    let last_data: &[u8] = b"\x00\x00\x00\x03\x01\x00\x00\x00";
    let last_error: &[u8] = b"\x00\x00\x00\x01\x01\x00\x00\x00";
    for (sent, expected) in [
        (STREAMS[0], &[ACCEPTED[0]][..]),
        (STREAMS[1], &[ACCEPTED[1]]),
        (data, &[data]),
        (last_data, &[last_data, last_error]),
    ] {
        io.write_all(&message(sent)).await.unwrap();
        expect(&mut io, expected).await;
    }
    // A frame of an impossible length ends the tunnel.
    let broken = b"\x00\x00\x00\x03\x00\xff\xff\xff";
    io.write_all(&message(broken)).await.unwrap();
    assert_eq!(io.read(&mut [0]).await.unwrap_or(0), 0);
    plane.stop().await;
}
