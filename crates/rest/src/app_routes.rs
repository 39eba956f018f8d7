//! Endpoints of apps: a request for a path that no row has goes to them.
//!
//! An app answers in its own time, on its own thread, and may block: a request waits for it no
//! longer than a bound. An endpoint of an app never takes the place of one of the rows.

use crate::datapath::RestFuture;
use crate::problem::Problem;
use axum::body::Body;
use axum::http::{HeaderValue, Response, StatusCode, header};
use serde_json::{Map, Value, json};
use std::time::Duration;

/// The longest time that a request waits for an app.
const WAIT_MAX: Duration = Duration::from_secs(10);

/// Paths that are no rows, and Weir's own too.
const PAGES: &[&str] = &["/", "/events", "/page.css", "/page.js", "/favicon.svg"];

/// An endpoint of an app.
#[derive(Clone, Debug)]
pub struct AppRoute {
    /// The method.
    pub method: String,
    /// The path, with its variable parts in braces.
    pub path: String,
    /// Its act, for people.
    pub what: String,
}

/// A request for the apps.
#[derive(Clone, Debug)]
pub struct AppRequest {
    /// The method.
    pub method: String,
    /// The path, as it came.
    pub path: String,
    /// The part behind the question mark.
    pub query: String,
    /// The body.
    pub body: Vec<u8>,
}

/// An app's answer.
#[derive(Clone, Debug)]
pub struct AppResponse {
    /// The status.
    pub status: u16,
    /// The type of the body.
    pub content_type: String,
    /// The body.
    pub body: Vec<u8>,
}

/// The apps beside REST.
pub trait AppRoutes: Send + Sync + 'static {
    /// Their endpoints, at the start.
    fn routes(&self) -> &[AppRoute];
    /// Their answer; `None` when they have ended.
    fn answer(&self, request: AppRequest) -> RestFuture<Option<AppResponse>>;
}

/// The first endpoint that one of Weir's own, with these paths, would keep from its requests.
pub(crate) fn taken(routes: &[AppRoute], paths: &[&str]) -> Option<String> {
    let clash = |route: &AppRoute| {
        let mut own = paths.iter().chain(PAGES);
        let path = own.find(|path| overlap(path, &route.path))?;
        Some(format!("{} {}: the path is that of Weir's own {path}", route.method, route.path))
    };
    routes.iter().find_map(clash)
}

/// Whether a path may be one of both.
fn overlap(one: &str, other: &str) -> bool {
    let is_variable = |part: &str| part.starts_with('{');
    let (one, other) = (one.split('/'), other.split('/'));
    one.clone().count() == other.clone().count()
        && one.zip(other).all(|(a, b)| a == b || is_variable(a) || is_variable(b))
}

/// Adds the endpoints to the paths of the OpenAPI document.
pub(crate) fn announce(routes: &[AppRoute], paths: &mut Map<String, Value>) {
    for route in routes {
        let parts = route.path.split('/').filter_map(|part| part.strip_prefix('{'));
        let parameters: Vec<_> = parts
            .map(|part| {
                let schema = json!({"type": "string"});
                json!({"name": part.trim_end_matches('}'), "in": "path", "required": true,
                    "schema": schema})
            })
            .collect();
        let operation = json!({
            "summary": route.what,
            "operationId": format!("{} {}", route.method, route.path),
            "tags": ["apps"],
            "parameters": parameters,
            "responses": {"default": {"description": "The app's answer."}},
        });
        let item = paths.entry(&route.path).or_insert_with(|| Value::Object(Map::new()));
        item[route.method.to_lowercase()] = operation;
    }
}

/// Has the apps answer a request.
///
/// # Errors
/// When they do not.
pub(crate) async fn ask(
    apps: &dyn AppRoutes,
    request: AppRequest,
) -> Result<Response<Body>, Problem> {
    let answer = tokio::time::timeout(WAIT_MAX, apps.answer(request)).await.map_err(|_| {
        let words = format!("the app has not answered within {} s", WAIT_MAX.as_secs());
        Problem::new(StatusCode::GATEWAY_TIMEOUT, words)
    })?;
    let gone = || Problem::new(StatusCode::SERVICE_UNAVAILABLE, "the app has ended");
    let answer = answer.ok_or_else(gone)?;
    let odd = |what| Problem::new(StatusCode::INTERNAL_SERVER_ERROR, format!("the app's {what}"));
    let status = StatusCode::from_u16(answer.status).map_err(|_| odd("status is none of HTTP"))?;
    let kind = HeaderValue::from_str(&answer.content_type);
    let kind = kind.map_err(|_| odd("type of the body cannot stand in a header"))?;
    let mut response = Response::new(Body::from(answer.body));
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, kind);
    if status == StatusCode::SERVICE_UNAVAILABLE {
        response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
    }
    Ok(response)
}

#[cfg(test)]
mod tests {
    use super::{AppRoute, overlap, taken};
    use crate::server::all_rows;

    #[test]
    fn a_path_of_an_app_is_not_one_of_the_rows() {
        let route = |path: &str| AppRoute {
            method: "GET".to_owned(),
            path: path.to_owned(),
            what: String::new(),
        };
        let rows = all_rows();
        let paths: Vec<_> = rows.iter().map(|row| row.path).collect();
        for own in ["/stats/switches", "/stats/{x}", "/stats/flow/{dpid}", "/", "/events", "/{x}"] {
            assert!(taken(&[route("/free"), route(own)], &paths).is_some(), "{own}");
        }
        for free in ["/status", "/stats", "/status/{dpid}/hosts"] {
            assert_eq!(taken(&[route(free)], &paths), None, "{free}");
        }
        assert!(!overlap("/a/{b}", "/a/b/c"));
    }
}
