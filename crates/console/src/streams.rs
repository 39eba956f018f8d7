//! The streams of a port for the generator, made from the settings.
//!
//! Single and range mode are one stream. Sequence mode is one for each packet: all have the same
//! number of frames a second, each a place further on in time, so that they leave in turn.

use generator::profile::{
    CaptureReplay, CaptureTiming, FieldModifier, FieldValue, FrameSize, Mode, Modifier, ModifierOp,
    Rate, StreamSpec,
};
use generator::session::check_stream;

use crate::state::random;
use crate::state::{
    EtherKind, IpProtocol, PacketSettings, PortSettings, RANGE_FIELDS, RangeField, RangeKind,
    RangeSpan, SendMode,
};

/// The streams of port `port`, whose line carries `line_rate_bps` at layer 1.
///
/// # Errors
/// Ranges whose values do not fit each other.
pub(crate) fn of_port(
    port: usize,
    settings: &PortSettings,
    line_rate_bps: f64,
) -> Result<Vec<StreamSpec>, String> {
    match settings.mode() {
        SendMode::Single => {
            let spec = stream(port, "single", settings, &settings.single);
            Ok(vec![StreamSpec { rate: settings.rate, mode: mode(settings.count), ..spec }])
        }
        SendMode::Range => Ok(vec![range(port, settings)?]),
        SendMode::Sequence => Ok(sequence(port, settings, line_rate_bps)),
        SendMode::Capture => Ok(vec![capture(port, settings)?]),
    }
}

/// The frames of a capture file at the port's rate, again and again, or as many as its count says.
fn capture(port: usize, settings: &PortSettings) -> Result<StreamSpec, String> {
    if settings.is_random_on {
        return Err("pcap: the frames of a file stay as they are; set PORTS random off".to_owned());
    }
    let file = settings.pcap_file.clone();
    let file = file.ok_or_else(|| "pcap: no file; pcap.file PORTS FILE names one".to_owned())?;
    Ok(StreamSpec {
        name: "pcap".to_owned(),
        port,
        rate: settings.rate,
        mode: mode(settings.count),
        capture: Some(CaptureReplay { file, timing: CaptureTiming::Rate, loops: 0 }),
        ..StreamSpec::default()
    })
}

/// Whether the generator takes the streams of a port, which all send together, as far as no port is
/// needed to know it.
///
/// # Errors
/// Those of [`check`], and rates above the line's.
pub(crate) fn check_all(specs: &[StreamSpec], line_rate_bps: f64) -> Result<(), String> {
    // The sum of parts may be a little more than the whole.
    const ROUNDING: f64 = 1e-6;
    let mut sum_bps = 0.0;
    for spec in specs {
        check(spec)?;
        let mean = spec.size.mean().map_err(|error| error.to_string())?;
        sum_bps += spec.rate.bits_per_second_l1(mean, line_rate_bps).unwrap_or_default();
    }
    if sum_bps > line_rate_bps * (1.0 + ROUNDING) {
        let (asked, most) = (sum_bps / 1e9, line_rate_bps / 1e9);
        return Err(format!("{asked:.6} Gbit/s at layer 1, and the line has {most:.6}"));
    }
    Ok(())
}

/// Whether the generator can make the frames of a stream, as far as no port is needed for that.
///
/// # Errors
/// The mistake, and its field.
fn check(spec: &StreamSpec) -> Result<(), String> {
    let Err(error) = check_stream(spec) else { return Ok(()) };
    let named = spec.modifiers.iter().enumerate().find_map(|(place, modifier)| match modifier {
        Modifier::Field(modifier) if error.field.starts_with(&format!("modifiers[{place}].")) => {
            Some(&modifier.field)
        }
        Modifier::Field(_) | Modifier::Tuples(_) => None,
    });
    Err(named.map_or(error.reason.clone(), |field| format!("{field}: {}", error.reason)))
}

fn mode(count: u64) -> Mode {
    if count == 0 { Mode::Continuous } else { Mode::Burst(count) }
}

/// A stream of one packet.
fn stream(port: usize, name: &str, settings: &PortSettings, packet: &PacketSettings) -> StreamSpec {
    StreamSpec {
        name: name.to_owned(),
        port,
        packet: packet.headers(),
        size: FrameSize::Fixed(packet.size as u32),
        probe: settings.is_latency_on,
        late_after_us: settings.late_after_us.map(|us| us as f64),
        verify_checksums: settings.verifies,
        pattern: packet.payload.clone(),
        modifiers: match settings.is_random_on {
            true => random::modifiers(&settings.random),
            false => Vec::new(),
        },
        ..StreamSpec::default()
    }
}

