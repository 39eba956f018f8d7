//! Metrics with their samples, and the text of them.
//!
//! Names follow Prometheus' conventions: base units, and `_total` at the end of a counter's, which
//! is added here.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::text::{encode_eof, encode_registry};
use prometheus_client::encoding::{
    DescriptorEncoder, EncodeLabel as _, EncodeLabelSet, LabelSetEncoder, MetricEncoder, NoLabelSet,
};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::Registry;

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

/// The values of a sample's labels, in the order of their names.
pub type LabelValues = Arc<[String]>;

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
    help: Cow<'static, str>,
    labels: &'static [&'static str],
    samples: Vec<(LabelValues, Value)>,
}

impl Family {
    /// A metric of this name, that of a counter without `_total`. Each sample has a value for each
    /// label.
    #[must_use]
    pub fn new(
        kind: Kind,
        name: impl Into<Cow<'static, str>>,
        help: impl Into<Cow<'static, str>>,
        labels: &'static [&'static str],
        samples: impl IntoIterator<Item = (LabelValues, Value)>,
    ) -> Self {
        let (name, help) = (name.into(), help.into());
        Self { name, kind, help, labels, samples: samples.into_iter().collect() }
    }

    /// The name of its samples.
    #[must_use]
    pub fn name(&self) -> Cow<'_, str> {
        match self.kind {
            Kind::Counter => format!("{}_total", self.name).into(),
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
        &self.help
    }

    /// The names of its labels.
    #[must_use]
    pub fn labels(&self) -> &'static [&'static str] {
        self.labels
    }
}

/// The metrics of these rows: a sample for each thing.
pub fn table<T>(
    rows: &'static [MetricRow<T>],
    labels: &'static [&'static str],
    things: &[(LabelValues, &T)],
) -> impl Iterator<Item = Family> {
    rows.iter().map(move |row| {
        let samples = things
            .iter()
            .filter_map(|(values, thing)| Some((Arc::clone(values), (row.value)(thing)?)));
        Family::new(row.kind, row.name, row.help, labels, samples)
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
pub fn text(families: Vec<Family>, format: TextFormat) -> String {
    let samples: usize = families.iter().map(|family| family.samples.len()).sum();
    let mut registry = Registry::default();
    registry.register_collector(Box::new(Gathered { families, format }));
    // A large text is not copied while it grows.
    let mut text = String::with_capacity(samples * SAMPLE_BYTES);
    let encoded = encode_registry(&mut text, &registry).and_then(|()| match format {
        TextFormat::OpenMetrics => encode_eof(&mut text),
        TextFormat::Text => Ok(()),
    });
    debug_assert!(encoded.is_ok(), "writing to a string does not fail");
    text
}

/// About the bytes of a sample.
const SAMPLE_BYTES: usize = 96;

#[derive(Debug)]
struct Gathered {
    families: Vec<Family>,
    format: TextFormat,
}

impl Collector for Gathered {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        for family in &self.families {
            let kind = match family.kind {
                Kind::Counter => MetricType::Counter,
                Kind::Gauge => MetricType::Gauge,
            };
            // OpenMetrics describes a counter without the end of its samples' name.
            let (name, ends_in_total) = match (family.kind, self.format) {
                (Kind::Counter, TextFormat::OpenMetrics) => (Cow::from(family.name.as_ref()), true),
                (Kind::Counter, TextFormat::Text) | (Kind::Gauge, _) => (family.name(), false),
            };
            let mut metric = encoder.encode_descriptor(&name, &family.help, None, kind)?;
            for (values, value) in &family.samples {
                let labels = Labels { names: family.labels, values };
                if family.labels.is_empty() {
                    sample(&mut metric, *value, ends_in_total)?;
                } else {
                    sample(&mut metric.encode_family(&labels)?, *value, ends_in_total)?;
                }
            }
        }
        Ok(())
    }
}

fn sample(encoder: &mut MetricEncoder<'_>, value: Value, ends_in_total: bool) -> fmt::Result {
    match (value, ends_in_total) {
        (Value::Whole(value), true) => encoder.encode_counter::<NoLabelSet, _, u64>(&value, None),
        (Value::Real(value), true) => encoder.encode_counter::<NoLabelSet, _, u64>(&value, None),
        (Value::Whole(value), false) => encoder.encode_gauge(&value),
        (Value::Real(value), false) => encoder.encode_gauge(&value),
    }
}

#[derive(Debug)]
struct Labels<'a> {
    names: &'static [&'static str],
    values: &'a [String],
}

impl EncodeLabelSet for Labels<'_> {
    fn encode(&self, encoder: &mut LabelSetEncoder<'_>) -> fmt::Result {
        for (name, value) in self.names.iter().zip(self.values) {
            (*name, value.as_str()).encode(encoder.encode_label())?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::{Family, Kind, MetricRow, TextFormat, Value, count, seconds, table, text};

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
        let names = ["a\"b\\c\nd", "kept not"].map(str::to_owned);
        let things: Vec<_> = names.into_iter().map(|name| [name].into()).zip(&things).collect();
        let alone = Family::new(Kind::Gauge, "up", "Is up.", &[], [([].into(), Value::Whole(1))]);
        table(ROWS, &["name"], &things).chain([alone]).collect()
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
";
        assert_eq!(text(families(), TextFormat::Text), classic);
        let open = classic
            .replace("# HELP thing_count_total", "# HELP thing_count")
            .replace("# TYPE thing_count_total", "# TYPE thing_count");
        assert_eq!(text(families(), TextFormat::OpenMetrics), open + "# EOF\n");
    }
}
