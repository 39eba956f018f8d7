//! Metrics with their samples, and the text of them.
//!
//! Names follow Prometheus' conventions: base units, and `_total` at the end of a counter's, which
//! is added here.
//!
//! A large switch has 200,000 samples, and each costs a few copies: labels are text when samples
//! are made of them, and so are the samples, whose lines are the same in both formats.

use std::borrow::{Borrow, Cow};
use std::fmt::{self, Write as _};

/// The behaviour of a metric's values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// It only grows, from zero at the program's start.
    Counter,
    /// It goes up and down.
    Gauge,
}

/// The value of a sample.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Value {
    /// A count, or a number of bytes.
    Whole(u64),
    /// Seconds, for example.
    Real(f64),
}

/// The labels of samples as they stand in the text, `bridge="br0",port="1"`: made once for a thing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Labels(String);

impl Labels {
    /// Labels of these names, each with its value.
    #[must_use]
    pub fn new(names: &[&str], values: &[&dyn fmt::Display]) -> Self {
        debug_assert_eq!(names.len(), values.len(), "{names:?}");
        let mut text = String::new();
        for (name, value) in names.iter().zip(values) {
            let comma = if text.is_empty() { "" } else { "," };
            write_to(&mut text, format_args!("{comma}{name}=\""));
            let escaped = write!(Escaped(&mut text), "{value}");
            debug_assert!(escaped.is_ok(), "writing to a string does not fail");
            text.push('"');
        }
        Self(text)
    }
}

/// The value of a label is written to this.
struct Escaped<'a>(&'a mut String);

impl fmt::Write for Escaped<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for character in text.chars() {
            match character {
                '\\' => self.0.push_str("\\\\"),
                '"' => self.0.push_str("\\\""),
                '\n' => self.0.push_str("\\n"),
                other => self.0.push(other),
            }
        }
        Ok(())
    }
}

fn write_to(text: &mut String, what: fmt::Arguments<'_>) {
    let written = text.write_fmt(what);
    debug_assert!(written.is_ok(), "writing to a string does not fail");
}

/// A metric of each thing of a table.
#[derive(Clone, Copy, Debug)]
pub struct MetricRow<T: 'static> {
    name: &'static str,
    kind: Kind,
    help: &'static str,
    value: fn(&T) -> Option<Value>,
}

impl<T> MetricRow<T> {
    /// A counter, its name without `_total`. A thing without a value has no sample.
    #[must_use]
    pub const fn counter(
        name: &'static str,
        help: &'static str,
        value: fn(&T) -> Option<Value>,
    ) -> Self {
        Self { name, kind: Kind::Counter, help, value }
    }

    /// A gauge. A thing without a value has no sample.
    #[must_use]
    pub const fn gauge(
        name: &'static str,
        help: &'static str,
        value: fn(&T) -> Option<Value>,
    ) -> Self {
        Self { name, kind: Kind::Gauge, help, value }
    }
}

/// A count; none where all bits are set, which in OpenFlow is a counter that is not kept.
#[must_use]
pub fn count(count: u64) -> Option<Value> {
    (count != u64::MAX).then_some(Value::Whole(count))
}

/// Nanoseconds as seconds.
#[must_use]
pub fn seconds(nanoseconds: u64) -> Option<Value> {
    Some(Value::Real(nanoseconds as f64 / 1e9))
}

/// A metric with its samples.
#[derive(Clone, Debug)]
pub struct Family {
    name: Cow<'static, str>,
    kind: Kind,
    help: &'static str,
    labels: &'static [&'static str],
    /// The lines of its samples.
    samples: String,
}

impl Family {
    /// A metric of this name, that of a counter without `_total`, with the names of its labels and
    /// without samples.
    #[must_use]
    pub fn new(
        kind: Kind,
        name: impl Into<Cow<'static, str>>,
        help: &'static str,
        labels: &'static [&'static str],
    ) -> Self {
        debug_assert!(!help.contains(['\\', '"', '\n']), "not escaped: {help}");
        Self { name: name.into(), kind, help, labels, samples: String::new() }
    }

    /// Adds a sample, whose labels may come from several things: the bridge, and the reason.
    pub fn sample(&mut self, labels: &[&Labels], value: Value) {
        let line = &mut self.samples;
        line.push_str(&self.name);
        if self.kind == Kind::Counter {
            line.push_str(TOTAL);
        }
        for (index, labels) in labels.iter().enumerate() {
            line.push(if index == 0 { '{' } else { ',' });
            line.push_str(&labels.0);
        }
        line.push_str(if labels.is_empty() { " " } else { "} " });
        match value {
            Value::Whole(value) => line.push_str(itoa::Buffer::new().format(value)),
            Value::Real(value) => write_to(line, format_args!("{value:?}")),
        }
        line.push('\n');
    }

    /// The name of its samples.
    #[must_use]
    pub fn name(&self) -> Cow<'_, str> {
        match self.kind {
            Kind::Counter => format!("{}{TOTAL}", self.name).into(),
            Kind::Gauge => self.name.as_ref().into(),
        }
    }

    /// The behaviour of its values.
    #[must_use]
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// Its meaning, in a sentence.
    #[must_use]
    pub fn help(&self) -> &str {
        self.help
    }

    /// The names of its labels.
    #[must_use]
    pub fn labels(&self) -> &'static [&'static str] {
        self.labels
    }
}

