//! Messages that are encoded once and sent many times.

use openflow::{Message, Version, Xid};
use wire::EncodeError;

/// Messages of one version as bytes, in their order, for [`crate::Client::send_bytes`]. All have
/// the same xid, so that an answer does not say which it answers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EncodedMessages {
    bytes: Vec<u8>,
    /// End of each message.
    ends: Vec<usize>,
}

impl EncodedMessages {
    /// These messages under one xid.
    ///
    /// # Errors
    /// The version has no encoding for one of them.
    pub fn new(
        version: Version,
        xid: Xid,
        messages: impl IntoIterator<Item = Message>,
    ) -> Result<Self, EncodeError> {
        let mut encoded = Self::default();
        for message in messages {
            wire::encode_into(&mut encoded.bytes, version, xid, &message)?;
            encoded.ends.push(encoded.bytes.len());
        }
        Ok(encoded)
    }

    /// The number of messages.
    #[must_use]
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// The messages over and over, from number `first` on: bytes of at most `wanted` of them and
    /// not beyond the last, and how many those are.
    #[must_use]
    pub fn round(&self, first: u64, wanted: u64) -> (&[u8], u64) {
        let all = self.ends.len();
        let Some(at) = usize::try_from(first).ok().and_then(|first| first.checked_rem(all)) else {
            return (&[], wanted);
        };
        let end = all.min(at.saturating_add(usize::try_from(wanted).unwrap_or(all)));
        let place = |n: usize| if n == 0 { 0 } else { self.ends.get(n - 1).copied().unwrap_or(0) };
        (self.bytes.get(place(at)..place(end)).unwrap_or_default(), (end - at) as u64)
    }
}

#[cfg(test)]
mod tests {
    use openflow::{Message, Version, Xid};

    use super::EncodedMessages;

    #[test]
    fn messages_go_round() {
        let three = std::iter::repeat_n(Message::BarrierRequest, 3);
        let encoded = EncodedMessages::new(Version::V1_3, Xid(1), three).unwrap();
        let round = |first, wanted| {
            let (bytes, count) = encoded.round(first, wanted);
            (bytes.len() / 8, count)
        };
        assert_eq!((round(0, 2), round(2, 2), round(3, 9)), ((2, 2), (1, 1), (3, 3)));
        assert_eq!(EncodedMessages::default().round(5, 7), (&[][..], 7));
    }
}
