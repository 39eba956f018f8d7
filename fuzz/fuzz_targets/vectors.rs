//! The reader of vector files: whatever the text, it answers, and what it read it reads again.
#![no_main]

use std::path::Path;

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let text = String::from_utf8_lossy(data);
    if let Ok(vectors) = testkit::vectors::parse(Path::new("fuzz.vec"), &text) {
        for vector in vectors {
            let again = testkit::hex::parse(&testkit::hex::format(&vector.bytes));
            assert_eq!(again.as_ref(), Ok(&vector.bytes));
        }
    }
});