/// The packet of range mode with the first value of each field.
pub(crate) fn range_packet(settings: &PortSettings) -> PacketSettings {
    let range = &settings.range;
    let first = |field| range.span(field).start as u64;
    let mut packet = settings.single.clone();
    packet.protocol = range.protocol;
    if packet.kind != EtherKind::Arp {
        packet.kind = if range.is_ipv6() { EtherKind::Ipv6 } else { EtherKind::Ipv4 };
    }
    let address = |field: RangeField| {
        let text = field.text(range.span(field).start, range.is_ipv6());
        text.parse().unwrap_or(settings.single.dst_ip)
    };
    (packet.dst_ip, packet.src_ip) = (address(RangeField::DstIp), address(RangeField::SrcIp));
    (packet.dst_mac, packet.src_mac) = (first(RangeField::DstMac), first(RangeField::SrcMac));
    (packet.dst_port, packet.src_port) = (first(RangeField::DstPort), first(RangeField::SrcPort));
    (packet.vlan_id, packet.tags.cos) = (first(RangeField::VlanId), first(RangeField::Cos));
    (packet.tos, packet.ttl) = (first(RangeField::Tos), first(RangeField::Ttl));
    (packet.size, packet.teid) = (first(RangeField::PktSize), first(RangeField::Teid));
    let tags = &mut packet.tags;
    for (field, value) in [
        (RangeField::TcpSeq, &mut packet.tcp.seq),
        (RangeField::TcpAck, &mut packet.tcp.ack),
        (RangeField::TcpFlags, &mut packet.tcp.flags),
        (RangeField::MplsEntry, &mut tags.mpls_entry),
        (RangeField::QinqOuter, &mut tags.qinq_ids.0),
        (RangeField::QinqInner, &mut tags.qinq_ids.1),
        (RangeField::GreKey, &mut tags.gre_key),
        (RangeField::Vni, &mut tags.vni),
    ] {
        if range.span(field).is_set() {
            *value = first(field);
        }
    }
    packet
}

/// A label stack entry (RFC 3032): its label is above the other bits.
const LABEL_SHIFT: u32 = 12;

/// The labels of a range of label stack entries; the other bits are those of the first one.
fn labels(span: &RangeSpan) -> Result<RangeSpan, String> {
    let below = (1 << LABEL_SHIFT) - 1;
    if span.inc & below != 0 {
        let inc = span.inc;
        return Err(format!(
            "mpls.entry: inc {inc:#x} would change class, bottom bit or TTL; use a multiple of \
             {:#x}, which is one label",
            below + 1
        ));
    }
    let label = |entry: u128| entry >> LABEL_SHIFT;
    let RangeSpan { start, min, max, inc } = *span;
    Ok(RangeSpan { start: label(start), min: label(min), max: label(max), inc: label(inc) })
}

fn range(port: usize, settings: &PortSettings) -> Result<StreamSpec, String> {
    let packet = range_packet(settings);
    let mut spec = stream(port, "range", settings, &packet);
    spec.size = range_size(settings)?;
    (spec.rate, spec.mode) = (settings.rate, mode(settings.count));
    let is_ipv6 = settings.range.is_ipv6();
    for row in &RANGE_FIELDS {
        let span = settings.range.span(row.field);
        let Some(header) = header_field(row.field, &packet).filter(|_| span.inc != 0) else {
            continue;
        };
        let labels = if row.field == RangeField::MplsEntry { Some(labels(span)?) } else { None };
        let span = labels.as_ref().unwrap_or(span);
        if !(span.min..=span.max).contains(&span.start) {
            let [start, min, max] =
                [span.start, span.min, span.max].map(|value| row.field.text(value, is_ipv6));
            let word = row.word;
            return Err(format!("{word}: start {start} is not from min {min} to max {max}"));
        }
        let value = |value: u128| match row.kind {
            RangeKind::Number => FieldValue::Number(value as u64),
            RangeKind::Mac | RangeKind::Ip => FieldValue::Text(row.field.text(value, is_ipv6)),
        };
        let mut modifier = FieldModifier::new(&header, ModifierOp::Increment);
        modifier.start = Some(value(span.start));
        modifier.min = Some(value(span.min));
        modifier.max = Some(value(span.max));
        modifier.step = Some(u64::try_from(span.inc).unwrap_or(u64::MAX));
        spec.modifiers.push(Modifier::Field(modifier));
    }
    Ok(spec)
}

/// The sizes of range mode: from `start` on, and behind `max` again from `min`. A `start` between
/// the steps is refused: its sizes would come once, before those from `min` on for ever.
fn range_size(settings: &PortSettings) -> Result<FrameSize, String> {
    let span = settings.range.span(RangeField::PktSize);
    let [start, min, max, inc] = [span.start, span.min, span.max, span.inc].map(|n| n as u32);
    if inc == 0 {
        return Ok(FrameSize::Fixed(start));
    }
    if !(min..=max).contains(&start) {
        return Err(format!("pkt.size: start {start} is not from min {min} to max {max}"));
    }
    let beyond = (start - min) % inc;
    if beyond != 0 {
        let (below, above) = (start - beyond, start - beyond + inc);
        return Err(format!(
            "pkt.size: start {start} is not min {min} and steps of {inc}, as {below} and {above} \
             are"
        ));
    }
    let mut sizes: Vec<u32> = (min..=max).step_by(inc as usize).collect();
    sizes.rotate_left(((start - min) / inc) as usize);
    Ok(FrameSize::Cycle(sizes))
}

