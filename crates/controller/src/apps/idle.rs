//! The app that does nothing: switches are driven from outside, over REST for example.

use crate::app::App;

/// Leaves switches as they are.
#[derive(Clone, Copy, Debug, Default)]
pub struct Idle;

impl App for Idle {}

#[cfg(test)]
mod tests {
    use super::Idle;
    use crate::app::App;
    use crate::switch::Switch;
    use openflow::Version;
    use openflow::message::Features;

    #[test]
    fn it_sends_nothing() {
        for &version in Version::ALL {
            let mut sw = Switch::new(version, Features::default());
            Idle.switch_ready(&mut sw);
            Idle.tick(&mut sw);
            assert!(sw.take_messages().is_empty());
        }
    }
}
