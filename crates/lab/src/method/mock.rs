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
        Ok(super::pps::attempt(&Measurer::trial(self, input)?))
    }
}

#[cfg(test)]
mod tests {
    use super::{carry, path, perfect};
    use generator::testing::DeviceModel;

    #[test]
    fn the_account_shows_the_delay_and_the_loss() {
        let model = DeviceModel { delay_ns: 2_000_000, loss: 0.1, ..perfect() };
        let account = carry(&mut path(model), 1_000.0).report;
        assert!((account.loss_ratio() - 0.1).abs() < 0.05);
        let p50 = account.delay_us(0.5).unwrap();
        assert!((p50 - 2_010.0).abs() < 5.0, "{p50}");
        assert!(account.jitter_ns < 1.0);
    }
}
