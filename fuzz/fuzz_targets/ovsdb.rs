//! The client of Open vSwitch's database: whatever a server sends, in whatever pieces, is taken or
//! ends the session, without a panic; and what is taken is answered in JSON.
#![no_main]

use std::time::Instant;

use ovsdb::{Datum, Message, Session, Splitter, Transaction, Uuid};

/// The first messages of a server; the input comes behind them.
const BEGINNING: &[u8] = br#"{"id":1,"result":{"name":"Open_vSwitch","tables":{
    "Open_vSwitch":{"columns":{"bridges":{},"next_cfg":{},"other_config":{}}},
    "Bridge":{"columns":{"name":{},"ports":{}}}}},"error":null}
    {"id":2,"result":{"Open_vSwitch":{"4c9a8a1e-2f1c-4f0e-8d39-77f5ee3a1e5d":
    {"new":{"bridges":["set",[]],"next_cfg":0}}}},"error":null}
    {"id":3,"result":{"locked":true},"error":null}"#;

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let now = Instant::now();
    let (choice, data) = data.split_first().map_or((0, data), |(choice, data)| (*choice, data));
    let mut session = Session::new("ovs_vswitchd", None, now);
    if choice & 1 == 0 && session.receive(BEGINNING, now).is_err() {
        panic!("the beginning is refused");
    }
    let mut transaction = Transaction::default();
    transaction.update("Open_vSwitch", Uuid(1), [("cur_cfg", Datum::one(1))]);
    session.transact(transaction);
    for piece in data.chunks(1 + usize::from(choice >> 1)) {
        let goes_on = session.receive(piece, now).is_ok();
        let mut splitter = Splitter::default();
        splitter.push(&session.take_output());
        while let Some(object) = splitter.next_object().expect("the client sends JSON") {
            Message::read(object).expect("the client sends messages");
        }
        if !goes_on {
            break;
        }
    }
    for (_, row) in session.replica().into_iter().flat_map(|replica| replica.rows("Bridge")) {
        for column in ["name", "ports"] {
            if let Some(datum) = row.datum(column) {
                assert!(Datum::read(&datum.to_json()).is_ok(), "{datum:?}");
            }
        }
    }
});