/// The end of a counter's name.
const TOTAL: &str = "_total";

/// The metrics of these rows: a sample for each thing, without labels where there are no names.
pub fn table<T, L: Borrow<Labels>>(
    rows: &'static [MetricRow<T>],
    names: &'static [&'static str],
    things: &[(L, &T)],
) -> impl Iterator<Item = Family> {
    rows.iter().map(move |row| {
        let mut family = Family::new(row.kind, row.name, row.help, names);
        for (labels, thing) in things {
            let Some(value) = (row.value)(thing) else { continue };
            let labels: &[&Labels] = if names.is_empty() { &[] } else { &[labels.borrow()] };
            family.sample(labels, value);
        }
        family
    })
}

/// A format of the text of metrics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TextFormat {
    /// OpenMetrics 1.0.
    OpenMetrics,
    /// Prometheus' own text, 0.0.4.
    Text,
}

impl TextFormat {
    /// Its type for HTTP.
    #[must_use]
    pub fn content_type(self) -> &'static str {
        match self {
            Self::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
            Self::Text => "text/plain; version=0.0.4; charset=utf-8",
        }
    }
}

/// The text of metrics.
#[must_use]
pub fn text(families: &[Family], format: TextFormat) -> String {
    // A large text is not copied while it grows.
    let bytes = families.iter().map(|family| family.samples.len() + DESCRIPTION_BYTES).sum();
    let mut text = String::with_capacity(bytes);
    for family in families {
        let kind = match family.kind {
            Kind::Counter => "counter",
            Kind::Gauge => "gauge",
        };
        // OpenMetrics describes a counter without the end of its samples' name.
        let name = match format {
            TextFormat::OpenMetrics => Cow::from(family.name.as_ref()),
            TextFormat::Text => family.name(),
        };
        let help = family.help;
        write_to(&mut text, format_args!("# HELP {name} {help}\n# TYPE {name} {kind}\n"));
        text.push_str(&family.samples);
    }
    if format == TextFormat::OpenMetrics {
        text.push_str("# EOF\n");
    }
    text
}

/// About the bytes of a metric's description.
const DESCRIPTION_BYTES: usize = 256;

#[cfg(test)]
mod tests {
    use super::{Family, Kind, Labels, MetricRow, TextFormat, Value, count, seconds, table, text};

    struct Thing {
        count: u64,
        lived_ns: u64,
    }

    const ROWS: &[MetricRow<Thing>] = &[
        MetricRow::counter("thing_count", "Counts.", |it| count(it.count)),
        MetricRow::gauge("thing_age_seconds", "Age.", |it| seconds(it.lived_ns)),
    ];

    fn families() -> Vec<Family> {
        let things =
            [Thing { count: 7, lived_ns: 1_500_000_000 }, Thing { count: u64::MAX, lived_ns: 0 }];
        let labels = ["a\"b\\c\nd", "kept not"].map(|name| Labels::new(&["name"], &[&name]));
        let things: Vec<_> = labels.iter().zip(&things).collect();
        let mut alone = Family::new(Kind::Gauge, "up", "Is up.", &[]);
        alone.sample(&[], Value::Whole(1));
        let mut of_two = Family::new(Kind::Gauge, "parts", "Parts.", &["name", "part"]);
        let part = Labels::new(&["part"], &[&3_u8]);
        of_two.sample(&[&labels[1], &part], Value::Whole(u64::MAX));
        table(ROWS, &["name"], &things).chain([alone, of_two]).collect()
    }

    #[test]
    fn both_formats_have_every_sample_that_is_kept() {
        let classic = "\
# HELP thing_count_total Counts.
# TYPE thing_count_total counter
thing_count_total{name=\"a\\\"b\\\\c\\nd\"} 7
# HELP thing_age_seconds Age.
# TYPE thing_age_seconds gauge
thing_age_seconds{name=\"a\\\"b\\\\c\\nd\"} 1.5
thing_age_seconds{name=\"kept not\"} 0.0
# HELP up Is up.
# TYPE up gauge
up 1
# HELP parts Parts.
# TYPE parts gauge
parts{name=\"kept not\",part=\"3\"} 18446744073709551615
";
        assert_eq!(text(&families(), TextFormat::Text), classic);
        let open = classic
            .replace("# HELP thing_count_total", "# HELP thing_count")
            .replace("# TYPE thing_count_total", "# TYPE thing_count");
        assert_eq!(text(&families(), TextFormat::OpenMetrics), open + "# EOF\n");
    }
}
