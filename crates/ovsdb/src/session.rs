//! One connection to a database server, without input and output.
//!
//! It asks for the schema, monitors the columns of [`COLUMNS`] that are read and that this database
//! has, and asks for a lock. Only then has it a replica and may it write: every transaction asserts
//! the lock. Echo requests are answered, and a server that is silent is probed.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use serde_json::{Map, Value, json};

use crate::columns::{COLUMNS, DATABASE};
use crate::message::{BadMessage, Message};
use crate::replica::{BadUpdate, Replica};
use crate::splitter::{BadStream, Splitter};
use crate::transaction::{Transaction, TransactionError, outcome};

/// The number of a transaction of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct TransactionId(u64);

/// An event of a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DatabaseEvent {
    /// The replica is there, or has changed.
    Changed,
    /// The lock is held from now on.
    Locked,
    /// Another client has the lock: it is waited for.
    LockedOut,
    /// The outcome of a transaction.
    Transacted(TransactionId, Result<(), TransactionError>),
}

/// The fault that ends a session.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DatabaseError {
    /// The stream.
    #[error(transparent)]
    Stream(#[from] BadStream),
    /// A message.
    #[error(transparent)]
    Message(#[from] BadMessage),
    /// An update.
    #[error(transparent)]
    Update(#[from] BadUpdate),
    /// The server refuses a request without which nothing can be done.
    #[error("the server refuses {method}: {why}")]
    Refused {
        /// The method.
        method: &'static str,
        /// Its error.
        why: String,
    },
    /// It sends nothing and answers no probe.
    #[error("the server does not answer")]
    Silent,
}

/// The requests that wait for a reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Pending {
    Schema,
    Monitor,
    Lock,
    Echo,
    Transaction(TransactionId),
}

/// A session.
#[derive(Debug)]
pub struct Session {
    splitter: Splitter,
    output: Vec<u8>,
    pending: BTreeMap<u64, Pending>,
    last_id: u64,
    lock: String,
    is_locked: bool,
    replica: Option<Replica>,
    /// The time of silence until a probe, and until the end after it.
    probe_after: Option<Duration>,
    heard_at: Instant,
    is_probed: bool,
}

impl Session {
    /// A session on a new connection that asks for a lock, and probes a server that was silent for
    /// `probe_after`.
    #[must_use]
    pub fn new(lock: &str, probe_after: Option<Duration>, now: Instant) -> Self {
        let mut session = Self {
            splitter: Splitter::default(),
            output: Vec::new(),
            pending: BTreeMap::new(),
            last_id: 0,
            lock: lock.to_owned(),
            is_locked: false,
            replica: None,
            probe_after,
            heard_at: now,
            is_probed: false,
        };
        session.request(Pending::Schema, "get_schema", vec![json!(DATABASE)]);
        session
    }

    /// The bytes to send now.
    #[must_use]
    pub fn take_output(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.output)
    }

    /// The rows of the database, once they are there.
    #[must_use]
    pub fn replica(&self) -> Option<&Replica> {
        self.replica.as_ref()
    }

    /// Whether this session has the lock.
    #[must_use]
    pub fn is_locked(&self) -> bool {
        self.is_locked
    }

    /// The time at which [`Session::tick`] has something to do.
    #[must_use]
    pub fn next_tick(&self) -> Option<Instant> {
        let probes = 1 + u32::from(self.is_probed);
        self.probe_after.map(|after| self.heard_at + after * probes)
    }

    /// Time has passed.
    ///
    /// # Errors
    /// [`DatabaseError::Silent`].
    pub fn tick(&mut self, now: Instant) -> Result<(), DatabaseError> {
        if self.next_tick().is_none_or(|at| now < at) {
            return Ok(());
        }
        if self.is_probed {
            return Err(DatabaseError::Silent);
        }
        self.is_probed = true;
        self.request(Pending::Echo, "echo", Vec::new());
        Ok(())
    }

    /// Sends a transaction, which fails where the lock is not held.
    pub fn transact(&mut self, transaction: Transaction) -> TransactionId {
        let id = TransactionId(self.last_id + 1);
        let params = transaction.into_params(DATABASE, &self.lock);
        self.request(Pending::Transaction(id), "transact", params);
        id
    }

    /// Bytes have arrived.
    ///
    /// # Errors
    /// The session is over.
    pub fn receive(
        &mut self,
        bytes: &[u8],
        now: Instant,
    ) -> Result<Vec<DatabaseEvent>, DatabaseError> {
        (self.heard_at, self.is_probed) = (now, false);
        self.splitter.push(bytes);
        let mut events = Vec::new();
        while let Some(object) = self.splitter.next_object()? {
            match Message::read(object)? {
                Message::Request { id, method, params } => {
                    let outcome = match method.as_str() {
                        "echo" => Ok(Value::Array(params)),
                        _ => Err(json!("unknown method")),
                    };
                    self.send(&Message::Reply { id, outcome });
                }
                Message::Notification { method, params } => {
                    events.extend(self.notified(&method, &params)?);
                }
                Message::Reply { id, outcome } => {
                    let pending = id.as_u64().and_then(|id| self.pending.remove(&id));
                    if let Some(pending) = pending {
                        events.extend(self.replied(pending, outcome)?);
                    }
                }
            }
        }
        Ok(events)
    }

    fn send(&mut self, message: &Message) {
        self.output.extend(message.to_bytes());
    }

    fn request(&mut self, pending: Pending, method: &str, params: Vec<Value>) {
        self.last_id += 1;
        self.pending.insert(self.last_id, pending);
        let id = json!(self.last_id);
        self.send(&Message::Request { id, method: method.to_owned(), params });
    }

    fn notified(
        &mut self,
        method: &str,
        params: &[Value],
    ) -> Result<Option<DatabaseEvent>, DatabaseError> {
        let is_ours = params.first().and_then(Value::as_str) == Some(&self.lock);
        match (method, params, &mut self.replica) {
            ("update", [_, updates], Some(replica)) => {
                replica.apply(updates)?;
                Ok(Some(DatabaseEvent::Changed))
            }
            ("locked", ..) if is_ours => {
                self.is_locked = true;
                Ok(Some(DatabaseEvent::Locked))
            }
            ("stolen", ..) if is_ours => {
                self.is_locked = false;
                Ok(Some(DatabaseEvent::LockedOut))
            }
            _ => Ok(None),
        }
    }

    fn replied(
        &mut self,
        pending: Pending,
        reply: Result<Value, Value>,
    ) -> Result<Option<DatabaseEvent>, DatabaseError> {
        let refused = |method| {
            move |error: Value| {
                let why = error.get("error").and_then(Value::as_str).map(str::to_owned);
                let why = why.unwrap_or_else(|| error.to_string());
                DatabaseError::Refused { method, why: why.chars().take(1000).collect() }
            }
        };
        match pending {
            Pending::Schema => {
                let schema = reply.map_err(refused("get_schema"))?;
                let params = vec![json!(DATABASE), Value::Null, monitored(&schema)];
                self.request(Pending::Monitor, "monitor", params);
                Ok(None)
            }
            Pending::Monitor => {
                let mut replica = Replica::default();
                replica.apply(&reply.map_err(refused("monitor"))?)?;
                self.replica = Some(replica);
                self.request(Pending::Lock, "lock", vec![json!(self.lock)]);
                Ok(Some(DatabaseEvent::Changed))
            }
            Pending::Lock => {
                let reply = reply.map_err(refused("lock"))?;
                // A notification may have been here before.
                self.is_locked |= reply.get("locked") == Some(&Value::Bool(true));
                Ok(Some(if self.is_locked {
                    DatabaseEvent::Locked
                } else {
                    DatabaseEvent::LockedOut
                }))
            }
            Pending::Echo => Ok(None),
            Pending::Transaction(id) => Ok(Some(DatabaseEvent::Transacted(id, outcome(reply)))),
        }
    }
}

