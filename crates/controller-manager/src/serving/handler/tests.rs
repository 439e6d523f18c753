//! Tests of requests from end to end, without a connection.

use http::header::CACHE_CONTROL;
use http_body_util::{Empty, Full};
use statefulset_client::rest::RestClient;

use super::*;
use crate::scripted::{client, failure};
use crate::serving::fixture::{
    allow, authentication, authorization, endpoints, handler, plane, read, request,
};

/// A number longer than the body limit.
const LONG: &str = "11111111111111111111111111111111111111111111111111111111111111111";

async fn asked(handler: &Handler, method: &str, uri: &str, token: &str) -> (u16, String) {
    let answer = handler.answer(&[], request(method, uri, token)).await;
    assert_eq!(answer.headers()[CACHE_CONTROL], "no-cache, private");
    assert_eq!(answer.headers()["x-content-type-options"], "nosniff");
    read(answer).await
}

fn forbidden_status(message: &str) -> String {
    format!(
        "{{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"metadata\":{{}},\"status\":\"Failure\",\
         \"message\":\"{message}\",\"reason\":\"Forbidden\",\"details\":{{}},\"code\":403}}\n"
    )
}

#[tokio::test]
async fn anonymous_users_get_only_health() {
    for plane in [None, Some(plane(&[]).await)] {
        let client = plane.as_ref().map(|plane| RestClient::new(plane.client()));
        let handler = handler(client);
        for path in ["/healthz", "/livez", "/readyz"] {
            let (code, body) = asked(&handler, "GET", path, "").await;
            assert_eq!((code, body.as_str()), (200, "ok"), "{path}");
        }
        for path in [
            "/metrics",
            "/metrics/slis",
            "/configz",
            "/flagz",
            "/statusz",
            "/debug/flags/v",
            "/healthz/ping",
            "/healthz/",
            "/nope",
            "/",
            "//healthz",
            "/healthz/../metrics",
        ] {
            let message =
                format!("forbidden: User \\\"system:anonymous\\\" cannot get path \\\"{path}\\\"");
            let expected = (403, forbidden_status(&message));
            assert_eq!(asked(&handler, "GET", path, "").await, expected);
        }
    }
}

#[tokio::test]
async fn roles_grant_only_their_paths() {
    let plane = plane(&["scraper", "stranger"]).await;
    let client = RestClient::new(plane.client());
    allow(&client, "scraper", &["/metrics", "/metrics/*"], &["get"]).await;
    let handler = handler(Some(client));
    let scraper = "token-of-scraper";
    let (code, body) = asked(&handler, "GET", "/metrics", scraper).await;
    assert_eq!((code, body.as_str()), (200, "a_metric 1\n"));
    assert_eq!(
        asked(&handler, "GET", "/metrics/slis", scraper).await.0,
        200
    );
    for (method, path, token, user) in [
        ("GET", "/metrics", "token-of-stranger", "stranger"),
        ("GET", "/configz", scraper, "scraper"),
        ("DELETE", "/metrics/slis", scraper, "scraper"),
    ] {
        let verb = method.to_lowercase();
        let message = format!("forbidden: User \\\"{user}\\\" cannot {verb} path \\\"{path}\\\"");
        let expected = (403, forbidden_status(&message));
        assert_eq!(asked(&handler, method, path, token).await, expected);
    }
    // An invalid token is worse than none.
    let unauthorized = "{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"metadata\":{},\
                        \"status\":\"Failure\",\"message\":\"Unauthorized\",\
                        \"reason\":\"Unauthorized\",\"code\":401}\n";
    for path in ["/metrics", "/healthz"] {
        let expected = (401, unauthorized.to_owned());
        assert_eq!(asked(&handler, "GET", path, "nobody's").await, expected);
    }
    plane.stop().await;
}

