//! Admission of clients: a token where others can reach the address, and no web page but our own.
//!
//! On a loopback address every program of the machine may ask, but so could every web page that its
//! user looks at: a browser sends requests for any page to any address. So a request that names
//! another origin, or that came to the address by a foreign name (DNS rebinding), is refused.

use crate::problem::Problem;
use axum::extract::Request;
use axum::http::{HeaderMap, StatusCode, header};
use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::path::Path;

/// Shortest token that is taken.
const TOKEN_MIN: usize = 16;
/// Longest file of a token that is read.
const TOKEN_FILE_MAX: u64 = 4096;

/// Paths that a browser reads before anyone has entered a token.
const OPEN_PATHS: &[&str] = &["/", "/page.css", "/page.js", "/favicon.svg"];

/// The token that a client must show: `Authorization: Bearer TOKEN`.
#[derive(Clone)]
pub struct Token(String);

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(..)")
    }
}

impl Token {
    /// The token of a text, without blanks around it.
    ///
    /// # Errors
    /// When it is too short, or has characters that cannot stand in a header.
    pub fn new(text: &str) -> Result<Self, String> {
        let token = text.trim();
        if token.len() < TOKEN_MIN {
            return Err(format!("a token has at least {TOKEN_MIN} characters"));
        }
        if !token.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err("a token has visible ASCII characters only".to_owned());
        }
        Ok(Self(token.to_owned()))
    }

    /// The token in a file.
    ///
    /// # Errors
    /// When the file cannot be read, or holds no token.
    pub fn read(path: &Path) -> Result<Self, String> {
        let named = |error: String| format!("{}: {error}", path.display());
        let file = std::fs::File::open(path).map_err(|error| named(error.to_string()))?;
        let mut text = String::new();
        let mut bounded = std::io::Read::take(file, TOKEN_FILE_MAX);
        std::io::Read::read_to_string(&mut bounded, &mut text)
            .map_err(|error| named(error.to_string()))?;
        if let Some(fault) = controller::fault_of_secret(path) {
            tracing::warn!("--rest-token-file: {fault}");
        }
        Self::new(&text).map_err(named)
    }

    /// Whether a text is the token; it takes as long for a wrong one as for the right one.
    fn is(&self, text: &str) -> bool {
        let (own, other) = (self.0.as_bytes(), text.as_bytes());
        let differing = own.iter().zip(other).fold(0, |bits, (a, b)| bits | (a ^ b));
        own.len() == other.len() && differing == 0
    }
}

/// The checks before a request is looked at.
#[derive(Debug)]
pub(crate) struct Guard {
    address: SocketAddr,
    token: Option<Token>,
}

impl Guard {
    /// The checks of an address.
    pub(crate) fn new(address: SocketAddr, token: Option<Token>) -> Self {
        Self { address, token }
    }

    /// Whether a request may go on.
    ///
    /// # Errors
    /// With the answer, when it may not.
    pub(crate) fn check(&self, request: &Request) -> Result<(), Problem> {
        let headers = request.headers();
        let host = text(headers, &header::HOST)?;
        if let (None, Some(host)) = (&self.token, host)
            && !is_own_name(host, self.address)
        {
            let words = format!("`{host}` is no name of this machine's loopback address");
            return Err(Problem::new(StatusCode::FORBIDDEN, words));
        }
        if let Some(origin) = text(headers, &header::ORIGIN)? {
            let own = origin.split_once("://").map(|(_, authority)| authority);
            if own.is_none() || own != host {
                let words = format!("a page of {origin} may not ask here");
                return Err(Problem::new(StatusCode::FORBIDDEN, words));
            }
        }
        let Some(token) = &self.token else { return Ok(()) };
        if OPEN_PATHS.contains(&request.uri().path()) {
            return Ok(());
        }
        let shown = text(headers, &header::AUTHORIZATION)?;
        let shown = shown.and_then(|value| value.split_once(' '));
        match shown {
            Some((scheme, value))
                if scheme.eq_ignore_ascii_case("bearer") && token.is(value.trim()) =>
            {
                Ok(())
            }
            Some(_) | None => {
                let words = "the request needs the header `Authorization: Bearer TOKEN`";
                Err(Problem::new(StatusCode::UNAUTHORIZED, words))
            }
        }
    }
}

fn text<'a>(headers: &'a HeaderMap, name: &header::HeaderName) -> Result<Option<&'a str>, Problem> {
    let Some(value) = headers.get(name) else { return Ok(None) };
    let no_text = |_| Problem::bad(format!("the header {name} is no text"));
    value.to_str().map(Some).map_err(no_text)
}

/// Whether a host is written as an address or as `localhost`, with or without the port.
fn is_own_name(host: &str, address: SocketAddr) -> bool {
    let port = format!(":{}", address.port());
    let name = host.strip_suffix(&port).unwrap_or(host);
    let bare = name.strip_prefix('[').and_then(|name| name.strip_suffix(']')).unwrap_or(name);
    name.eq_ignore_ascii_case("localhost") || bare.parse::<IpAddr>().is_ok()
}

#[cfg(test)]
mod tests {
    use super::{Guard, Token};
    use axum::body::Body;
    use axum::extract::Request;

    fn checked(token: Option<&str>, path: &str, headers: &[(&str, &str)]) -> Result<(), u16> {
        let token = token.map(|text| Token::new(text).unwrap());
        let guard = Guard::new("127.0.0.1:8080".parse().unwrap(), token);
        let mut request = Request::builder().uri(path);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let request = request.body(Body::empty()).unwrap();
        guard.check(&request).map_err(|problem| problem.status.as_u16())
    }

    const TOKEN: &str = "0123456789abcdef";

    #[test]
    fn a_token_is_demanded_where_there_is_one() {
        let with =
            |value: &str| checked(Some(TOKEN), "/stats/switches", &[("authorization", value)]);
        assert_eq!(with("Bearer 0123456789abcdef"), Ok(()));
        assert_eq!(with("bearer  0123456789abcdef"), Ok(()));
        for wrong in ["Bearer 0123456789abcdee", "Bearer 0123456789abcde", "Basic eDp5", "Bearer"] {
            assert_eq!(with(wrong), Err(401), "{wrong}");
        }
        assert_eq!(checked(Some(TOKEN), "/stats/switches", &[]), Err(401));
        assert_eq!(checked(Some(TOKEN), "/page.js", &[]), Ok(()));
        assert_eq!(checked(None, "/stats/switches", &[]), Ok(()));
    }

    #[test]
    fn a_foreign_page_is_refused() {
        let host = ("host", "127.0.0.1:8080");
        assert_eq!(checked(None, "/", &[host, ("origin", "http://127.0.0.1:8080")]), Ok(()));
        assert_eq!(checked(None, "/", &[host, ("origin", "http://evil.example")]), Err(403));
        assert_eq!(checked(None, "/", &[host, ("origin", "null")]), Err(403));
        assert_eq!(checked(None, "/", &[("host", "evil.example:8080")]), Err(403));
        assert_eq!(checked(None, "/", &[("host", "localhost:8080")]), Ok(()));
        assert_eq!(checked(None, "/", &[("host", "[::1]:8080")]), Ok(()));
    }

    #[test]
    fn short_and_odd_tokens_are_refused() {
        assert!(Token::new(" 0123456789abcdef\n").is_ok());
        assert!(Token::new("0123456789abcde").is_err());
        assert!(Token::new("0123456789abcde\u{e9}").is_err());
        assert!(Token::new("0123456789 abcdef").is_err());
        assert!(!format!("{:?}", Token::new(TOKEN)).contains(TOKEN));
    }
}
