//! Asks a controller's REST: one request at a time over a connection that is kept. Answers are
//! bounded, and every wait has an end.

use std::time::Duration;

use anyhow::{Context, Result};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::Request;
use hyper::body::Bytes;
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper::header::HOST;
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio::runtime::{Builder, Runtime};

/// Longest time for an answer.
const ANSWER_LIMIT: Duration = Duration::from_secs(30);
/// The most bytes of an answer: links of ten thousand switches are some.
const ANSWER_MAX: usize = 256 << 20;

/// A client of one server.
#[derive(Debug)]
pub(super) struct HttpClient {
    address: String,
    /// Moves the connection's bytes while an answer is waited for.
    runtime: Runtime,
    open: Option<SendRequest<Full<Bytes>>>,
}

impl HttpClient {
    /// A client of `HOST:PORT`; it connects when it is used.
    ///
    /// # Errors
    /// The system has no more descriptors.
    pub(super) fn new(address: &str) -> Result<Self> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        Ok(Self { address: address.to_owned(), runtime, open: None })
    }

    /// Asks; the status and the body.
    ///
    /// # Errors
    /// Nobody answers there, or not in HTTP.
    pub(super) fn ask(&mut self, method: &str, path: &str, body: &str) -> Result<(u16, Vec<u8>)> {
        let Self { address, runtime, open } = self;
        // It is put back when the answer is whole.
        let kept = open.take();
        let exchange = exchange(kept, address, Request::builder().method(method).uri(path), body);
        let answer = runtime.block_on(async { tokio::time::timeout(ANSWER_LIMIT, exchange).await });
        let answer = answer.context("no answer in time").and_then(|answer| answer);
        let answer = answer.with_context(|| format!("{method} http://{address}{path}"));
        let (sender, status, body) = answer?;
        *open = Some(sender);
        Ok((status, body))
    }
}

/// One request and its answer, over the connection that is kept if the server has not closed it.
async fn exchange(
    kept: Option<SendRequest<Full<Bytes>>>,
    address: &str,
    request: hyper::http::request::Builder,
    body: &str,
) -> Result<(SendRequest<Full<Bytes>>, u16, Vec<u8>)> {
    let kept = match kept {
        Some(mut sender) => sender.ready().await.is_ok().then_some(sender),
        None => None,
    };
    let mut sender = match kept {
        Some(sender) => sender,
        None => {
            let stream = TcpStream::connect(address).await?;
            stream.set_nodelay(true)?;
            let (sender, connection) = handshake(TokioIo::new(stream)).await?;
            // Its end shows in the next request.
            tokio::spawn(connection);
            sender
        }
    };
    let body = Full::new(Bytes::copy_from_slice(body.as_bytes()));
    let response = sender.send_request(request.header(HOST, address).body(body)?).await?;
    let status = response.status().as_u16();
    let body = Limited::new(response.into_body(), ANSWER_MAX).collect().await;
    let body = body.map_err(|error| anyhow::anyhow!("reading the answer: {error}"))?;
    Ok((sender, status, body.to_bytes().to_vec()))
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::{Ipv4Addr, TcpListener};

    use super::HttpClient;

    #[test]
    fn bodies_are_read_in_every_form_over_one_connection() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let server = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            for answer in [
                "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\none",
                "HTTP/1.1 404 No\r\nTransfer-Encoding: chunked\r\n\r\n\
                 2\r\ntw\r\n1\r\no\r\n0\r\n\r\n",
                "HTTP/1.0 200 OK\r\n\r\nthree",
            ] {
                let mut bytes = [0; 1024];
                assert!(stream.read(&mut bytes).unwrap() > 0);
                stream.write_all(answer.as_bytes()).unwrap();
            }
            drop(stream);
            let (mut stream, _) = listener.accept().unwrap();
            // What comes before the request is another error.
            assert!(stream.read(&mut [0; 1024]).unwrap() > 0);
            stream.write_all(b"SSH-2.0-nobody\r\n").unwrap();
        });
        let mut client = HttpClient::new(&address).unwrap();
        let mut ask = |path| client.ask("GET", path, "");
        assert_eq!(ask("/a").unwrap(), (200, b"one".to_vec()));
        assert_eq!(ask("/b").unwrap(), (404, b"two".to_vec()));
        assert_eq!(ask("/c").unwrap(), (200, b"three".to_vec()));
        let error = format!("{:#}", ask("/d").unwrap_err());
        assert!(error.contains("/d") && error.contains("invalid HTTP"), "{error}");
        server.join().unwrap();
    }
}