#[tokio::test]
async fn every_endpoint_can_be_granted() {
    let plane = plane(&["admin"]).await;
    let client = RestClient::new(plane.client());
    allow(&client, "admin", &["*"], &["*"]).await;
    let mut handler = handler(Some(client));
    let (all, verbosity) = endpoints();
    handler.endpoints = all;
    let token = "token-of-admin";
    let ask = async |method: &str, uri: &str| asked(&handler, method, uri, token).await;
    assert_eq!(
        ask("GET", "/configz").await,
        (200, "{\"config\":{}}".to_owned())
    );
    assert_eq!(ask("GET", "/%63onfigz").await.0, 200);
    let (code, flags) = ask("GET", "/flagz").await;
    assert!(code == 200 && flags.ends_with("\n\nv=0\n"), "{flags}");
    let (code, status) = ask("GET", "/statusz").await;
    let paths = "Paths: /configz /flagz /healthz /livez /metrics /readyz\n";
    assert!(code == 200 && status.ends_with(paths), "{status}");
    assert_eq!(
        ask("GET", "/healthz?verbose").await.1,
        "healthz check passed\n"
    );
    assert_eq!(
        ask("DELETE", "/metrics/slis").await,
        (200, "metrics reset\n".to_owned())
    );
    for path in [
        "/nope",
        "/debug/pprof/profile",
        "/healthz/ping",
        "/metrics/",
    ] {
        let expected = (404, "404 page not found\n".to_owned());
        assert_eq!(ask("GET", path).await, expected, "{path}");
    }

    for (path, report) in [("/shadow", false), ("/shadow/objects", true)] {
        let body = format!("{{\"objects\":{report}}}");
        assert_eq!(ask("GET", path).await, (200, body));
    }
    assert_eq!(
        ask("GET", "/debug/flags/v").await,
        (406, "unsupported http method\n".to_owned())
    );
    let put = async |body: &'static str| {
        let mut request = request("PUT", "/debug/flags/v", token).map(|_| Full::from(body));
        *request.version_mut() = http::Version::HTTP_2;
        read(handler.answer(&[], request).await).await
    };
    let done = "successfully set klog.logging.verbosity to 4\n";
    assert_eq!(put("4").await, (200, done.to_owned()));
    assert_eq!(*verbosity.lock().unwrap(), Some(4));
    let bad = "failed set klog.logging.verbosity x: strconv.ParseInt: parsing \"x\": \
               invalid syntax\n";
    assert_eq!(put("x").await, (400, bad.to_owned()));
    let (code, body) = put(LONG).await;
    assert!(
        code == 400 && body.starts_with("error reading request body: "),
        "{body}"
    );
    assert_eq!(*verbosity.lock().unwrap(), Some(4));
    plane.stop().await;
}

#[tokio::test]
async fn disabled_endpoints_are_not_found() {
    let mut handler = handler(None);
    handler.authorization = allow_all();
    handler.endpoints.flagz = None;
    handler.endpoints.set_verbosity = None;
    handler.endpoints.shadow = None;
    for path in ["/flagz", "/debug/flags/v", "/shadow", "/shadow/objects"] {
        assert_eq!(asked(&handler, "GET", path, "").await.0, 404, "{path}");
    }
    let (_, status) = asked(&handler, "GET", "/statusz", "").await;
    assert!(
        status.ends_with("Paths: /configz /healthz /livez /metrics /readyz\n"),
        "{status}"
    );
    handler.endpoints.statusz = None;
    assert_eq!(asked(&handler, "GET", "/statusz", "").await.0, 404);
}

fn allow_all() -> Authorization {
    use crate::serving::authorization::{AllowedPaths, CacheTtls};
    let ttls = CacheTtls {
        authorized: std::time::Duration::ZERO,
        unauthorized: std::time::Duration::ZERO,
    };
    Authorization::new(AllowedPaths::new(&["*"]).unwrap(), None, ttls)
}

