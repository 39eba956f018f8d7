//! The Python package's own tests, against this build of `weir gen serve`.

use std::path::Path;
use std::process::{Command, Stdio};

#[test]
fn the_python_class_drives_a_real_generator() {
    let python = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../python");
    let output = Command::new("python3")
        .args(["-B", "-m", "unittest", "discover", "-s"])
        .arg(python.join("tests"))
        .env("PYTHONPATH", &python)
        .env("WEIR", env!("CARGO_BIN_EXE_weir"))
        .stdin(Stdio::null())
        .output()
        .expect("the tests of the Python package need python3");
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{stderr}");
    assert!(stderr.contains("\nOK") && stderr.contains("Ran 7 tests"), "{stderr}");
}
