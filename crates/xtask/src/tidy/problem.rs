//! Breaches of the house rules, as every rule reports them.

use std::fmt;

/// Gravity of a problem.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Severity {
    /// Is printed, and nothing more.
    Warning,
    /// Ends tidy with a failure.
    Error,
}

/// One breach of a house rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Problem {
    pub(crate) severity: Severity,
    pub(crate) file: String,
    /// Counted from 1; 0 means the file as a whole.
    pub(crate) line: usize,
    pub(crate) what: String,
}

impl Problem {
    pub(crate) fn error(file: &str, line: usize, what: impl Into<String>) -> Self {
        Self { severity: Severity::Error, file: file.into(), line, what: what.into() }
    }

    pub(crate) fn warning(file: &str, line: usize, what: impl Into<String>) -> Self {
        Self { severity: Severity::Warning, file: file.into(), line, what: what.into() }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = match self.severity {
            Severity::Warning => "warning: ",
            Severity::Error => "",
        };
        match self.line {
            0 => write!(f, "{}: {word}{}", self.file, self.what),
            line => write!(f, "{}:{line}: {word}{}", self.file, self.what),
        }
    }
}