#[tokio::test(start_paused = true)]
async fn requests_fail_while_the_api_server_is_down() {
    let down = handler(Some(client(|_| Err("connection <refused>"))));
    let (code, body) = asked(&down, "GET", "/metrics?a=b", "").await;
    assert_eq!(
        (code, body.as_str()),
        (
            500,
            "Internal Server Error: \"/metrics?a=b\": POST \
             /apis/authorization.k8s.io/v1/subjectaccessreviews: connection &lt;refused&gt;\n"
        )
    );
    assert_eq!(asked(&down, "GET", "/metrics", "a").await.0, 401);
    assert_eq!(
        asked(&down, "GET", "/healthz", "").await,
        (200, "ok".to_owned())
    );

    // The same while the program may not request reviews.
    let refused = handler(Some(client(|_| Ok(failure(403, "Forbidden", "no right")))));
    let (code, body) = asked(&refused, "GET", "/metrics", "").await;
    let expected = "Internal Server Error: \"/metrics\": no right\n";
    assert_eq!((code, body.as_str()), (500, expected));
}

#[tokio::test]
async fn malformed_requests_get_a_response() {
    let handler = handler(None);
    let (code, body) = asked(&handler, "GET", "/%ff", "").await;
    assert_eq!(
        (code, body.as_str()),
        (400, "400 Bad Request: the path is not UTF-8\n")
    );
    let (code, body) = asked(&handler, "GET", "/a%22%3Cb%3E%0a", "").await;
    let message = "forbidden: User \\\"system:anonymous\\\" cannot get path \
                   \\\"/a\\\\\\\"\\u0026lt;b\\u0026gt;\\\\n\\\"";
    assert_eq!((code, body), (403, forbidden_status(message)));
    for (method, uri) in [
        ("GET", "http://host/healthz"),
        ("POST", "/healthz?verbose=%zz&exclude=%&=&&"),
        ("BREW", "/healthz"),
    ] {
        assert_eq!(
            asked(&handler, method, uri, "").await.0,
            200,
            "{method} {uri}"
        );
    }
    let star = Request::builder()
        .method("OPTIONS")
        .uri("*")
        .body(Empty::<Bytes>::new());
    let answer = handler.answer(&[], star.unwrap()).await;
    assert_eq!(answer.status(), 403);
    let authority = Request::builder()
        .method("CONNECT")
        .uri("host:1")
        .body(Empty::<Bytes>::new());
    let answer = handler.answer(&[], authority.unwrap()).await;
    assert_eq!(answer.status(), 403);
}

#[tokio::test]
async fn masters_need_no_review() {
    let ca = crate::serving::fixture::Ca::new();
    let mut authentication = authentication(None);
    authentication.client_ca = Some(ca.client_ca());
    let handler = Handler::new(authentication, authorization(None), endpoints().0);
    let chain = [ca.client("jane", "system:masters")];
    let answer = handler.answer(&chain, request("GET", "/metrics", "")).await;
    assert_eq!(answer.status(), 200);
    let chain = [ca.client("jane", "devs")];
    let answer = handler.answer(&chain, request("GET", "/metrics", "")).await;
    assert_eq!(answer.status(), 403);
}

#[tokio::test]
async fn probes_are_answered_under_overload() {
    let handler = handler(None);
    let waiting = handler.in_flight.try_acquire_many(400).unwrap();
    let refused = handler.answer(&[], request("GET", "/metrics", "")).await;
    assert_eq!(refused.headers()[RETRY_AFTER], "1");
    let text = "Too many requests, please try again later.\n";
    assert_eq!(read(refused).await, (429, text.to_owned()));
    assert_eq!(asked(&handler, "GET", "/livez", "").await.0, 200);
    // A token requires a review.
    assert_eq!(asked(&handler, "GET", "/livez", "t").await.0, 429);
    drop(waiting);
    assert_eq!(asked(&handler, "GET", "/metrics", "").await.0, 403);
}