/// The `<monitor-requests>` for the columns that are read and that the schema has.
fn monitored(schema: &Value) -> Value {
    let mut tables: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    let has = |table: &str, column: &str| {
        let table = schema.get("tables").and_then(|tables| tables.get(table));
        table.and_then(|table| table.get("columns")?.get(column)).is_some()
    };
    let read = COLUMNS.iter().filter(|row| row.access.is_read());
    for row in read.filter(|row| has(row.table, row.column())) {
        tables.entry(row.table).or_default().insert(row.column());
    }
    let requests = tables.into_iter().map(|(table, columns)| {
        let columns: Vec<&str> = columns.into_iter().collect();
        (table.to_owned(), json!([{ "columns": columns }]))
    });
    Value::Object(requests.collect::<Map<_, _>>())
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use proptest::prelude::{prop, proptest};
    use serde_json::{Value, json};

    use super::{DatabaseError, DatabaseEvent, Session};
    use crate::splitter::Splitter;
    use crate::transaction::Transaction;
    use crate::value::{Datum, Uuid};

    const PROBE: Duration = Duration::from_secs(5);

    fn sent(session: &mut Session) -> Vec<Value> {
        let (mut splitter, mut found) = (Splitter::default(), Vec::new());
        splitter.push(&session.take_output());
        while let Some(object) = splitter.next_object().unwrap() {
            found.push(object);
        }
        found
    }

    fn receive(session: &mut Session, line: &str) -> Vec<DatabaseEvent> {
        session.receive(line.as_bytes(), Instant::now()).unwrap()
    }

    /// Lines as ovsdb-server 3.1.0 writes them.
    const SCHEMA: &str = r#"{"id":1,"result":{"name":"Open_vSwitch","version":"8.3.1","tables":{
        "Open_vSwitch":{"columns":{"bridges":{},"next_cfg":{},"cur_cfg":{}}},
        "Bridge":{"columns":{"name":{},"ports":{},"datapath_id":{}}}}},"error":null}"#;
    const ROWS: &str = r#"{"id":2,"result":{"Open_vSwitch":
        {"4c9a8a1e-2f1c-4f0e-8d39-77f5ee3a1e5d":{"new":{"bridges":["set",[]],"next_cfg":0}}}},
        "error":null}"#;

    fn ready() -> Session {
        let mut session = Session::new("ovs_vswitchd", Some(PROBE), Instant::now());
        receive(&mut session, SCHEMA);
        receive(&mut session, ROWS);
        session
    }

    #[test]
    fn it_monitors_what_the_database_has_and_asks_for_the_lock() {
        let mut session = Session::new("ovs_vswitchd", None, Instant::now());
        assert_eq!(sent(&mut session)[0]["method"], "get_schema");
        assert!(receive(&mut session, SCHEMA).is_empty());
        let monitor = sent(&mut session).remove(0);
        assert_eq!(
            monitor["params"][2]["Open_vSwitch"][0]["columns"],
            json!(["bridges", "next_cfg"])
        );
        assert_eq!(monitor["params"][2]["Bridge"][0]["columns"], json!(["name", "ports"]));
        assert_eq!(receive(&mut session, ROWS), [DatabaseEvent::Changed]);
        assert_eq!(sent(&mut session)[0]["params"], json!(["ovs_vswitchd"]));
        let out = r#"{"id":3,"result":{"locked":false},"error":null}"#;
        assert_eq!(receive(&mut session, out), [DatabaseEvent::LockedOut]);
        let free = r#"{"id":null,"method":"locked","params":["ovs_vswitchd"]}"#;
        assert_eq!(receive(&mut session, free), [DatabaseEvent::Locked]);
        let stolen = r#"{"id":null,"method":"stolen","params":["ovs_vswitchd"]}"#;
        assert_eq!(receive(&mut session, stolen), [DatabaseEvent::LockedOut]);
        assert!(!session.is_locked() && session.replica().is_some());
    }

    #[test]
    fn updates_echoes_and_transactions() {
        let mut session = ready();
        sent(&mut session);
        let echo = r#"{"id":"echo","method":"echo","params":[7]}"#;
        assert!(receive(&mut session, echo).is_empty());
        assert_eq!(sent(&mut session), [json!({"id": "echo", "result": [7], "error": null})]);
        let update = r#"{"id":null,"method":"update","params":[null,{"Bridge":
            {"5c9a8a1e-2f1c-4f0e-8d39-77f5ee3a1e5d":{"new":{"name":"br0"}}}}]}"#;
        assert_eq!(receive(&mut session, update), [DatabaseEvent::Changed]);
        assert_eq!(session.replica().unwrap().rows("Bridge").count(), 1);
        let mut transaction = Transaction::default();
        transaction.update("Open_vSwitch", Uuid(1), [("cur_cfg", Datum::one(1))]);
        let id = session.transact(transaction);
        assert_eq!(sent(&mut session)[0]["id"], 4);
        let done = receive(&mut session, r#"{"id":4,"result":[{},{"count":1}],"error":null}"#);
        assert_eq!(done, [DatabaseEvent::Transacted(id, Ok(()))]);
        assert!(receive(&mut session, r#"{"id":99,"result":[],"error":null}"#).is_empty());
    }

    #[test]
    fn a_silent_server_is_probed_and_given_up() {
        let begin = Instant::now();
        let mut session = Session::new("ovs_vswitchd", Some(PROBE), begin);
        sent(&mut session);
        assert_eq!(session.next_tick(), Some(begin + PROBE));
        session.tick(begin + PROBE).unwrap();
        assert_eq!(sent(&mut session)[0]["method"], "echo");
        assert_eq!(session.tick(begin + 2 * PROBE), Err(DatabaseError::Silent));
        session.receive(b" ", begin + 2 * PROBE).unwrap();
        assert_eq!(session.next_tick(), Some(begin + 3 * PROBE));
    }

    #[test]
    fn what_cannot_be_gone_on_with_ends_it() {
        let mut session = Session::new("ovs_vswitchd", None, Instant::now());
        let line = r#"{"id":1,"result":null,"error":{"error":"unknown database"}}"#;
        let error = session.receive(line.as_bytes(), Instant::now()).unwrap_err();
        assert_eq!(error.to_string(), "the server refuses get_schema: unknown database");
        let bad = r#"{"id":null,"method":"update","params":[null,{"Bridge":7}]}"#;
        assert!(ready().receive(bad.as_bytes(), Instant::now()).is_err());
    }

    proptest! {
        #[test]
        fn no_message_makes_it_panic(words in prop::collection::vec(prop::sample::select(vec![
            "{", "}", "[", "]", ":", ",", "\"id\"", "1", "2", "3", "null", "\"method\"",
            "\"params\"",
            "\"result\"", "\"error\"", "\"update\"", "\"locked\"", "\"ovs_vswitchd\"", "\"tables\"",
            "{\"id\":1,\"result\":", "{\"id\":2,\"result\":{\"Bridge\":", "{\"new\":", "\"set\"",
            "{\"id\":null,\"method\":\"update\",\"params\":[null,{\"Port\":",
        ]), 0..40)) {
            let mut session = Session::new("ovs_vswitchd", None, Instant::now());
            for word in words {
                if session.receive(word.as_bytes(), Instant::now()).is_err() {
                    break;
                }
            }
        }
    }
}
