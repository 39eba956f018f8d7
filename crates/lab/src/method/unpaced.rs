//! The cell's frames as fast as the generator hands them to a packet socket of host 1, and how many
//! the device of host 2 takes in, by the kernel's count.
//!
//! Nothing is searched and nobody receives in user space, so that a switch which forwards inside
//! the kernel is not held up by the lab's receiver.

use std::time::Duration;

use super::flood::{self, Flood, WARM_UP};
use super::{Method, MethodContext, Metric, Trial, TrialError, traffic};

pub(super) const UNPACED: Method = Method {
    id: "unpaced",
    label: "Unpaced frames",
    about: "The cell's frames as fast as a packet socket of host 1 takes them, and how many a \
            second the kernel counts at the device of host 2",
    metrics: &[Metric::higher("unpaced_pps", "unpaced frames that came", "packets/s", 0)],
    saturates: true,
    cost: |settings| Duration::from_secs_f64(settings.duration_s()) + WARM_UP,
    fits: |bed| bed.kernel().map(|_| ()).ok_or("in-memory ports have no kernel hosts"),
    run,
    ..Method::USUAL
};

fn run(context: &MethodContext<'_>) -> Result<Trial, TrialError> {
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
