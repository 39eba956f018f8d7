//! The cell's frames as fast as the generator hands them to a packet socket of host 1, and how many
//! the device of host 2 takes in, by the kernel's count.
//!
//! Nothing is searched and nobody receives in user space, so that a switch which forwards inside
//! the kernel is not held up by the lab's receiver.

use std::time::Duration;

use super::flood::{self, Flood, WARM_UP};
use super::{Better, Method, MethodContext, Metric, Trial, TrialError, traffic};
use crate::settings::Settings;
use crate::testbed::Testbed;

/// The method.
pub(super) struct Unpaced;

const METRICS: &[Metric] =
    &[Metric::new("unpaced_pps", "unpaced frames that came", "packets/s", Better::Higher, 0)];

impl Method for Unpaced {
    fn id(&self) -> &'static str {
        "unpaced"
    }

    fn label(&self) -> &'static str {
        "Unpaced frames"
    }

    fn about(&self) -> &'static str {
        "The cell's frames as fast as a packet socket of host 1 takes them, and how many a second \
         the kernel counts at the device of host 2"
    }

    fn metrics(&self) -> &'static [Metric] {
        METRICS
    }

    fn saturates(&self) -> bool {
        true
    }

    fn cost(&self, settings: &Settings) -> Duration {
        Duration::from_secs_f64(settings.duration_s()) + WARM_UP
    }

    fn fits(&self, bed: &Testbed) -> Result<(), &'static str> {
        bed.kernel().map(|_| ()).ok_or("in-memory ports have no kernel hosts")
    }

    fn run(&self, context: &MethodContext<'_>) -> Result<Trial, TrialError> {
        let bed = context.bed.kernel().ok_or(TrialError::Unfit("no kernel hosts"))?;
        let stream = flood::as_fast_as_it_goes(context, traffic::stream(context.settings));
        let (came, load) = context.observe(|| {
            let _flood = Flood::start(bed, 0, stream)?;
            flood::arriving_pps(bed, 1, context)
        });
        Ok(Trial {
            values: vec![("unpaced_pps", flood::not_nothing(came?)?)],
            tool: "Weir's generator, and the kernel's count".into(),
            load,
            raw: serde_json::Value::Null,
            ..Trial::default()
        })
    }
}
