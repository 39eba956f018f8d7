//! Filter of a capture: a match in the text syntax of flow entries, and bytes at offsets.

use std::str::FromStr;

use openflow::text::{TextError, decimal_where, parse_match};
use openflow::{Match, PortNo};
use packet::{Meta, extract};

/// The port number that frames have for a filter.
const IN_PORT: PortNo = PortNo(1);

/// A match; the empty one keeps every frame and looks at none.
#[derive(Clone, Debug)]
pub(super) struct CaptureFilter {
    fields: Option<Match>,
}

impl CaptureFilter {
    /// Whether the frame is described.
    pub(super) fn keeps(&self, frame: &[u8]) -> bool {
        let described = |fields| extract(frame, &Meta::port(IN_PORT)).matches(fields);
        self.fields.as_ref().is_none_or(described)
    }
}

impl FromStr for CaptureFilter {
    type Err = TextError;

    fn from_str(text: &str) -> Result<Self, TextError> {
        let text = text.trim();
        let fields = if text.is_empty() { None } else { Some(parse_match(text)?) };
        Ok(Self { fields })
    }
}

/// Bytes at an offset of the frame, under a mask.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct BytesAt {
    offset: usize,
    value: Vec<u8>,
    mask: Vec<u8>,
}

/// Longest piece that is compared.
const BYTES_MAX: usize = 256;

impl BytesAt {
    /// Whether the frame has the bytes there.
    pub(super) fn keeps(&self, frame: &[u8]) -> bool {
        let Some(held) = frame.get(self.offset..self.offset + self.value.len()) else {
            return false;
        };
        let pairs = held.iter().zip(self.value.iter().zip(&self.mask));
        pairs.into_iter().all(|(held, (value, mask))| held & mask == value & mask)
    }
}

impl FromStr for BytesAt {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let form = "write OFFSET=HEX or OFFSET=HEX/MASK, for example 12=0800";
        let (offset, rest) = text.split_once('=').ok_or(form)?;
        let offset: u16 = decimal_where(offset, |_| true, form)?;
        let (value, mask) = match rest.split_once('/') {
            Some((value, mask)) => (value, Some(mask)),
            None => (rest, None),
        };
        let value = control::unhex(value, BYTES_MAX)?;
        let mask = match mask {
            Some(mask) => control::unhex(mask, BYTES_MAX)?,
            None => vec![0xff; value.len()],
        };
        if value.is_empty() || value.len() != mask.len() {
            return Err(format!("value and mask have as many bytes as each other; {form}"));
        }
        Ok(Self { offset: offset.into(), value, mask })
    }
}

#[cfg(test)]
mod tests {
    use super::{BytesAt, CaptureFilter};
    use openflow::MacAddr;
    use packet::build::{FrameBuilder, Ipv4, Tcp};

    fn frame(port: u16) -> Vec<u8> {
        let (a, b) = ([10, 0, 0, 1].into(), [10, 0, 0, 2].into());
        FrameBuilder::ethernet(MacAddr::from_u64(2), MacAddr::from_u64(1))
            .ipv4(Ipv4::new(a, b))
            .tcp(Tcp::new(1000, port))
            .build()
    }

    #[test]
    fn the_words_of_flow_entries_choose_frames() {
        let keeps = |text: &str, frame: &[u8]| text.parse::<CaptureFilter>().unwrap().keeps(frame);
        assert!(keeps("tcp,tp_dst=80", &frame(80)) && !keeps("tcp,tp_dst=80", &frame(81)));
        assert!(keeps("", &frame(81)) && keeps("", &[]));
        assert!(keeps("ip,nw_dst=10.0.0.0/24", &frame(1)) && !keeps("arp", &frame(1)));
        let error = "tcp,tp_dts=80".parse::<CaptureFilter>().unwrap_err().to_string();
        assert!(error.starts_with("column 5: "), "{error}");
    }

    #[test]
    fn bytes_choose_what_no_match_field_names() {
        let keeps = |text: &str| text.parse::<BytesAt>().unwrap().keeps(&frame(80));
        assert!(keeps("12=0800") && !keeps("12=0801") && keeps("12=0801/fff0"));
        assert!(!keeps("60000=00"), "behind the end of the frame");
        for bad in ["12", "x=00", "70000=00", "12=0", "12=", "12=00/0000", "12=zz"] {
            assert!(bad.parse::<BytesAt>().is_err(), "{bad}");
        }
    }
}
