//! Asks a controller's REST: one request at a time over a connection that is kept. Answers are
//! bounded, and every wait has an end.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, ensure};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::Request;
use hyper::body::Bytes;
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper::header::HOST;
use hyper_util::rt::TokioIo;
use programs::cancel::Cancel;
use serde::de::{DeserializeOwned, IgnoredAny};
use tokio::net::TcpStream;
use tokio::runtime::{Builder, Runtime};

/// Longest time for an answer.
const ANSWER_LIMIT: Duration = Duration::from_secs(30);
/// The most bytes of an answer: links of ten thousand switches are some.
const ANSWER_MAX: usize = 256 << 20;
/// Between two questions for a list, besides what the answer takes.
const ASK_EVERY: Duration = Duration::from_millis(2);

/// A client of one server.
#[derive(Debug)]
pub(super) struct HttpClient {
    address: String,
    /// The longest wait for a list that is as it is to be, and what ends it before.
    pub(super) limit: Duration,
    cancel: Cancel,
    /// Moves the connection's bytes while an answer is waited for.
    runtime: Runtime,
    open: Option<SendRequest<Full<Bytes>>>,
}

impl HttpClient {
    /// A client of `HOST:PORT`; it connects when it is used.
    pub(super) fn new(address: &str, limit: Duration, cancel: &Cancel) -> Result<Self> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let (address, cancel) = (address.to_owned(), cancel.clone());
        Ok(Self { address, limit, cancel, runtime, open: None })
    }

    /// Asks for the list at a path until nothing is missing of it; when that was. After the limit
    /// what is missing is the error.
    pub(super) fn until<T: DeserializeOwned>(
        &mut self,
        path: &str,
        mut missing: impl FnMut(&[T]) -> Result<Option<String>>,
    ) -> Result<Instant> {
        let begun = Instant::now();
        loop {
            let body = self.ask("GET", path, "")?;
            let what = || format!("GET {path}: {:.200}", String::from_utf8_lossy(&body));
            let list: Vec<T> = serde_json::from_slice(&body).with_context(what)?;
            let missing = missing(&list)?;
            let at = Instant::now();
            let Some(missing) = missing else { return Ok(at) };
            ensure!(at - begun <= self.limit, "{missing}");
            self.cancel.sleep(ASK_EVERY)?;
        }
    }

    /// Waits until the list at a path is empty: a controller that ran before still shows an earlier
    /// fleet for a moment, whose rings and switches look like those of the next.
    pub(super) fn until_empty(&mut self, path: &str) -> Result<()> {
        let what = format!("before any switch connects, GET {path} still has");
        let after_s = self.limit.as_secs();
        let missing = |rows: &[IgnoredAny]| {
            let count = rows.len();
            Ok((count > 0).then(|| format!("{what} {count} rows after {after_s} s")))
        };
        self.until(path, missing).map(drop)
    }

    /// Asks; the body of an answer with the status 200.
    pub(super) fn ask(&mut self, method: &str, path: &str, body: &str) -> Result<Bytes> {
        let Self { address, runtime, open, .. } = self;
        let exchange = async {
            let kept = match open.take() {
                Some(mut sender) => sender.ready().await.is_ok().then_some(sender),
                None => None,
            };
            let mut sender = match kept {
                Some(sender) => sender,
                None => connect(address).await?,
            };
            let request = Request::builder().method(method).uri(path).header(HOST, &**address);
            let request = request.body(Full::new(Bytes::copy_from_slice(body.as_bytes())))?;
            let response = sender.send_request(request).await?;
            let status = response.status().as_u16();
            let answer = Limited::new(response.into_body(), ANSWER_MAX).collect().await;
            let answer = answer.map_err(|error| anyhow!("reading the answer: {error}"))?.to_bytes();
            // The connection is kept when the answer is whole.
            *open = Some(sender);
            ensure!(status == 200, "{status}: {}", String::from_utf8_lossy(&answer));
            anyhow::Ok(answer)
        };
        let answer = runtime.block_on(async { tokio::time::timeout(ANSWER_LIMIT, exchange).await });
        let asked = || format!("{method} http://{address}{path} {body}").trim_end().to_owned();
        answer.context("no answer in time").flatten().with_context(asked)
    }
}

async fn connect(address: &str) -> Result<SendRequest<Full<Bytes>>> {
    let stream = TcpStream::connect(address).await?;
    stream.set_nodelay(true)?;
    let (sender, connection) = handshake(TokioIo::new(stream)).await?;
    // Its end shows in the next request.
    tokio::spawn(connection);
    Ok(sender)
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::{Ipv4Addr, TcpListener};
    use std::thread::JoinHandle;
    use std::time::Duration;

    use programs::cancel::Cancel;

    use super::HttpClient;

    fn client(address: &str) -> HttpClient {
        HttpClient::new(address, Duration::from_secs(60), &Cancel::default()).unwrap()
    }

    /// Answers the requests of one connection after the other, at that address.
    fn serve(connections: &'static [&'static [&'static str]]) -> (String, JoinHandle<()>) {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let server = std::thread::spawn(move || {
            for answers in connections {
                let (mut stream, _) = listener.accept().unwrap();
                for answer in *answers {
                    // What comes before the request is another error.
                    assert!(stream.read(&mut [0; 1024]).unwrap() > 0, "it asks again");
                    stream.write_all(answer.as_bytes()).unwrap();
                }
            }
        });
        (address, server)
    }

    #[test]
    fn bodies_are_read_in_every_form_over_one_connection() {
        let (address, server) = serve(&[
            &[
                "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\none",
                "HTTP/1.1 404 No\r\nTransfer-Encoding: chunked\r\n\r\n\
                 2\r\ntw\r\n1\r\no\r\n0\r\n\r\n",
                "HTTP/1.0 200 OK\r\n\r\nthree",
            ],
            &["SSH-2.0-nobody\r\n"],
        ]);
        let mut client = client(&address);
        let mut ask = |path| client.ask("GET", path, "");
        assert_eq!(ask("/a").unwrap(), "one");
        let error = format!("{:#}", ask("/b").unwrap_err());
        assert!(error.ends_with("/b: 404: two"), "{error}");
        assert_eq!(ask("/c").unwrap(), "three");
        let error = format!("{:#}", ask("/d").unwrap_err());
        assert!(error.contains("/d") && error.contains("invalid HTTP"), "{error}");
        server.join().unwrap();
    }

    #[test]
    fn an_earlier_fleet_is_gone_before_the_next_one_connects() {
        let (address, server) = serve(&[&[
            "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n[1,2]",
            "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n[]",
            "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n[1]",
            "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
            "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}",
        ]]);
        let mut rest = client(&address);
        rest.until_empty("/stats/switches").unwrap();
        rest.limit = Duration::ZERO;
        let error = rest.until_empty("/stats/switches").unwrap_err().to_string();
        assert!(error.contains("/stats/switches still has 1 rows"), "{error}");
        for text in ["", "{}"] {
            let error = rest.until_empty("/no/list").unwrap_err().to_string();
            assert_eq!(error, format!("GET /no/list: {text}"));
        }
        server.join().unwrap();
    }
}
