//! The page for people: its files, which are part of the program, and the events that it follows.
//!
//! The page asks the endpoints that scripts ask too; only `/events` is its own, a stream of
//! server-sent events (WHATWG HTML, section 9.2) with one JSON object each: `at_ms` since 1970,
//! `kind`, `dpid` (16 hex digits, or null) and `text` for people; the last ones come first. It must
//! never load anything from another host.

use crate::events::TimedEvent;
use crate::problem::Problem;
use crate::services::Services;
use axum::Router;
use axum::extract::Extension;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::sse::{Event, Sse};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use futures_util::stream;
use serde_json::json;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;
use web::ClientPlace;

/// Pages that follow the events at a time.
const FOLLOWERS_MAX: usize = 32;

/// A stream says at least this often that it is alive.
const ALIVE: Duration = Duration::from_secs(5);

/// Nothing but what this server has: no script or style of others, no frame around it.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; \
                      connect-src 'self'; base-uri 'none'; form-action 'none'; \
                      frame-ancestors 'none'";

/// The page's files.
pub(crate) fn files() -> Router {
    let file = |kind: &'static str, text: &'static str| get(move || async move { of(kind, text) });
    Router::new()
        .route("/", file("text/html; charset=utf-8", include_str!("../page/index.html")))
        .route("/page.css", file("text/css; charset=utf-8", include_str!("../page/page.css")))
        .route("/page.js", file("text/javascript; charset=utf-8", include_str!("../page/page.js")))
        .route("/favicon.svg", file("image/svg+xml", include_str!("../page/favicon.svg")))
}

fn of(kind: &'static str, text: &'static str) -> Response {
    let headers = [
        (header::CONTENT_TYPE, kind),
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        // The next version of the program has other files under the same names.
        (header::CACHE_CONTROL, "no-cache"),
    ];
    (headers.map(|(name, value)| (name, HeaderValue::from_static(value))), text).into_response()
}

/// The events.
pub(crate) fn events(services: &Arc<Services>) -> Router {
    let services = Arc::clone(services);
    let follow = move |Extension(client): Extension<ClientPlace>| {
        let services = Arc::clone(&services);
        async move { stream_events(&services, &client) }
    };
    Router::new().route("/events", get(follow))
}

fn stream_events(services: &Services, client: &ClientPlace) -> Result<Response, Problem> {
    let Some(events) = &services.events else {
        return Err(Problem::not_found("this controller has no events"));
    };
    if !client.may_stream(FOLLOWERS_MAX) {
        let words = format!("{FOLLOWERS_MAX} pages follow the events already");
        return Err(Problem::new(StatusCode::SERVICE_UNAVAILABLE, words));
    }
    let events = stream::unfold(events.follow(), |mut feed| async move {
        let event = match tokio::time::timeout(ALIVE, feed.next()).await {
            Ok(event) => written(&event?),
            // A comment, which finds out whether the reader is still there.
            Err(_) => Event::default().comment("alive"),
        };
        Some((Ok::<_, Infallible>(event), feed))
    });
    Ok(Sse::new(events).into_response())
}

fn written(TimedEvent { at_ms, event }: &TimedEvent) -> Event {
    let dpid = event.dpid.map(|dpid| dpid.to_string());
    let body = json!({ "at_ms": at_ms, "kind": event.kind, "dpid": dpid, "text": event.text });
    Event::default().data(body.to_string())
}

#[cfg(test)]
mod tests {
    use super::{TimedEvent, files, written};
    use crate::events::SeenEvent;
    use axum::body::{Body, to_bytes};
    use axum::http::Request;
    use openflow::DatapathId;
    use tower::ServiceExt as _;

    #[tokio::test]
    async fn the_page_names_no_other_host_and_only_files_that_are_served() {
        let get = async |path: &str| {
            let request = Request::get(path).body(Body::empty()).unwrap();
            let response = files().oneshot(request).await.unwrap();
            assert!(response.headers().contains_key("content-security-policy"), "{path}");
            let status = response.status();
            let bytes = to_bytes(response.into_body(), 1 << 20).await.unwrap();
            (status, String::from_utf8(bytes.to_vec()).unwrap())
        };
        let (_, index) = get("/").await;
        let named = index
            .split(['"', ' '])
            .filter(|word| [".css", ".js", ".svg"].iter().any(|end| word.ends_with(end)));
        let mut count = 0;
        for name in named {
            count += 1;
            assert_eq!(get(&format!("/{name}")).await.0, 200, "{name}");
        }
        assert_eq!(count, 3);
        for path in ["/", "/page.css", "/page.js", "/favicon.svg"] {
            let text = get(path).await.1.replace("http://www.w3.org/2000/svg", "");
            assert!(!text.contains("http://") && !text.contains("https://"), "{path}");
        }
    }

    #[test]
    fn an_event_is_one_json_object() {
        let (dpid, text) = (Some(DatapathId(0x1f)), "port 3 \"eth0\"\nis down".to_owned());
        let event = SeenEvent { kind: "port-status", dpid, text };
        let event = written(&TimedEvent { at_ms: 7, event });
        let printed = format!("{event:?}");
        assert!(printed.contains(r"000000000000001f"), "{printed}");
        assert!(printed.contains(r"port-status"), "{printed}");
    }
}
