//! The readers of captures, pcap and pcapng: any bytes are refused with their place, or give whole
//! records; what was read and written again is read as the same frames.
#![no_main]

use netdev::pcap::{Capture, append_record, file_header};

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    let capture = match Capture::parse(input.to_vec()) {
        Ok(capture) => capture,
        Err(error) => {
            assert!(error.offset <= input.len(), "{error}: the file has {} bytes", input.len());
            return;
        }
    };
    assert_eq!(capture.is_empty(), capture.len() == 0);
    assert!(capture.record(capture.len()).is_none());
    let records = (0..capture.len()).map(|number| capture.record(number).expect("a record"));
    let mut written = file_header();
    let mut frames = Vec::new();
    for record in records {
        // Only pcapng has longer frames than the longest record that is written.
        if append_record(&mut written, record.time, record.frame) {
            frames.push(record.frame);
        }
    }
    let again = Capture::parse(written).expect("what was written");
    let read = (0..again.len()).map(|number| again.record(number).expect("a record").frame);
    assert!(read.eq(frames), "the frames differ");
});
