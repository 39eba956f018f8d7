//! Extraction: any bytes give a flow key; what the key holds fits its field, and the same bytes
//! give the same key.
#![no_main]

use openflow::field::FIELDS;
use packet::{Layout, Meta, extract};

libfuzzer_sys::fuzz_target!(|frame: &[u8]| {
    let meta = Meta::port(openflow::PortNo(1));
    let key = extract(frame, &meta);
    for row in FIELDS {
        let value = key.get(row.field);
        assert_eq!(value & !row.field.full_mask(), 0, "{} is wider than its row", row.name);
        assert!(key.has(row.field) || value == 0, "{} is absent but has a value", row.name);
    }
    assert_eq!(key, extract(frame, &meta));
    if let Some(layout) = Layout::of(frame) {
        assert!(layout.end <= frame.len(), "the headers claim more bytes than there are");
    }
});
