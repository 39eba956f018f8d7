//! The generator's simulated device as a path that the lab's methods must find again.

use generator::method::on_ports::PortTrialError;
use generator::method::{Measurer, MethodError, TrialInput, TrialOutput};
use generator::testing::{DeviceModel, SimulatedMeasurer};

use super::search::{Attempt, Path};

/// A path through a device of that model.
pub(super) fn path(model: DeviceModel) -> SimulatedMeasurer {
    SimulatedMeasurer::new(model, 1)
}

/// 100,000 frames a second, no delay, a short queue, no loss.
pub(super) fn perfect() -> DeviceModel {
    DeviceModel::perfect(100_000.0, 64)
}

/// Carries one second of small frames through the path.
pub(super) fn carry(path: &mut SimulatedMeasurer, rate_pps: f64) -> TrialOutput {
    let input = TrialInput { frame_size: 64, rate_pps, duration_s: 1.0, grace_s: 0.05 };
    Measurer::trial(path, input).unwrap()
}

impl Path for SimulatedMeasurer {
    type Error = MethodError<PortTrialError>;

    fn trial(&mut self, offered_pps: f64) -> Result<Attempt, Self::Error> {
        let input =
            TrialInput { frame_size: 64, rate_pps: offered_pps, duration_s: 1.0, grace_s: 0.05 };
        Ok(Attempt::of(&Measurer::trial(self, input)?))
    }
}
