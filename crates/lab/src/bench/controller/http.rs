//! Enough of HTTP/1.1 to ask a controller's REST: one request at a time over a connection that is
//! kept. Answers are bounded, and every wait has an end.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};

/// Longest time for an answer.
const ANSWER_LIMIT: Duration = Duration::from_secs(30);
/// The most bytes of an answer: links of ten thousand switches are some.
const ANSWER_MAX: u64 = 256 << 20;

/// A client of one server.
#[derive(Debug)]
pub(super) struct HttpClient {
    address: String,
    stream: Option<BufReader<TcpStream>>,
}

impl HttpClient {
    /// A client of `HOST:PORT`; it connects when it is used.
    pub(super) fn new(address: &str) -> Self {
        Self { address: address.to_owned(), stream: None }
    }

    /// Asks; the status and the body.
    ///
    /// # Errors
    /// Nobody answers there, or not in HTTP.
    pub(super) fn ask(&mut self, method: &str, path: &str, body: &str) -> Result<(u16, Vec<u8>)> {
        let answer = self.exchange(method, path, body);
        if answer.is_err() {
            self.stream = None;
        }
        answer.with_context(|| format!("{method} http://{}{path}", self.address))
    }

    fn exchange(&mut self, method: &str, path: &str, body: &str) -> Result<(u16, Vec<u8>)> {
        let mut stream = match self.stream.take() {
            Some(stream) => stream,
            None => BufReader::new(self.connect()?),
        };
        let request = format!(
            "{method} {path} HTTP/1.1\r\nHost: {}\r\nContent-Length: {}\r\n\r\n{body}",
            self.address,
            body.len()
        );
        stream.get_mut().write_all(request.as_bytes())?;
        let status_line = line(&mut stream)?;
        let mut words = status_line.split(' ');
        let is_http = words.next().is_some_and(|word| word.starts_with("HTTP/1."));
        ensure!(is_http, "the answer is not HTTP: {status_line:?}");
        let status = words.next().and_then(|word| word.parse().ok());
        let status: u16 = status.with_context(|| format!("no status: {status_line:?}"))?;
        let (mut length, mut is_chunked, mut is_kept) = (None, false, true);
        loop {
            let header = line(&mut stream)?.to_ascii_lowercase();
            let Some((name, value)) = header.split_once(':') else { break };
            match (name, value.trim()) {
                ("content-length", value) => length = value.parse().ok(),
                ("transfer-encoding", value) => is_chunked = value == "chunked",
                ("connection", value) => is_kept = value != "close",
                _ => {}
            }
        }
        let mut body = Vec::new();
        if is_chunked {
            chunks(&mut stream, &mut body)?;
        } else if let Some(length) = length {
            ensure!(length <= ANSWER_MAX, "an answer of {length} bytes");
            stream.by_ref().take(length).read_to_end(&mut body)?;
            ensure!(body.len() as u64 == length, "the answer ends before its end");
        } else {
            is_kept = false;
            stream.by_ref().take(ANSWER_MAX).read_to_end(&mut body)?;
        }
        self.stream = is_kept.then_some(stream);
        Ok((status, body))
    }

    fn connect(&self) -> Result<TcpStream> {
        let address = self.address.to_socket_addrs()?.next().context("no address")?;
        let stream = TcpStream::connect_timeout(&address, ANSWER_LIMIT)?;
        stream.set_read_timeout(Some(ANSWER_LIMIT))?;
        stream.set_write_timeout(Some(ANSWER_LIMIT))?;
        stream.set_nodelay(true)?;
        Ok(stream)
    }
}

/// A line of a head, without its end.
fn line(stream: &mut BufReader<TcpStream>) -> Result<String> {
    let mut bytes = Vec::new();
    stream.by_ref().take(16 << 10).read_until(b'\n', &mut bytes)?;
    ensure!(bytes.ends_with(b"\n"), "the connection ended within a line");
    let text = String::from_utf8(bytes).context("a head that is no text")?;
    Ok(text.trim_end().to_owned())
}

fn chunks(stream: &mut BufReader<TcpStream>, body: &mut Vec<u8>) -> Result<()> {
    loop {
        let size = line(stream)?;
        let size = u64::from_str_radix(size.split(';').next().unwrap_or_default().trim(), 16);
        let size = size.context("the size of a chunk")?;
        if body.len() as u64 + size > ANSWER_MAX {
            bail!("an answer of more than {ANSWER_MAX} bytes");
        }
        stream.by_ref().take(size).read_to_end(body)?;
        let behind = line(stream)?;
        ensure!(behind.is_empty(), "a chunk that is longer than it says");
        if size == 0 {
            return Ok(());
        }
    }
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
            stream.write_all(b"SSH-2.0-nobody\r\n").unwrap();
        });
        let mut client = HttpClient::new(&address);
        let mut ask = |path| client.ask("GET", path, "");
        assert_eq!(ask("/a").unwrap(), (200, b"one".to_vec()));
        assert_eq!(ask("/b").unwrap(), (404, b"two".to_vec()));
        assert_eq!(ask("/c").unwrap(), (200, b"three".to_vec()));
        let error = format!("{:#}", ask("/d").unwrap_err());
        assert!(error.contains("/d") && error.contains("not HTTP"), "{error}");
        server.join().unwrap();
    }
}
