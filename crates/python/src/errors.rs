//! The exceptions of the package, which Python defines (`weir/errors.py`), and how they are raised.

use openflow::Version;
use openflow::message::ErrorMessage;
use pyo3::exceptions::PyImportError;
use pyo3::prelude::{Bound, Py, PyAnyMethods, PyErr, PyModule, PyResult, Python, pyfunction};
use pyo3::sync::PyOnceLock;
use pyo3::types::PyBytes;

/// A class of `weir.errors`.
#[derive(Clone, Copy)]
pub(crate) enum Class {
    Weir,
    Word,
    NotConnected,
    QueueFull,
    Silent,
}

impl Class {
    fn name(self) -> &'static str {
        match self {
            Self::Weir => "WeirError",
            Self::Word => "WordError",
            Self::NotConnected => "NotConnected",
            Self::QueueFull => "QueueFull",
            Self::Silent => "SwitchSilent",
        }
    }
}

fn module(py: Python<'_>) -> PyResult<&Bound<'_, PyModule>> {
    static MODULE: PyOnceLock<Py<PyModule>> = PyOnceLock::new();
    let module = MODULE.get_or_try_init(py, || py.import("weir.errors").map(Bound::unbind))?;
    Ok(module.bind(py))
}

/// An exception of `class` that says `what`.
pub(crate) fn exception(py: Python<'_>, class: Class, what: &str) -> PyErr {
    let value = module(py).and_then(|module| module.getattr(class.name())?.call1((what,)));
    match value {
        Ok(value) => PyErr::from_value(value),
        Err(error) => PyImportError::new_err(format!("weir.errors: {error}: {what}")),
    }
}

/// A word that is unknown or has a bad value.
pub(crate) fn word(what: impl AsRef<str>) -> PyErr {
    Python::attach(|py| exception(py, Class::Word, what.as_ref()))
}

/// The exception of an `OFPT_ERROR`, of the error's own class.
pub(crate) fn refused(
    py: Python<'_>,
    version: Version,
    error: &ErrorMessage,
    index: Option<usize>,
) -> PyErr {
    let (row, data) = (error.error(version), PyBytes::new(py, &error.data));
    let (name, advice) = row.map(|row| (row.name(), row.advice())).unzip();
    let arguments = (name, error.error_type, error.code, data, index, advice);
    match module(py).and_then(|module| module.getattr("refused")?.call1(arguments)) {
        Ok(value) => PyErr::from_value(value),
        Err(error) => error,
    }
}

/// The specification's names of all errors, each the name of an exception in `weir.errors`.
#[pyfunction]
pub(crate) fn error_names() -> Vec<&'static str> {
    openflow::Error::ALL.iter().map(|error| error.name()).collect()
}
