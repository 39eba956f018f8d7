//! Share of one host's packets when each of another's begins a new flow, in percent of their rate
//! beside a second copy of themselves.
//!
//! Both come in by a port of their own, both as fast as their hosts send, to the same forwarding
//! thread. Entries that look at addresses and ports make each new flow a new one to the caches too.

use std::time::Duration;

use generator::profile::{FieldModifier, Modifier, ModifierOp, StreamSpec};

use super::flood::{self, Flood, WARM_UP};
use super::{Method, MethodContext, Metric, Trial, TrialError, four_hosts};
use crate::testbed::netns::NetnsTestbed;

/// The source port of a flow.
const SRC_PORT: u16 = 20_000;

/// Fields that differ from frame to frame where each begins a new flow.
const NEW: [&str; 3] = ["udp.src", "udp.dst", "ipv4.dst"];

pub(super) const FAIR_SHARE: Method = Method {
    id: "fair-share",
    label: "Fair share",
    about: "A flow from host 1 to host 2 while host 3 sends to host 4 as fast as it can, once one \
            flow, then a new flow with each frame: the rate that is left, and its share",
    metrics: &[
        Metric::higher("fair_share_pct", "share beside new flows", "%", 1),
        Metric::higher("fair_share_left_pps", "rate beside new flows", "packets/s", 0),
    ],
    saturates: true,
    cost: |settings| 2 * (Duration::from_secs_f64(settings.duration_s()) + WARM_UP),
    fits: four_hosts,
    run,
    ..Method::USUAL
};

fn run(context: &MethodContext<'_>) -> Result<Trial, TrialError> {
    let bed = context.bed.kernel().ok_or(TrialError::Unfit("no kernel hosts"))?;
    let fair = flood::not_nothing(beside(bed, context, Vec::new())?)?;
    let new = NEW.map(|field| Modifier::Field(FieldModifier::new(field, ModifierOp::Random)));
    let (left, load) = context.observe(|| beside(bed, context, new.to_vec()));
    let left = left?;
    Ok(Trial {
        values: vec![("fair_share_pct", 100.0 * left / fair), ("fair_share_left_pps", left)],
        tool: "Weir's generator, and the kernel's count".into(),
        load,
        raw: serde_json::json!({ "beside_its_copy_pps": fair }),
        ..Trial::default()
    })
}

/// Packets a second of the flow from host 1 to host 2 beside the same from host 3 to host 4, whose
/// frames differ by these fields.
fn beside(
    bed: &NetnsTestbed,
    context: &MethodContext<'_>,
    modifiers: Vec<Modifier>,
) -> Result<f64, TrialError> {
    let flow = |from: usize, to: usize, modifiers| {
        let packet = flood::packet(from, to, SRC_PORT);
        let stream = StreamSpec { packet, modifiers, ..StreamSpec::default() };
        Flood::start(bed, from, flood::as_fast_as_it_goes(context, stream))
    };
    let _victim = flow(0, 1, Vec::new())?;
    let _other = flow(2, 3, modifiers)?;
    flood::arriving_pps(bed, 1, context)
}
