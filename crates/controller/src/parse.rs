//! The packet of a packet-in, parsed.

use openflow::message::PacketIn;
use packet::PacketView;

/// Asks a packet-in about its packet in plain words.
///
/// ```
/// use controller::{App, PacketIn, ParsedPacketIn, Switch};
///
/// /// Notes who asks for whom.
/// struct ArpLog;
/// impl App for ArpLog {
///     fn packet_in(&mut self, sw: &mut Switch, packet_in: &PacketIn) {
///         let packet = packet_in.parsed();
///         if let (true, Some(from), Some(to)) =
///             (packet.is_arp_request(), packet.arp_spa(), packet.arp_tpa())
///         {
///             println!("{}: {from} asks for {to}", sw.dpid());
///         }
///     }
/// }
/// ```
pub trait ParsedPacketIn {
    /// Its packet; what the switch has not sent is cut off.
    fn parsed(&self) -> PacketView<'_>;
}

impl ParsedPacketIn for PacketIn {
    fn parsed(&self) -> PacketView<'_> {
        PacketView::of(&self.data)
    }
}