/// The header field of a field of range mode; `None` where the packet does not have it, or where
/// it is none (the size).
fn header_field(field: RangeField, packet: &PacketSettings) -> Option<String> {
    let is_arp = packet.kind == EtherKind::Arp;
    let ip = if packet.kind == EtherKind::Ipv6 { "ipv6" } else { "ipv4" };
    // Under GRE the inner packet is the one that varies.
    let tags = &packet.tags;
    let is_tunnelled = tags.has_tunnel();
    let inner = if is_tunnelled { "#2" } else { "" };
    let network = (!is_arp).then(|| format!("{ip}{inner}"));
    let ports = match packet.protocol {
        // That of VXLAN stands before it.
        IpProtocol::Udp if !is_arp && tags.has_vxlan => Some("udp#2"),
        IpProtocol::Tcp | IpProtocol::Udp if !is_arp => Some(packet.protocol.word()),
        IpProtocol::Tcp | IpProtocol::Udp | IpProtocol::Icmp => None,
    };
    let tcp = (!is_arp && packet.protocol == IpProtocol::Tcp).then_some("tcp");
    let gre = (!is_arp && (tags.has_gre || tags.has_gre_eth) && !tags.has_vxlan).then_some("gre");
    let has_tag = tags.has_vlan && !tags.has_qinq;
    match field {
        RangeField::DstMac => Some("eth.dst".to_owned()),
        RangeField::SrcMac => Some("eth.src".to_owned()),
        RangeField::DstIp if is_arp => Some("arp.tpa".to_owned()),
        RangeField::SrcIp if is_arp => Some("arp.spa".to_owned()),
        RangeField::DstIp => network.map(|header| format!("{header}.dst")),
        RangeField::SrcIp => network.map(|header| format!("{header}.src")),
        RangeField::DstPort => ports.map(|header| format!("{header}.dst")),
        RangeField::SrcPort => ports.map(|header| format!("{header}.src")),
        RangeField::VlanId => has_tag.then(|| "vlan.vid".to_owned()),
        RangeField::Cos => has_tag.then(|| "vlan.pcp".to_owned()),
        RangeField::Tos => network.map(|header| format!("{header}.tos")),
        RangeField::Ttl => network.map(|header| format!("{header}.ttl")),
        RangeField::Teid => packet.has_gtpu().then(|| "gtpu.teid".to_owned()),
        RangeField::PktSize => None,
        RangeField::TcpSeq => tcp.map(|header| format!("{header}.seq")),
        RangeField::TcpAck => tcp.map(|header| format!("{header}.ack")),
        RangeField::TcpFlags => tcp.map(|header| format!("{header}.flags")),
        RangeField::MplsEntry => tags.has_mpls.then(|| "mpls.label".to_owned()),
        RangeField::QinqOuter => tags.has_qinq.then(|| "svlan.vid".to_owned()),
        RangeField::QinqInner => tags.has_qinq.then(|| "vlan.vid".to_owned()),
        RangeField::GreKey => gre.map(|header| format!("{header}.key")),
        RangeField::Vni => (!is_arp && tags.has_vxlan).then(|| "vxlan.vni".to_owned()),
    }
}

fn sequence(port: usize, settings: &PortSettings, line_rate_bps: f64) -> Vec<StreamSpec> {
    let packets = &settings.sequence[..settings.sequence_count.min(settings.sequence.len())];
    let places = packets.len() as u64;
    let mean = packets.iter().map(|packet| packet.size as f64).sum::<f64>() / places as f64;
    let pps = settings.rate.packets_per_second(mean, line_rate_bps);
    let mut specs = Vec::new();
    for (place, packet) in packets.iter().enumerate() {
        let mut spec = stream(port, &format!("seq{place}"), settings, &with_tags(packet, settings));
        // The first streams have one packet more where the count is no multiple.
        let at = place as u64;
        let count = settings.count.saturating_sub(at).div_ceil(places);
        if settings.count != 0 && count == 0 {
            continue;
        }
        spec.mode = if settings.count == 0 { Mode::Continuous } else { Mode::Burst(count) };
        match pps {
            Some(pps) => {
                spec.rate = Rate::PacketsPerSecond(pps / places as f64);
                spec.start_after_s = place as f64 / pps;
            }
            None => spec.rate = Rate::Max,
        }
        specs.push(spec);
    }
    specs
}

/// A packet of the sequence with the tags and the payload of the port.
fn with_tags(packet: &PacketSettings, settings: &PortSettings) -> PacketSettings {
    let (tags, payload) = (settings.single.tags.clone(), settings.single.payload.clone());
    PacketSettings { tags, payload, ..packet.clone() }
}

#[cfg(test)]
#[path = "streams/tests.rs"]
mod tests;
