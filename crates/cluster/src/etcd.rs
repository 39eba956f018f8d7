//! A client of etcd's version 3, through its JSON gateway: keys, transactions, leases, watches.
//!
//! It speaks what every etcd since 3.4 answers on its client port, so that no protocol compiler is
//! needed to build. It decides nothing about the cluster. One value is one HTTP connection; what an
//! answer says is never believed to be well-formed or short.

mod http;
mod json;
mod watch;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde_json::{Value, json};
use std::time::Duration;

pub(crate) use json::{Change, Compare, KeyValue, Op, OpAnswer, Txn, TxnAnswer};
pub(crate) use watch::{Watch, WatchBatch};

use crate::EtcdServers;
use http::Http;

/// Why etcd did not do what it was asked.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EtcdError {
    /// No connection, or it broke.
    #[error("etcd at {server}: {cause}")]
    Unreachable {
        /// `HOST:PORT`.
        server: String,
        /// The system's or HTTP's words.
        cause: String,
    },
    /// No answer in time.
    #[error("etcd at {server} has not answered within {} ms", .within.as_millis())]
    Silent {
        /// `HOST:PORT`.
        server: String,
        /// The time that it had.
        within: Duration,
    },
    /// It answered with an error of its own.
    #[error("etcd at {server} refuses: {message}")]
    Refused {
        /// `HOST:PORT`.
        server: String,
        /// Its words.
        message: String,
    },
    /// An answer that is not one of etcd's version 3.
    #[error("etcd at {server} answers what is not understood: {cause}; is it etcd 3.4 or later?")]
    Malformed {
        /// `HOST:PORT`.
        server: String,
        /// The fault.
        cause: String,
    },
}

/// A lease as etcd has granted it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Grant {
    /// Its id.
    pub(crate) lease: i64,
    /// Time that it lives without being kept alive; etcd has a least of its own.
    pub(crate) ttl: Duration,
}

/// All keys below a prefix at one revision.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Snapshot {
    /// The revision of the store.
    pub(crate) revision: i64,
    /// The keys.
    pub(crate) keys: Vec<KeyValue>,
}

/// The most keys that one answer brings.
const PAGE: usize = 4_000;

/// One connection to etcd, made when it is first needed and again after it broke.
pub(crate) struct Etcd {
    http: Http,
}

impl Etcd {
    pub(crate) fn new(servers: &EtcdServers) -> Self {
        Self { http: Http::new(servers) }
    }

    /// Asks for a lease.
    pub(crate) async fn grant(
        &mut self,
        ttl: Duration,
        within: Duration,
    ) -> Result<Grant, EtcdError> {
        let body = json!({ "TTL": ttl.as_secs().to_string() });
        let granted: json::Lease = self.ask("/v3/lease/grant", &body, within).await?;
        Ok(Grant { lease: granted.id, ttl: granted.ttl() })
    }

    /// Keeps a lease alive: how long it lives from now on, or nothing when it is over.
    pub(crate) async fn keep_alive(
        &mut self,
        lease: i64,
        within: Duration,
    ) -> Result<Option<Duration>, EtcdError> {
        let body = json!({ "ID": lease.to_string() });
        let kept: json::Streamed<json::Lease> =
            self.ask("/v3/lease/keepalive", &body, within).await?;
        let ttl = kept.result.ttl();
        Ok((!ttl.is_zero()).then_some(ttl))
    }

    /// Ends a lease, and with it all keys that are bound to it.
    pub(crate) async fn revoke(&mut self, lease: i64, within: Duration) -> Result<(), EtcdError> {
        let body = json!({ "ID": lease.to_string() });
        self.ask::<Value>("/v3/lease/revoke", &body, within).await.map(|_| ())
    }

    /// Carries out a transaction, whole or not at all.
    pub(crate) async fn txn(
        &mut self,
        txn: &Txn,
        within: Duration,
    ) -> Result<TxnAnswer, EtcdError> {
        self.ask("/v3/kv/txn", &txn.to_json(), within).await
    }

    /// The keys that begin with `prefix`, all as they are at one revision.
    pub(crate) async fn snapshot(
        &mut self,
        prefix: &str,
        within: Duration,
    ) -> Result<Snapshot, EtcdError> {
        let end = BASE64.encode(prefix_end(prefix.as_bytes()));
        let mut snapshot = Snapshot::default();
        let mut from = prefix.as_bytes().to_vec();
        loop {
            let body = json!({
                "key": BASE64.encode(&from),
                "range_end": end,
                "limit": PAGE.to_string(),
                "revision": snapshot.revision.to_string(),
            });
            let page: json::Range = self.ask("/v3/kv/range", &body, within).await?;
            if snapshot.revision == 0 {
                snapshot.revision = page.header.revision;
            }
            let last = page.kvs.last().map(|kv| kv.key.clone());
            snapshot.keys.extend(page.kvs);
            match last {
                Some(last) if page.more => {
                    // The least key after it.
                    from = last.into_bytes();
                    from.push(0);
                }
                Some(_) | None => return Ok(snapshot),
            }
        }
    }

    /// Watches the keys that begin with `prefix`, from `revision` on. The connection is the
    /// watch's.
    pub(crate) async fn watch(
        self,
        prefix: &str,
        revision: i64,
        within: Duration,
    ) -> Result<Watch, EtcdError> {
        let body = json!({ "create_request": {
            "key": BASE64.encode(prefix),
            "range_end": BASE64.encode(prefix_end(prefix.as_bytes())),
            "start_revision": revision.to_string(),
        }});
        let lines = self.http.stream("/v3/watch", &body, within).await?;
        Watch::created(lines, within).await
    }

    async fn ask<T: serde::de::DeserializeOwned>(
        &mut self,
        path: &str,
        body: &Value,
        within: Duration,
    ) -> Result<T, EtcdError> {
        let answer = self.http.post(path, body, within).await?;
        serde_json::from_slice(&answer).map_err(|error| self.http.malformed(&error))
    }
}

/// The end of the range of all keys that begin with `prefix`: the prefix with its last byte one
/// higher.
fn prefix_end(prefix: &[u8]) -> Vec<u8> {
    let mut end = prefix.to_vec();
    while let Some(last) = end.pop() {
        if let Some(next) = last.checked_add(1) {
            end.push(next);
            return end;
        }
    }
    // To the end of all keys.
    vec![0]
}

#[cfg(test)]
mod tests {
    use super::prefix_end;

    #[test]
    fn a_prefix_ends_before_the_next_key_that_does_not_have_it() {
        assert_eq!(prefix_end(b"/weir/a/"), b"/weir/a0");
        assert_eq!(prefix_end(&[7, 0xff, 0xff]), [8]);
        assert_eq!(prefix_end(&[0xff]), [0], "all keys");
        assert_eq!(prefix_end(b""), [0]);
    }
}
